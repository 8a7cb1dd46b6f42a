//! The states of a slot, and what leads from one to the next.

/// What a slot has of its fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It has not had a fragment yet.
    Empty,
    /// It has some contributions.
    Filling,
    /// It had all contributions. Their aggregate is on its way up.
    Sent,
    /// It has the result.
    Done,
}

/// What happens to a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The first contribution to the slot's next fragment.
    First,
    /// The last contribution, at a node with a parent in the group.
    Last,
    /// The last contribution, at the group's root, where sums become results.
    LastAtRoot,
    /// The result from above.
    Result,
}

/// The state after an event, or `None` if no correct peer brings the event about in this state.
pub(super) const fn transition(state: State, event: Event) -> Option<State> {
    match (state, event) {
        (State::Empty | State::Done, Event::First) => Some(State::Filling),
        (State::Filling, Event::Last) => Some(State::Sent),
        (State::Filling, Event::LastAtRoot) => Some(State::Done),
        (State::Sent, Event::Result) => Some(State::Done),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let states = [State::Empty, State::Filling, State::Sent, State::Done];
        let events = [Event::First, Event::Last, Event::LastAtRoot, Event::Result];
        let table = [
            "Empty: First -> Filling",
            "Filling: Last -> Sent, LastAtRoot -> Done",
            "Sent: Result -> Done",
            "Done: First -> Filling",
        ];
        assert_eq!(rows(&states, &events, transition), table);
    }
}
