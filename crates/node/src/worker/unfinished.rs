//! The links with more to read than one turn allowed.

use super::hosted::Slot;
use crate::job::LinkNumber;

/// These links, each once, in the order in which their turns ended.
#[derive(Default)]
pub(super) struct Unfinished(Vec<(Slot, LinkNumber)>);

impl Unfinished {
    /// The link is read again in the next round, also if no event comes for it.
    pub(super) fn add(&mut self, slot: Slot, link: LinkNumber) {
        if !self.0.contains(&(slot, link)) {
            self.0.push((slot, link));
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all of them out, for a round.
    pub(super) fn take(&mut self) -> Vec<(Slot, LinkNumber)> {
        std::mem::take(&mut self.0)
    }
}
