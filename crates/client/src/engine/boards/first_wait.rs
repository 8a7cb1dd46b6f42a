//! How a member waits for a short operation before it puts it down for later, with the engine
//! locked all the while: so this is short.

use trib_waiting::clock::Clock;
use trib_waiting::{Patience, Stare};

/// What a thread has learnt from such waits.
pub(crate) struct FirstWait<'a> {
    pub(crate) stare: &'a mut Stare,
    pub(crate) patience: &'a mut Patience,
    pub(crate) clock: &'a mut Clock,
}

impl FirstWait<'_> {
    /// Looks before anybody is woken. `is_roomy` says that the members have a processor each; else
    /// this one looks once, because another member needs its processor.
    #[inline]
    pub(super) fn glance(&mut self, is_roomy: bool, mut look: impl FnMut() -> bool) -> bool {
        if is_roomy { self.stare.glance(look) } else { look() }
    }

    /// Looks for a while, and returns whether a look found something. `is_roomy` says that the
    /// members have a processor each; else this one gives way between its looks.
    #[inline]
    pub(super) fn look(&mut self, is_roomy: bool, look: impl FnMut() -> bool) -> bool {
        if is_roomy {
            return self.stare.look(look);
        }
        self.clock.read();
        let Some(mut turns) = self.patience.begin(self.clock.last_reading()) else { return false };
        let found = turns.look(look);
        self.clock.note(turns.last_look());
        // A wait that goes on has not failed yet.
        if found || !turns.goes_on() {
            self.patience.end(&turns, found);
        }
        found
    }
}
