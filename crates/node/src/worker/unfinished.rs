//! The links with more to read than one turn allowed.

use std::collections::VecDeque;

use super::hosted::Slot;
use crate::job::LinkNumber;

/// These links, each once, in the order in which their turns ended.
#[derive(Default)]
pub(super) struct Unfinished(VecDeque<(Slot, LinkNumber)>);

impl Unfinished {
    /// The link is read again in the next round, also if no event comes for it.
    pub(super) fn add(&mut self, slot: Slot, link: LinkNumber) {
        if !self.0.contains(&(slot, link)) {
            self.0.push_back((slot, link));
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are. A round takes so many.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes out the one whose turn ended first.
    pub(super) fn next(&mut self) -> Option<(Slot, LinkNumber)> {
        self.0.pop_front()
    }
}
