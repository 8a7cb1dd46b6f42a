//! An edge that goes another way than TCP and UDP: over memory or over UCX. Stream and datagrams go
//! the same way there, and one bell wakes who waits for either.
//!
//! Who drives an edge lets it work (`drive`), looks (`has_come`), and says when it sleeps on the
//! bell (`fall_asleep`). Over memory the far end's processor does all the work, so that `drive`
//! does nothing; UCX does nothing by itself.

use std::os::fd::RawFd;

use crate::memory::{self, NearGlance, NearInbox, NearOutbox};
use crate::ucx::{UcxGlance, UcxInbox, UcxOutbox, UcxWorker};
use crate::udp::{Datagram, Sent, UdpCounters};

/// The datagrams of one end of an edge.
#[derive(Debug)]
pub struct Records {
    /// Those that go to the far end.
    pub out: Outbox,
    /// Those that come from there.
    pub come: Inbox,
}

/// Datagrams to the far end.
#[derive(Debug)]
pub enum Outbox {
    /// Over memory.
    Memory(NearOutbox),
    /// Over UCX.
    Ucx(UcxOutbox),
}

/// Datagrams from the far end.
#[derive(Debug)]
pub enum Inbox {
    /// Over memory.
    Memory(NearInbox),
    /// Over UCX.
    Ucx(UcxInbox),
}

/// A look at an edge for a thread that must not hold its ends meanwhile.
#[derive(Clone)]
pub enum Glance {
    /// Over memory.
    Memory(NearGlance),
    /// Over UCX.
    Ucx(UcxGlance),
}

impl From<memory::Records> for Records {
    fn from(records: memory::Records) -> Records {
        Records { out: Outbox::Memory(records.out), come: Inbox::Memory(records.come) }
    }
}

impl From<(UcxOutbox, UcxInbox)> for Records {
    fn from((out, come): (UcxOutbox, UcxInbox)) -> Records {
        Records { out: Outbox::Ucx(out), come: Inbox::Ucx(come) }
    }
}

impl Outbox {
    /// The counts of what was sent.
    pub fn counters(&self) -> &UdpCounters {
        match self {
            Outbox::Memory(outbox) => outbox.counters(),
            Outbox::Ucx(outbox) => outbox.counters(),
        }
    }

    /// Sends a frame whose header [`seal`](crate::udp::seal) has sealed.
    pub fn send(&mut self, head: &[u8], payload: &[u8]) -> Sent {
        match self {
            Outbox::Memory(outbox) => outbox.send(head, payload),
            Outbox::Ucx(outbox) => outbox.send(head, payload),
        }
    }

    /// Whether its datagrams leave the memory of this host's processes.
    pub fn is_memory(&self) -> bool {
        matches!(self, Outbox::Memory(_))
    }
}

impl Inbox {
    /// The counts of what has come.
    pub fn counters(&self) -> &UdpCounters {
        match self {
            Inbox::Memory(inbox) => inbox.counters(),
            Inbox::Ucx(inbox) => inbox.counters(),
        }
    }

    /// The next datagram that has come, if it is a frame; what is none is counted and passed over.
    pub fn next(&mut self, rejected: &mut UdpCounters) -> Option<Datagram<'_>> {
        match self {
            Inbox::Memory(inbox) => inbox.next(rejected),
            Inbox::Ucx(inbox) => inbox.next(rejected),
        }
    }
}

impl Glance {
    /// The worker of UCX that has to be driven for the edge, if it goes by UCX.
    pub fn ucx(&self) -> Option<&UcxWorker> {
        match self {
            Glance::Memory(_) => None,
            Glance::Ucx(glance) => Some(glance.worker()),
        }
    }

    /// Lets the edge work.
    #[inline]
    pub fn drive(&self) {
        if let Some(worker) = self.ucx() {
            worker.drive();
        }
    }

    /// Whether datagrams wait.
    #[inline]
    pub fn has_records(&self) -> bool {
        match self {
            Glance::Memory(glance) => glance.has_records(),
            Glance::Ucx(glance) => glance.has_records(),
        }
    }

    /// Whether datagrams wait, or any byte of the stream, or room for which a write waits. The
    /// low-water mark is for sleepers alone.
    #[inline]
    pub fn has_come(&self) -> bool {
        match self {
            Glance::Memory(glance) => glance.has_come(),
            Glance::Ucx(glance) => glance.has_come(),
        }
    }

    /// Whether there is room now for a write that has waited for it. It does not wait any more.
    pub fn has_room(&self) -> bool {
        match self {
            Glance::Memory(glance) => glance.has_room(),
            Glance::Ucx(glance) => glance.has_room(),
        }
    }

    /// Whether any byte of the stream waits.
    pub fn has_bytes(&self) -> bool {
        match self {
            Glance::Memory(glance) => glance.has_bytes(),
            Glance::Ucx(glance) => glance.has_bytes(),
        }
    }

    /// Whether the edge has to be driven until all is sent that was written.
    pub fn is_sending(&self) -> bool {
        match self {
            Glance::Memory(_) => false,
            Glance::Ucx(glance) => glance.is_sending(),
        }
    }

    /// Says that this end is about to sleep until its bell is rung. Returns false if something is
    /// there already; then this end is awake.
    pub fn fall_asleep(&self) -> bool {
        match self {
            Glance::Memory(glance) => glance.fall_asleep(),
            Glance::Ucx(glance) => glance.fall_asleep(),
        }
    }

    /// Says that this end looks for itself. Until the next `fall_asleep` its bell need not be rung.
    pub fn wake_up(&self) {
        if let Glance::Memory(glance) = self {
            glance.wake_up();
        }
    }

    /// The same for a thread that sleeps in any case: if something is there, its own bell wakes it.
    pub fn fall_asleep_or_ring(&self) {
        match self {
            Glance::Memory(glance) => glance.fall_asleep_or_ring(),
            Glance::Ucx(glance) => {
                if !glance.fall_asleep() {
                    glance.worker().ring();
                }
            }
        }
    }

    /// Forgets that the bell was rung. That of UCX forgets it by itself, when it has nothing left
    /// to do.
    pub fn clear_bell(&self) {
        if let Glance::Memory(glance) = self {
            glance.clear_bell();
        }
    }

    /// The descriptor on which this end sleeps.
    pub fn bell(&self) -> RawFd {
        match self {
            Glance::Memory(glance) => glance.bell(),
            Glance::Ucx(glance) => glance.bell(),
        }
    }
}
