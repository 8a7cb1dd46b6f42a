//! The states of a lease at a rank, and what leads from one to the next.

/// How far a rank is with the right to stream in a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It has no right, and it has not asked for one.
    Idle,
    /// It has asked for the lock.
    Asked,
    /// It may stream.
    Held,
    /// It has said how far it is. It sends nothing more until the end of the lease is known.
    Stopping,
}

/// What happens to a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// An operation waits for the lock.
    Ask,
    /// The group has the lock.
    Grant,
    /// Other groups wait for the lock, or the lease has had its number of operations.
    Stop,
    /// The end of the lease is known.
    End,
}

/// The state after an event, or `None` if no correct node brings the event about in this state.
pub(super) const fn transition(phase: Phase, event: Event) -> Option<Phase> {
    match (phase, event) {
        (Phase::Idle, Event::Ask) => Some(Phase::Asked),
        (Phase::Asked, Event::Grant) => Some(Phase::Held),
        (Phase::Held, Event::Stop) => Some(Phase::Stopping),
        (Phase::Stopping, Event::End) => Some(Phase::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let phases = [Phase::Idle, Phase::Asked, Phase::Held, Phase::Stopping];
        let table = ["Idle: Ask -> Asked", "Asked: Grant -> Held", "Held: Stop -> Stopping", "Stopping: End -> Idle"];
        assert_eq!(rows(&phases, &[Event::Ask, Event::Grant, Event::Stop, Event::End], transition), table);
    }
}
