//! One rank of one job.

use trib_messages::prediction::{Prediction, ShapePrediction};
use trib_proto::Limits;
use trib_wire::{GroupName, Rank, RankList};

use crate::counters::Counters;
use crate::error::Error;
use crate::group::Group;
use crate::join::{self, Joined, Ties};
use crate::params::Params;
use crate::request::Request;
use crate::sum_kind::SumKind;

/// A job of which this process is a rank. Dropping it leaves the job, as [`Context::finalize`]
/// does.
pub struct Context {
    ties: Ties,
    rank: u32,
    size: u32,
    prediction: Option<Prediction>,
    /// How groups take sums unless they say it themselves.
    sums: Option<SumKind>,
}

impl Context {
    /// Joins the job. The call is collective over all ranks. With an out-of-band exchange, all
    /// ranks get the same verdict.
    pub fn join(params: Params) -> Result<Context, Error> {
        let (rank, size) = (params.rank, params.size);
        let Joined { ties, prediction } = join::join(params)?;
        let sums = Params::sums()?;
        Ok(Context { ties, rank, size, prediction, sums })
    }

    /// This process's rank in the job.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Number of lanes that the manager has granted: trees, or connections along the same tree.
    /// Long vectors are cut over them, and short ones take turns.
    pub fn lanes(&self) -> u32 {
        self.ties.shared.lanes().count() as u32
    }

    /// Makes a group of `members`, whose order gives the ranks in the group. The call is collective
    /// over them. Two creations with equal members at the same time must differ in `tag`.
    pub fn create_group(&self, members: RankList, tag: u64) -> Result<Group, Error> {
        let (group, request) = self.start_group(members, tag)?;
        request.wait(None)?;
        Ok(group)
    }

    /// Does the same without waiting. Operations may be posted at once: they start when the group
    /// is ready, and fail if it fails.
    pub fn start_group(&self, members: RankList, tag: u64) -> Result<(Group, Request), Error> {
        self.start_named_group(members, tag, "")
    }

    /// Does the same and gives the group a name, which errors and `trib explain` show. The first 63
    /// bytes of the name are kept. It decides nothing, and members may give different ones.
    pub fn start_named_group(&self, members: RankList, tag: u64, name: &str) -> Result<(Group, Request), Error> {
        if !members.is_valid(self.size) {
            return Err(Error::Invalid(format!(
                "a group has ranks below {}, each once; this list is not one: {members}",
                self.size
            )));
        }
        let Some(rank) = members.position(Rank(self.rank)) else {
            return Err(Error::Invalid(format!("rank {} is not in the member list {members}", self.rank)));
        };
        let (group, request) = Group::start_named(&self.ties.shared, rank, members, tag, GroupName::new(name))?;
        group.set_sums(self.sums);
        Ok((group, request))
    }

    /// Fails in a process other than the one that joined: a forked child must not use the context.
    pub fn check_process(&self) -> Result<(), Error> {
        self.ties.shared.fork.check()
    }

    /// Polls everything outstanding once and never waits.
    pub fn progress(&self) -> Result<(), Error> {
        self.ties.shared.poll()
    }

    /// Tells the manager that the program goes on without the tree, or without part of it, and why,
    /// so that `trib jobs` and `trib explain` show it. Only the first call of rank 0 counts. It
    /// waits for no answer.
    pub fn fall_back(&self, why: &str) -> Result<(), Error> {
        self.ties.fall_back(why)
    }

    /// The operations of a group of these ranks, in this order, for which the tree is predicted to
    /// be at least as fast as the hosts' own algorithms. All ranks get the same answer. `None`
    /// where nothing is predicted for such a group.
    pub fn prediction(&self, members: &[Rank]) -> Option<&ShapePrediction> {
        self.prediction.as_ref()?.of(members)
    }

    /// Whether a group of these ranks, in this order, does its operations in memory of its host, if
    /// all of them can map it. All ranks get the same answer.
    pub fn shares_memory(&self, members: &[Rank]) -> bool {
        self.ties.shared.looks_for_board(&RankList::from_ranks(members.iter().map(|rank| rank.0)))
    }

    /// The limits that the manager granted to each lane.
    pub fn limits(&self) -> Result<Limits, Error> {
        self.ties.shared.limits()
    }

    /// Counts since the job was joined.
    pub fn counters(&self) -> Result<Counters, Error> {
        self.ties.shared.counters()
    }

    /// Leaves the job: it leaves all groups, waits at most a second for frames that are still
    /// queued, and closes the connections. Requests and groups may be dropped before or after.
    pub fn finalize(mut self) -> Result<(), Error> {
        self.ties.leave()
    }
}
