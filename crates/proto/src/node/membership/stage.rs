//! The stages of a group's creation, and what leads from one to the next.

/// How far a creation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Some children have not joined yet.
    Gathering,
    /// All children have joined. The verdict will come from above.
    Forwarded,
    /// The group exists.
    Made,
    /// The group will not exist.
    Refused,
}

/// What happens to a creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The last child has joined or died, at a node with a parent.
    AllJoined,
    /// The verdict is that the group exists. It comes from above; at the root of the tree it is the
    /// node's own, when all children have joined.
    Ready,
    /// The verdict is that the group does not exist.
    Refused,
    /// The parent is gone.
    ParentLost,
}

/// The stage after an event, or `None` if no correct peer brings the event about in this stage.
/// `is_root` is whether this is the root of the tree.
pub(super) const fn transition(stage: Stage, event: Event, is_root: bool) -> Option<Stage> {
    match (stage, event, is_root) {
        (Stage::Gathering, Event::AllJoined, false) => Some(Stage::Forwarded),
        (Stage::Forwarded, Event::Ready, false) | (Stage::Gathering, Event::Ready, true) => Some(Stage::Made),
        (Stage::Forwarded, Event::Refused, false) | (Stage::Gathering, Event::Refused, true) => Some(Stage::Refused),
        (Stage::Gathering | Stage::Forwarded, Event::ParentLost, false) => Some(Stage::Refused),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transitions::rows;

    #[test]
    fn the_table_is_the_diagram() {
        let stages = [Stage::Gathering, Stage::Forwarded, Stage::Made, Stage::Refused];
        let events = [Event::AllJoined, Event::Ready, Event::Refused, Event::ParentLost];
        let below = [
            "Gathering: AllJoined -> Forwarded, ParentLost -> Refused",
            "Forwarded: Ready -> Made, Refused -> Refused, ParentLost -> Refused",
            "Made:",
            "Refused:",
        ];
        assert_eq!(rows(&stages, &events, |stage, event| transition(stage, event, false)), below);
        let root = ["Gathering: Ready -> Made, Refused -> Refused", "Forwarded:", "Made:", "Refused:"];
        assert_eq!(rows(&stages, &events, |stage, event| transition(stage, event, true)), root);
    }
}
