//! A table of transitions as text, so that a test can compare it with the table that is meant.

use core::fmt::Debug;

/// One row per state: `State: Event -> State, Event -> State`. Events that lead nowhere are left
/// out.
pub(crate) fn rows<S: Copy + Debug, E: Copy + Debug>(
    states: &[S],
    events: &[E],
    transition: impl Fn(S, E) -> Option<S>,
) -> Vec<String> {
    let row = |state: S| {
        let arrow = |event: &E| transition(state, *event).map(|next| format!(" {event:?} -> {next:?}"));
        let arrows: Vec<String> = events.iter().filter_map(arrow).collect();
        format!("{state:?}:{}", arrows.join(","))
    };
    states.iter().map(|state| row(*state)).collect()
}
