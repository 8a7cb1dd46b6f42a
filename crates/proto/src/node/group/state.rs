//! The states of a group, and what leads from one to the next.

/// What can still be done with a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Everything can be done.
    Live,
    /// The group's root has been told of a fault. Nothing can be done until it has said how the
    /// group ends.
    Reported,
    /// The other ends of its edges have been told of a fault. It can only be left.
    Failed,
    /// All have left, so its name is free.
    Gone,
}

/// What happens to a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// This node has found out, or was told from below, that it cannot go on, and may not decide
    /// how it ends.
    Report,
    /// It cannot go on.
    Fault,
    /// The last child has left or is dead.
    AllLeft,
}

/// The state after an event, or `None` if the event changes nothing.
pub(super) const fn transition(state: State, event: Event) -> Option<State> {
    match (state, event) {
        (State::Live, Event::Report) => Some(State::Reported),
        (State::Live | State::Reported, Event::Fault) => Some(State::Failed),
        (State::Live | State::Reported | State::Failed, Event::AllLeft) => Some(State::Gone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let states = [State::Live, State::Reported, State::Failed, State::Gone];
        let table = [
            "Live: Report -> Reported, Fault -> Failed, AllLeft -> Gone",
            "Reported: Fault -> Failed, AllLeft -> Gone",
            "Failed: AllLeft -> Gone",
            "Gone:",
        ];
        assert_eq!(rows(&states, &[Event::Report, Event::Fault, Event::AllLeft], transition), table);
    }
}
