//! The last epochs of one tree, as this process has come to know them.

use std::collections::VecDeque;

use trib_control::clock::unix_ms;
use trib_messages::recovery::{EPOCHS_KEPT, EpochCause, EpochPart};
use trib_wire::{NodeId, Placement};

/// The last epochs, and how many there were.
#[derive(Default)]
pub(super) struct Chronicle {
    last: VecDeque<EpochPart>,
    known: Placement,
    epochs: u64,
}

impl Chronicle {
    /// The tree has come to this placement.
    pub(super) fn enter(&mut self, lane: u32, placement: &Placement, cause: EpochCause) {
        let has_moved = |(node, moves): (NodeId, u16)| (moves > self.known.moves_of(node)).then_some(node);
        let moved = placement.moves().filter_map(has_moved).collect();
        let moves = placement.moves().map(|(_, moves)| u64::from(moves)).sum();
        if self.last.len() == EPOCHS_KEPT {
            self.last.pop_front();
        }
        self.last.push_back(EpochPart { lane, moves, moved, cause, at_ms: unix_ms() });
        self.known = placement.clone();
        self.epochs += 1;
    }

    /// The last of them, the oldest first.
    pub(super) fn last(&self) -> impl Iterator<Item = EpochPart> {
        self.last.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_epochs_are_known_with_what_moved_in_each() {
        let mut chronicle = Chronicle::default();
        let mut placement = Placement::FIRST;
        for number in 0..=EPOCHS_KEPT as u16 {
            placement = placement.without(NodeId(number % 2));
            chronicle.enter(3, &placement, EpochCause::Lost { node: NodeId(number % 2) });
        }
        chronicle.enter(3, &placement.without(NodeId(5)).without(NodeId(6)), EpochCause::Told);
        let last: Vec<EpochPart> = chronicle.last().collect();
        assert_eq!((last.len(), chronicle.epochs), (EPOCHS_KEPT, EPOCHS_KEPT as u64 + 2));
        assert_eq!((last[0].moves, &last[0].moved[..], last[0].lane), (3, &[NodeId(0)][..], 3));
        let newest = last.last().unwrap();
        assert_eq!((newest.moves, &newest.moved[..]), (EPOCHS_KEPT as u64 + 3, &[NodeId(5), NodeId(6)][..]));
        assert_eq!(newest.cause, EpochCause::Told);
    }
}
