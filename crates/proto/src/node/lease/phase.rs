//! The states of a lease, and what leads from one to the next.

/// What a node has of a stream context for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::node) enum Phase {
    /// No context.
    #[default]
    Idle,
    /// A context, until the lease ends.
    Granted,
    /// A context. All below have said how far they are, and nothing goes up any more.
    Stopping,
    /// A context, until everything before the lease's end has drained.
    Ending,
}

/// What happens to a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The lock is the group's.
    Grant,
    /// Others wait for the lock.
    Revoke,
    /// Everybody below has said how far it is.
    Stopped,
    /// The end of the lease is known.
    End,
    /// Everything before the end has come, gone and been handed on, here and below.
    Drained,
}

/// The state after an event; `None` if no correct peer brings the event about in this state.
pub(super) const fn transition(phase: Phase, event: Event) -> Option<Phase> {
    match (phase, event) {
        (Phase::Idle, Event::Grant) => Some(Phase::Granted),
        (Phase::Granted, Event::Revoke) => Some(Phase::Granted),
        // It crosses the word of those who have stopped already.
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
