//! The states of a lease, and what leads from one to the next.

/// How far a node is with the stream context of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::node) enum Phase {
    /// It has no context.
    #[default]
    Idle,
    /// It has a context, until the lease ends.
    Granted,
    /// It has a context. All children have said how far they are, and nothing goes up any more.
    Stopping,
    /// It has a context, until everything before the lease's end has drained.
    Ending,
}

/// What happens to a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The group has the lock.
    Grant,
    /// Other groups wait for the lock.
    Revoke,
    /// All children have said how far they are.
    Stopped,
    /// The end of the lease is known.
    End,
    /// Everything before the end has come, was folded and was handed on, here and below.
    Drained,
}

/// The state after an event, or `None` if no correct peer brings the event about in this state.
pub(super) const fn transition(phase: Phase, event: Event) -> Option<Phase> {
    match (phase, event) {
        (Phase::Idle, Event::Grant) => Some(Phase::Granted),
        (Phase::Granted, Event::Revoke) => Some(Phase::Granted),
        // The revocation has crossed the stops on their way up.
        (Phase::Stopping, Event::Revoke) => Some(Phase::Stopping),
        (Phase::Granted, Event::Stopped) => Some(Phase::Stopping),
        (Phase::Stopping, Event::End) => Some(Phase::Ending),
        (Phase::Ending, Event::Drained) => Some(Phase::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let phases = [Phase::Idle, Phase::Granted, Phase::Stopping, Phase::Ending];
        let events = [Event::Grant, Event::Revoke, Event::Stopped, Event::End, Event::Drained];
        let table = [
            "Idle: Grant -> Granted",
            "Granted: Revoke -> Granted, Stopped -> Stopping",
            "Stopping: Revoke -> Stopping, End -> Ending",
            "Ending: Drained -> Idle",
        ];
        assert_eq!(rows(&phases, &events, transition), table);
    }
}
