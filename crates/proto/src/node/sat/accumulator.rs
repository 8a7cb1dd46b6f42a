//! The states of an accumulator, and what leads from one to the next.

/// What an accumulator has of its segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It has no segment.
    Free,
    /// It has the aggregate, which waits for the parent's credit.
    Folded,
    /// It has the aggregate, which is on its way up.
    Sent,
    /// It has the result, which is being written to the children.
    Result,
}

/// What happens to an accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// Every child's segment was folded into it, at a node with a parent in the group.
    Fold,
    /// Every child's segment was folded into it, at the group's root, where aggregates become
    /// results.
    FoldAtRoot,
    /// The parent's credit covers it.
    Credit,
    /// The result from above.
    Result,
    /// The result has been written to the socket of every child.
    Written,
    /// The lease ends before its segment.
    RollBack,
}

/// The state after an event, or `None` if no correct peer brings the event about in this state.
pub(super) const fn transition(state: State, event: Event) -> Option<State> {
    match (state, event) {
        (State::Free, Event::Fold) => Some(State::Folded),
        (State::Free, Event::FoldAtRoot) => Some(State::Result),
        (State::Folded, Event::Credit) => Some(State::Sent),
        (State::Sent, Event::Result) => Some(State::Result),
        (State::Result, Event::Written) => Some(State::Free),
        (State::Folded | State::Sent, Event::RollBack) => Some(State::Free),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let states = [State::Free, State::Folded, State::Sent, State::Result];
        let events = [Event::Fold, Event::FoldAtRoot, Event::Credit, Event::Result, Event::Written, Event::RollBack];
        let table = [
            "Free: Fold -> Folded, FoldAtRoot -> Result",
            "Folded: Credit -> Sent, RollBack -> Free",
            "Sent: Result -> Result, RollBack -> Free",
            "Result: Written -> Free",
        ];
        assert_eq!(rows(&states, &events, transition), table);
    }
}
