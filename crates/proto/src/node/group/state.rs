//! The states of a group, and what leads from one to the next.

/// What can still be done with a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Everything can be done.
    Live,
    /// The other ends of its edges have been told of a fault. It can only be left.
    Failed,
    /// All have left, so its name is free.
    Gone,
}

/// What happens to a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// It cannot go on.
    Fault,
    /// The last child has left or is dead.
    AllLeft,
}

/// The state after an event, or `None` if the event changes nothing.
pub(super) const fn transition(state: State, event: Event) -> Option<State> {
    match (state, event) {
        (State::Live, Event::Fault) => Some(State::Failed),
        (State::Live | State::Failed, Event::AllLeft) => Some(State::Gone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let states = [State::Live, State::Failed, State::Gone];
        let table = ["Live: Fault -> Failed, AllLeft -> Gone", "Failed: AllLeft -> Gone", "Gone:"];
        assert_eq!(rows(&states, &[Event::Fault, Event::AllLeft], transition), table);
    }
}
