//! Who holds which results of a group on one path. Contributions and results carry that; while the
//! group rests, frames of their own do.

use trib_wire::header::FLAG_STREAM;
use trib_wire::{ChildIndex, Header, Kind};

use super::at::At;
use super::identity::Identity;
use super::info::Duty;
use super::output::{NodeOutput, Payload, Target};
use crate::Path;

/// The marks of one path.
pub(super) struct Marks {
    flags: u16,
    /// Per member: the number below which all its ranks hold the results.
    held: Vec<u64>,
    /// The number below which all ranks of the group hold the results.
    stable: u64,
    /// The highest mark that was told by a frame of its own, or under `strict` by any frame.
    told: u64,
    /// The highest mark that was told by a frame of its own, which is not lost.
    sure: u64,
    /// Whether programs wait for marks, so that they go on at once.
    prompt: bool,
}

impl Marks {
    /// All ranks below these members hold the results below `start`.
    pub(super) fn new(path: Path, identity: &Identity, (members, start): (usize, u64)) -> Marks {
        let flags = if path == Path::Stream { FLAG_STREAM } else { 0 };
        let prompt = identity.config.strict;
        Marks { flags, held: vec![start; members], stable: start, told: start, sure: start, prompt }
    }

    /// The number of members.
    pub(super) fn members(&self) -> usize {
        self.held.len()
    }

    /// All ranks of a member hold the results below this number.
    pub(super) fn hold(&mut self, position: usize, mark: u64) {
        self.held[position] = self.held[position].max(mark);
    }

    /// The number below which all ranks below this node hold the results.
    pub(super) fn least(&self) -> u64 {
        self.held.iter().copied().min().unwrap_or(0)
    }

    /// The number below which all ranks of a member hold the results.
    pub(super) fn held_by(&self, position: usize) -> u64 {
        self.held[position]
    }

    /// The number that goes up with a contribution.
    pub(super) fn carry(&mut self) -> u64 {
        if self.prompt {
            self.told = self.told.max(self.least());
        }
        self.least()
    }

    /// The number below which all ranks of the group hold the results, as far as this node knows.
    pub(super) fn stable(&self) -> u64 {
        self.stable
    }

    /// All ranks of the group hold the results below this number.
    pub(super) fn settle(&mut self, mark: u64) {
        self.stable = self.stable.max(mark);
    }

    /// A child rests, and all its ranks hold the results below this number.
    pub(super) fn on_mark<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, position: usize, mark: u64) {
        self.hold(position, mark);
        self.go_on(at, self.sure);
    }

    /// A member has said by a contribution what it holds. Where programs wait for it, and nothing
    /// has taken it further, it goes on.
    pub(super) fn pass_on<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        if self.prompt {
            self.go_on(at, self.told);
        }
    }

    /// The same, by a question. What this node has told by a contribution may be lost, and is not
    /// sent again if the next result is never there because a member has given it up.
    pub(super) fn make_sure<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        if self.prompt {
            self.go_on(at, self.sure);
        }
    }

    /// All ranks of a member have left the group and lack nothing any more, whether they hold the
    /// results or not. Nobody need keep anything for them.
    pub(super) fn leave<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, position: usize) {
        self.hold(position, u64::MAX);
        if self.least() != u64::MAX {
            self.go_on(at, self.told);
        }
    }

    /// Tells what all members hold, if that is more than the others know.
    fn go_on<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, known: u64) {
        let least = self.least();
        if least <= known.max(self.stable) {
            return;
        }
        (self.told, self.sure) = (least, least);
        if at.info.duty == Duty::Root {
            self.on_stable(at, least);
        } else if let Some(header) = at.up(Kind::Mark) {
            let header = Header { mark: least, flags: self.flags, ..header };
            at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
        }
    }

    /// All ranks of the group hold the results below this number, and are to know.
    pub(super) fn on_stable<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, mark: u64) {
        self.settle(mark);
        let header = Header { mark, flags: self.flags, ..at.down(Kind::Mark, ChildIndex::ALL) };
        at.out.transmit(Target::Children(at.info.all), Path::Stream, &header, Payload::None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::harness::Bench;

    /// The marks of two members who hold the results below 5, which a contribution has told.
    fn told_by_a_contribution() -> (Bench, Marks) {
        let mut marks = Marks { flags: 0, held: vec![5, 5], stable: 0, told: 0, sure: 0, prompt: true };
        assert_eq!(marks.carry(), 5);
        (Bench::below_a_parent(), marks)
    }

    fn kinds(bench: &mut Bench) -> Vec<Kind> {
        bench.out.take_sent().into_iter().map(|sent| sent.kind).collect()
    }

    #[test]
    fn what_a_contribution_has_told_is_not_told_again() {
        let (mut bench, mut marks) = told_by_a_contribution();
        marks.pass_on(&mut bench.at());
        assert_eq!(kinds(&mut bench), []);
    }

    #[test]
    fn what_a_contribution_has_told_is_made_sure_when_a_member_asks() {
        let (mut bench, mut marks) = told_by_a_contribution();
        marks.make_sure(&mut bench.at());
        marks.make_sure(&mut bench.at());
        assert_eq!(kinds(&mut bench), [Kind::Mark], "once");
    }

    #[test]
    fn what_a_contribution_has_told_is_made_sure_when_a_member_says_it_by_a_frame_of_its_own() {
        let (mut bench, mut marks) = told_by_a_contribution();
        marks.on_mark(&mut bench.at(), 0, 5);
        marks.on_mark(&mut bench.at(), 1, 5);
        assert_eq!(kinds(&mut bench), [Kind::Mark], "once");
    }

    #[test]
    fn what_is_stable_need_not_be_told() {
        let (mut bench, mut marks) = told_by_a_contribution();
        marks.settle(5);
        marks.make_sure(&mut bench.at());
        assert_eq!(kinds(&mut bench), []);
    }
}
