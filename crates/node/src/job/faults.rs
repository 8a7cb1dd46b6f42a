//! The first fault of a job here. The manager is told of it once.

use trib_wire::Fault;

/// What was found, and whether the manager was told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    has_any: bool,
    untold: Option<Fault>,
}

impl Faults {
    /// A group cannot go on. Only the first fault is kept, because later ones mostly follow from
    /// it.
    pub(crate) fn found(&mut self, fault: &Fault) {
        if !core::mem::replace(&mut self.has_any, true) {
            self.untold = Some(*fault);
        }
    }

    /// The fault, if the manager is still to be told.
    pub(crate) fn take_untold(&mut self) -> Option<Fault> {
        self.untold.take()
    }
}

#[cfg(test)]
mod tests {
    use trib_wire::{NodeId, Rank, Reason};

    use super::*;

    #[test]
    fn the_first_fault_is_told_once() {
        let fault =
            |node, reason| Fault { reason, node: NodeId(node), rank_a: Rank(3), rank_b: Rank(3), signatures: None };
        let mut faults = Faults::default();
        faults.found(&fault(2, Reason::NodeDead));
        faults.found(&fault(1, Reason::MemberDead));
        assert_eq!(faults.take_untold(), Some(fault(2, Reason::NodeDead)));
        faults.found(&fault(1, Reason::MemberDead));
        assert_eq!(faults.take_untold(), None);
    }
}
