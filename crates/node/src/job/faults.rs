//! The first fault of a job here: the manager is told of it, once.

use trib_wire::{Directory, Fault, NodeId, Rank};

/// What was found, and whether it was told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    has_any: bool,
    untold: Option<Fault>,
}

impl Faults {
    /// A group cannot go on. What comes after the first fault mostly follows from it.
    pub(crate) fn found(&mut self, fault: &Fault) {
        if !core::mem::replace(&mut self.has_any, true) {
            self.untold = Some(*fault);
        }
    }

    /// What is still to be told, in the words of the logical node `own`.
    pub(crate) fn take_untold(&mut self, own: NodeId) -> Option<String> {
        self.untold.take().map(|fault| fault.told(&AsSeenBy(own)))
    }
}

/// A node knows no other node's name, and its number is nothing to people. The manager puts the
/// name of the node that speaks in front; ranks know the names of all.
struct AsSeenBy(NodeId);

impl Directory for AsSeenBy {
    fn node(&self, node: NodeId) -> String {
        if node == self.0 { "(this one)" } else { "(another one)" }.to_owned()
    }

    fn rank(&self, rank: Rank) -> String {
        format!("rank {}", rank.0)
    }
}

#[cfg(test)]
mod tests {
    use trib_wire::Reason;

    use super::*;

    #[test]
    fn the_first_fault_is_told_once_and_without_numbers_of_nodes() {
        let fault =
            |node, reason| Fault { reason, node: NodeId(node), rank_a: Rank(3), rank_b: Rank(3), signatures: None };
        let mut faults = Faults::default();
        faults.found(&fault(2, Reason::NodeDead));
        faults.found(&fault(1, Reason::MemberDead));
        let said = faults.take_untold(NodeId(1)).unwrap();
        assert_eq!(said, "node (another one) of the reduction tree is gone or does not answer");
        assert_eq!(faults.take_untold(NodeId(1)), None);
        let mut faults = Faults::default();
        faults.found(&fault(1, Reason::MemberDead));
        let said = faults.take_untold(NodeId(1)).unwrap();
        assert_eq!(said, "rank 3 died or lost its connection to node (this one)");
    }
}
