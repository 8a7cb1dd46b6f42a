//! How a thread looks for what comes on one lane, with the engine unlocked.

use trib_transport::edge::Glance;
use trib_transport::udp::{Receiver, RecvBatch};

use super::Engine;

/// A thread that looks at one lane. What comes on others is read before any thread sleeps.
/// All of it is inlined, because a look has to touch few pages.
pub(super) struct Looking {
    lane: usize,
    near: Option<Glance>,
    receiver: Receiver,
    batch: RecvBatch,
}

impl Looking {
    /// `end` must follow.
    #[inline(always)]
    pub(super) fn begin(engine: &mut Engine, lane: usize) -> Looking {
        let own = &mut engine.lanes[lane];
        Looking { lane, near: own.glance(), receiver: own.driver.datagrams.receiver(), batch: own.single_batch() }
    }

    /// Whether a look costs no system call.
    #[inline(always)]
    pub(super) fn is_near(&self) -> bool {
        self.near.is_some()
    }

    /// Whether something has come. Faults come over the stream, which is not looked at where
    /// datagrams are: learning of them a little later does no harm.
    #[inline(always)]
    pub(super) fn has_come(&mut self) -> bool {
        match &self.near {
            Some(near) => {
                near.drive();
                near.has_come()
            }
            None => self.receiver.has_come(&mut self.batch),
        }
    }

    /// Reads what has come. `goes_on` says that there may be more to wait for.
    #[inline(always)]
    pub(super) fn take(&mut self, engine: &mut Engine, goes_on: impl Fn() -> bool) {
        let now = engine.lately();
        let lane = &mut engine.lanes[self.lane];
        if self.near.is_some() {
            lane.read_near(now);
        } else {
            lane.driver.datagrams.account(&mut self.batch);
            lane.take(now, &self.batch);
            if goes_on() {
                lane.read_datagrams(now);
            }
        }
        // The lane may have another node by now.
        self.near = lane.glance();
    }

    #[inline(always)]
    pub(super) fn end(self, engine: &mut Engine) {
        engine.lanes[self.lane].keep_batch(self.batch);
    }
}
