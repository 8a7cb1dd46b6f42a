//! The last epochs of one tree, as this process has come to know them.

use std::collections::VecDeque;

use trib_control::clock::unix_ms;
use trib_messages::recovery::{EPOCHS_KEPT, EpochCause, EpochPart, Replayed};
use trib_wire::{Epoch, NodeId, Placement};

/// The last epochs, and how many there were.
#[derive(Default)]
pub(super) struct Chronicle {
    last: VecDeque<EpochPart>,
    known: Placement,
    epochs: u64,
    /// What was replayed in all of them at cores that have ended.
    replayed: Replayed,
}

impl Chronicle {
    /// The tree has come to this placement.
    pub(super) fn enter(&mut self, lane: u32, placement: &Placement, cause: EpochCause) {
        let has_moved = |(node, moves): (NodeId, u16)| (moves > self.known.moves_of(node)).then_some(node);
        let moved = placement.moves().filter_map(has_moved).collect();
        let moves = number(placement);
        if self.last.len() == EPOCHS_KEPT {
            self.last.pop_front();
        }
        let replayed = Replayed::default();
        self.last.push_back(EpochPart { lane, moves, moved, cause, at_ms: unix_ms(), replayed });
        self.known = placement.clone();
        self.epochs += 1;
    }

    /// A core that was here in the epoch of this placement has ended.
    pub(super) fn add(&mut self, placement: &Placement, replayed: Replayed) {
        self.replayed += replayed;
        let moves = number(placement);
        if let Some(epoch) = self.last.iter_mut().rfind(|epoch| epoch.moves == moves) {
            epoch.replayed += replayed;
        }
    }

    /// What was replayed in all of them at cores that have ended.
    pub(super) fn replayed(&self) -> Replayed {
        self.replayed
    }

    /// The last of them, the oldest first.
    pub(super) fn last(&self) -> impl Iterator<Item = EpochPart> {
        self.last.iter().cloned()
    }
}

/// The moves of all nodes, by which epochs are counted.
fn number(placement: &Placement) -> u64 {
    placement.epoch(Epoch(0)).0.into()
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

    #[test]
    fn what_was_replayed_stays_with_its_epoch_and_in_the_sum() {
        let mut chronicle = Chronicle::default();
        let second = Placement::FIRST.without(NodeId(0));
        let third = second.without(NodeId(0));
        chronicle.enter(0, &second, EpochCause::Told);
        chronicle.enter(0, &third, EpochCause::Told);
        let replayed = Replayed { fragments: 2, segments: 1, bytes: 100 };
        chronicle.add(&second, replayed);
        chronicle.add(&second, replayed);
        chronicle.add(&Placement::FIRST, Replayed { bytes: 7, ..replayed });
        let each: Vec<Replayed> = chronicle.last().map(|epoch| epoch.replayed).collect();
        assert_eq!(each, [Replayed { fragments: 4, segments: 2, bytes: 200 }, Replayed::default()]);
        let sum = Replayed { fragments: 6, segments: 3, bytes: 207 };
        assert_eq!(chronicle.replayed(), sum, "of an epoch that is forgotten, too");
    }
}
