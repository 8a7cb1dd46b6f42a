//! The placement that one process or rank knows. It only grows, and with it the epoch.

use trib_wire::{Epoch, NodeId, Placement};

/// What a process or a rank knows of the placement of the job's nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    first: Epoch,
    placement: Placement,
}

impl View {
    /// Every node is where the job began, in this epoch.
    pub fn new(first: Epoch) -> View {
        View { first, placement: Placement::FIRST }
    }

    /// The placement.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Its epoch.
    pub fn epoch(&self) -> Epoch {
        self.placement.epoch(self.first)
    }

    /// Whether some node has moved since the job began.
    pub fn has_moved(&self) -> bool {
        self.placement != Placement::FIRST
    }

    /// Somebody knows of this placement. Returns whether there is something new in it: all
    /// connections of the epoch before end then.
    pub fn told(&mut self, placement: &Placement) -> bool {
        let is_new = !self.placement.covers(placement);
        if is_new {
            self.placement = self.placement.with(placement);
        }
        is_new
    }

    /// A node does not do its part in this epoch, so that it counts as dead where it is. Returns
    /// whether a new epoch begins, which is not so if the epoch is over already.
    pub fn suspect(&mut self, node: NodeId, epoch: Epoch) -> bool {
        epoch == self.epoch() && self.told(&self.placement.without(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Epoch = Epoch(5);

    #[test]
    fn all_who_suspect_the_same_node_in_an_epoch_count_one_move() {
        let (mut one, mut other) = (View::new(FIRST), View::new(FIRST));
        assert!(one.suspect(NodeId(3), FIRST) && other.suspect(NodeId(3), FIRST));
        assert!(!one.told(other.placement()));
        assert_eq!((one.epoch(), one.clone()), (Epoch(6), other));
        assert!(!one.suspect(NodeId(3), FIRST), "that was in the epoch before");
        assert!(one.suspect(NodeId(3), Epoch(6)) && one.placement().moves_of(NodeId(3)) == 2);
    }

    #[test]
    fn those_who_suspect_different_nodes_agree_when_they_have_told_each_other() {
        let (mut one, mut other) = (View::new(FIRST), View::new(FIRST));
        assert!(one.suspect(NodeId(1), FIRST) && other.suspect(NodeId(2), FIRST));
        assert!(one.told(other.placement()) && other.told(one.placement()));
        assert_eq!((one.epoch(), one), (Epoch(7), other));
    }
}
