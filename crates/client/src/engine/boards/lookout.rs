//! What a member waits for, for a thread that looks without the engine.

use std::sync::Arc;

use trib_transport::memory::Board;

use super::cut::Need;

/// What a member waits for.
#[derive(Clone, Debug)]
pub(crate) struct Lookout {
    pub(super) board: Arc<Board>,
    /// What of others lets it go on; `None` if it has given nothing yet.
    pub(super) awaited: Option<Awaited>,
    /// The piece to be given.
    pub(super) give: Option<u64>,
    /// All members have taken the pieces below this number.
    pub(super) known: u64,
}

/// What of others lets a member go on with a piece.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// That those give from which it needs something.
    Given(u64, Need),
    /// That so many portions are folded.
    Folded(u64, u64),
    /// That the first member answers.
    Answer(u64),
}

impl Lookout {
    /// Whether what the member waits for is there.
    #[inline]
    pub(crate) fn has_come(&self) -> bool {
        let ready = self.awaited.is_some_and(|awaited| match awaited {
            Awaited::Given(piece, need) => is_given(&self.board, piece, need),
            Awaited::Folded(piece, portions) => self.board.is_folded(piece, portions),
            Awaited::Answer(piece) => self.board.answered(piece).is_some(),
        });
        ready || self.give.is_some_and(|piece| self.board.has_room(piece, &mut self.known.clone()))
    }
}

/// Whether everything that a member needs of a piece has been given.
#[inline]
pub(super) fn is_given(board: &Board, piece: u64, need: Need) -> bool {
    match need {
        Need::All => board.is_whole(piece),
        Need::Root(root) => board.has_given(piece, root),
        Need::Answer => board.answered(piece).is_some(),
        Need::Nobody => true,
    }
}
