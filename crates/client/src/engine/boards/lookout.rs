//! What a member waits for, for a thread that looks without the engine.

use std::sync::Arc;

use trib_transport::memory::Board;

use super::cut::Need;

/// What a member waits for.
#[derive(Clone, Debug)]
pub(crate) struct Lookout {
    pub(super) board: Arc<Board>,
    /// The piece to be taken, whose contributions that needs, and into how many portions its fold
    /// is cut that nobody has folded yet; `None` if this member has given none yet.
    pub(super) take: Option<(u64, Need, u64)>,
    /// The piece to be given.
    pub(super) give: Option<u64>,
    /// All members have taken the pieces below this number.
    pub(super) known: u64,
}

impl Lookout {
    /// Whether what the member waits for is there.
    #[inline]
    pub(crate) fn has_come(&self) -> bool {
        let ready = self.take.is_some_and(|(piece, need, portions)| match portions {
            0 => is_given(&self.board, piece, need),
            _ => self.board.is_folded(piece, portions),
        });
        ready || self.give.is_some_and(|piece| self.board.has_room(piece, &mut self.known.clone()))
    }
}

/// Whether everything that a member needs of a piece has been given.
#[inline]
pub(super) fn is_given(board: &Board, piece: u64, need: Need) -> bool {
    match need {
        Need::All => (0..board.members()).all(|member| board.has_given(piece, member)),
        Need::Root(root) => board.has_given(piece, root),
        Need::Nobody => true,
    }
}
