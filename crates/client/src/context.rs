//! One rank of one job.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use trib_messages::prediction::{Prediction, ShapePrediction};
use trib_proto::Limits;
use trib_wire::{GroupName, Rank, RankList};

use crate::counters::Counters;
use crate::engine::Shared;
use crate::error::Error;
use crate::group::{Group, GroupState};
use crate::join::{self, Hold};
use crate::params::Params;
use crate::request::Request;

/// A job of which this process is a rank. Dropping it leaves the job, as [`Context::finalize`]
/// does.
pub struct Context {
    shared: Arc<Shared>,
    rank: u32,
    size: u32,
    prediction: Option<Prediction>,
    /// Taken when the job is left. A forked child owns none of this and must not drop it.
    ties: ManuallyDrop<Ties>,
    left: bool,
}

/// What binds the process to its job.
pub(crate) struct Ties {
    pub(crate) helper: JoinHandle<()>,
    /// Rank 0's connection to the manager, with which the job ends.
    pub(crate) manager: Option<Hold>,
}

impl Context {
    /// Joins the job. The call is collective over all ranks. With an out-of-band exchange, all
    /// ranks get the same verdict.
    pub fn join(params: Params) -> Result<Context, Error> {
        join::join(params)
    }

    pub(crate) fn new(shared: Arc<Shared>, rank: u32, size: u32, ties: Ties) -> Context {
        Context { shared, rank, size, prediction: None, ties: ManuallyDrop::new(ties), left: false }
    }

    /// Keeps the manager's prediction.
    pub(crate) fn predict(&mut self, prediction: Option<Prediction>) {
        self.prediction = prediction;
    }

    /// Keeps rank 0's connection to the manager.
    pub(crate) fn hold(&mut self, manager: Hold) {
        self.ties.manager = Some(manager);
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
        self.shared.lanes().count() as u32
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
        let state = Arc::new(GroupState::new(rank, &members, GroupName::new(name), self.lanes() as usize));
        self.shared.create_group(members, tag, &state)?;
        let request = Request::new(self.shared.clone(), state.ready.clone());
        Ok((Group::new(self.shared.clone(), state), request))
    }

    /// Fails in a process other than the one that joined: a forked child must not use the context.
    pub fn check_process(&self) -> Result<(), Error> {
        self.shared.fork.check()
    }

    /// Polls everything outstanding once and never waits.
    pub fn progress(&self) -> Result<(), Error> {
        self.shared.poll()
    }

    /// Tells the manager that the program goes on without the tree, or without part of it, and why,
    /// so that `trib jobs` and `trib explain` show it. Only the first call of rank 0 counts. It
    /// waits for no answer.
    pub fn fall_back(&self, why: &str) -> Result<(), Error> {
        self.shared.fork.check()?;
        if let Some(hold) = &self.ties.manager {
            hold.fall_back(why);
        }
        Ok(())
    }

    /// The operations of a group of these ranks, in this order, for which the tree is predicted to
    /// be at least as fast as the hosts' own algorithms. All ranks get the same answer. `None`
    /// where nothing is predicted for such a group.
    pub fn prediction(&self, members: &[Rank]) -> Option<&ShapePrediction> {
        self.prediction.as_ref()?.of(members)
    }

    /// The limits that the manager granted to each lane.
    pub fn limits(&self) -> Result<Limits, Error> {
        self.shared.limits()
    }

    /// Counts since the job was joined.
    pub fn counters(&self) -> Result<Counters, Error> {
        self.shared.counters()
    }

    /// Leaves the job: it leaves all groups, waits at most a second for frames that are still
    /// queued, and closes the connections. Requests and groups may be dropped before or after.
    pub fn finalize(mut self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Error> {
        self.shared.fork.check()?;
        if std::mem::replace(&mut self.left, true) {
            return Ok(());
        }
        let stopped = self.shared.stop(LINGER);
        // SAFETY: `left` makes sure that the ties are taken once.
        let Ties { helper, manager } = unsafe { ManuallyDrop::take(&mut self.ties) };
        let helped = helper.join();
        if let Some(hold) = manager {
            hold.end();
        }
        stopped?;
        helped.map_err(|_| Error::broken("the helper thread panicked"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Errors on the way out are lost here; a caller that wants to know them calls `finalize`.
        let _ = self.leave();
    }
}

const LINGER: Duration = Duration::from_secs(1);
