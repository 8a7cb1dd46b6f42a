//! What the members of a group say that works over a board, where this node sees no operations: for
//! which ranks they wait. People are told; nothing else depends on it.

use trib_wire::body::Late;
use trib_wire::{Body, ChildIndex, Header, Kind, Rank, RankList, Signature};

use super::at::At;
use super::info::{Duty, GroupInfo, Member};
use super::output::{NodeOutput, Note, Payload, Target};
use crate::Path;
use crate::surprise::cannot_happen;
use crate::time::Nanos;

/// The board of one group.
pub(super) struct Board {
    /// The last word of each member, by position; none if it waits for no rank.
    words: Vec<Option<Word>>,
    /// What the parent has heard last.
    told: Option<Told>,
}

/// For which ranks a member waits.
#[derive(Clone)]
pub(super) struct Word {
    pub(super) operation: u64,
    pub(super) signature: Signature,
    witness: u32,
    pub(super) since: Nanos,
    /// By their numbers in the job. There are as many as a frame names, at most.
    late: RankList,
}

/// What matters of a word that was heard before: the operation, and which ranks are late.
type Told = Option<(u64, RankList)>;

impl Board {
    pub(super) fn new(info: &GroupInfo) -> Board {
        Board { words: vec![None; info.members.len()], told: None }
    }

    /// A member says for which ranks it waits.
    pub(super) fn on_late<B>(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        position: usize,
        header: &Header,
        late: &Late,
    ) {
        if !late.ranks.iter().all(|rank| at.info.key.members.contains(rank)) {
            return at.out.note(Note::Violation);
        }
        self.words[position] = (!late.ranks.is_empty()).then(|| Word {
            operation: header.op_seq,
            signature: header.signature,
            witness: header.witness,
            since: Nanos(at.now.0.saturating_sub(u64::from(late.waited_ms) * 1_000_000)),
            late: late.ranks.clone(),
        });
        self.pass_on(at);
    }

    /// A member has left, and waits for none.
    pub(super) fn leave<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, position: usize) {
        self.words[position] = None;
        self.pass_on(at);
    }

    /// Tells the parent, if the late ranks may be elsewhere below it, and it has heard something
    /// else.
    fn pass_on<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        if at.info.duty != Duty::Inner {
            return;
        }
        let word = self.words.iter().flatten().min_by_key(|word| word.operation);
        let tells = word.map(|word| (word.operation, word.late.clone()));
        if self.told.as_ref() == Some(&tells) {
            return;
        }
        let Some(bare) = at.up(Kind::Late) else { cannot_happen("nothing is above an inner node") };
        let (header, late) = match word {
            None => (bare, Late { waited_ms: 0, ranks: RankList::EMPTY }),
            Some(Word { operation, signature, witness, since, late }) => {
                let header = Header { op_seq: *operation, signature: *signature, witness: *witness, ..bare };
                let waited_ms = u32::try_from(at.now.since(*since).0 / 1_000_000).unwrap_or(u32::MAX);
                (header, Late { waited_ms, ranks: late.clone() })
            }
        };
        self.told = Some(tells);
        at.out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&Body::Late(late)));
    }

    /// The first operation with which ranks at or below a child are late.
    pub(super) fn waits_for(&self, info: &GroupInfo, child: ChildIndex) -> Option<&Word> {
        let member = &info.members[info.position(child)?];
        let names = |word: &&Word| word.late_below(info, member).next().is_some();
        self.words.iter().flatten().filter(names).min_by_key(|word| (word.operation, word.since))
    }
}

impl Word {
    /// The late ranks at or below a child.
    pub(super) fn late_below(&self, info: &GroupInfo, member: &Member) -> impl Iterator<Item = Rank> {
        let is_below = |rank: &Rank| info.key.members.position(*rank).is_some_and(|at| member.ranks.contains(Rank(at)));
        self.late.iter().filter(is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::harness::{Bench, Log};

    fn say(bench: &mut Bench, board: &mut Board, position: usize, operation: u64, late: &[u32]) {
        let header = Header { op_seq: operation, ..bench.piece(Kind::Late, position, operation) };
        let late = Late { waited_ms: 0, ranks: RankList::from_ranks(late.iter().copied()) };
        board.on_late(&mut bench.at(), position, &header, &late);
    }

    fn told(Log { sent, .. }: &mut Log) -> Vec<Kind> {
        sent.drain(..).map(|sent| sent.kind).collect()
    }

    #[test]
    fn a_child_is_late_with_the_first_operation_for_which_another_waits() {
        let mut bench = Bench::at_the_root();
        let mut board = Board::new(&bench.info);
        let at = |board: &Board, bench: &Bench, child| {
            board.waits_for(&bench.info, ChildIndex(child)).map(|word| word.operation)
        };
        say(&mut bench, &mut board, 0, 5, &[1]);
        assert_eq!((at(&board, &bench, 0), at(&board, &bench, 1)), (None, Some(5)));
        say(&mut bench, &mut board, 1, 7, &[0, 1]);
        assert_eq!((at(&board, &bench, 0), at(&board, &bench, 1)), (Some(7), Some(5)));
        say(&mut bench, &mut board, 0, 0, &[]);
        assert_eq!(at(&board, &bench, 1), Some(7), "its last word counts");
        board.leave(&mut bench.at(), 1);
        assert_eq!((at(&board, &bench, 0), at(&board, &bench, 1)), (None, None));
        assert_eq!(told(&mut bench.out), [], "the group's root tells nobody");
    }

    #[test]
    fn the_parent_hears_the_first_operation_and_only_what_is_new() {
        let mut bench = Bench::below_a_parent();
        let mut board = Board::new(&bench.info);
        say(&mut bench, &mut board, 0, 0, &[]);
        say(&mut bench, &mut board, 1, 0, &[]);
        assert_eq!(told(&mut bench.out), [Kind::Late], "the group has a board");
        say(&mut bench, &mut board, 0, 5, &[1]);
        say(&mut bench, &mut board, 1, 6, &[0]);
        assert_eq!(told(&mut bench.out), [Kind::Late], "the later one waits, too");
        say(&mut bench, &mut board, 0, 0, &[]);
        assert_eq!(told(&mut bench.out), [Kind::Late]);
        board.leave(&mut bench.at(), 1);
        assert_eq!(told(&mut bench.out), [Kind::Late]);
    }

    #[test]
    fn a_stranger_is_not_late() {
        let mut bench = Bench::below_a_parent();
        let mut board = Board::new(&bench.info);
        say(&mut bench, &mut board, 0, 5, &[1, 2]);
        assert_eq!(bench.out.notes, [Note::Violation]);
        assert_eq!(told(&mut bench.out), []);
        assert!(board.waits_for(&bench.info, ChildIndex(1)).is_none());
    }
}
