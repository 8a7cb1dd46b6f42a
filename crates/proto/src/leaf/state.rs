//! The states of a group at a rank, and what leads from one to the next.

/// What can be done with a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Operations may be posted. They begin when the node has answered.
    Joining,
    /// Nothing can be done: the program has freed it before the node answered.
    Abandoned,
    /// Everything can be done.
    Ready,
    /// The program has freed it. What other ranks may still need of this one is kept.
    Left,
    /// It can only be freed.
    Failed,
    /// Nothing can be done: the rank forgets it.
    Gone,
}

/// What happens to a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The group exists everywhere.
    Ready,
    /// It was refused, it cannot go on, or the node is gone.
    Fault,
    /// The program frees it.
    Free,
    /// All members have left it.
    Freed,
}

/// The state after an event, or `None` if the event changes nothing.
pub(super) const fn transition(state: State, event: Event) -> Option<State> {
    match (state, event) {
        (State::Joining, Event::Ready) => Some(State::Ready),
        (State::Joining, Event::Free) => Some(State::Abandoned),
        (State::Joining | State::Ready, Event::Fault) => Some(State::Failed),
        (State::Abandoned, Event::Ready) | (State::Ready, Event::Free) => Some(State::Left),
        (State::Abandoned, Event::Fault) | (State::Left, Event::Fault | Event::Freed) => Some(State::Gone),
        (State::Failed, Event::Free) => Some(State::Gone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let states = [State::Joining, State::Abandoned, State::Ready, State::Left, State::Failed, State::Gone];
        let table = [
            "Joining: Ready -> Ready, Fault -> Failed, Free -> Abandoned",
            "Abandoned: Ready -> Left, Fault -> Gone",
            "Ready: Fault -> Failed, Free -> Left",
            "Left: Fault -> Gone, Freed -> Gone",
            "Failed: Free -> Gone",
            "Gone:",
        ];
        assert_eq!(rows(&states, &[Event::Ready, Event::Fault, Event::Free, Event::Freed], transition), table);
    }
}
