//! Who holds which results of a group on one path. Contributions and results carry that; while the
//! group rests, frames of their own do.

use trib_wire::header::FLAG_STREAM;
use trib_wire::{ChildIndex, Header, Kind};

use super::at::At;
use super::info::Duty;
use super::output::{NodeOutput, Payload, Target};
use super::place::Place;
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
    /// Whether programs wait for marks, so that they go on at once.
    prompt: bool,
}

impl Marks {
    /// All ranks below these members hold the results below `start`.
    pub(super) fn new(path: Path, place: &Place, (members, start): (usize, u64)) -> Marks {
        let flags = if path == Path::Stream { FLAG_STREAM } else { 0 };
        Marks { flags, held: vec![start; members], stable: start, told: start, prompt: place.config.strict }
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
        self.go_on(at);
    }

    /// A member has said by a contribution or a question what it holds. Where programs wait for it,
    /// and nothing has taken it further, it goes on.
    pub(super) fn pass_on<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        if self.prompt {
            self.go_on(at);
        }
    }

    /// All ranks of a member have left the group and lack nothing any more, whether they hold the
    /// results or not. Nobody need keep anything for them.
    pub(super) fn leave<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, position: usize) {
        self.hold(position, u64::MAX);
        if self.least() != u64::MAX {
            self.go_on(at);
        }
    }

    /// Tells what all members hold, if that is news.
    fn go_on<B>(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        let least = self.least();
        if least <= self.told.max(self.stable) {
            return;
        }
        self.told = least;
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
