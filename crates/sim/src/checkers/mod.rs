//! What must hold in every run, checked apart from the simulation: the checkers see what crosses
//! the drivers' interface and what the program sees, never the inside of a core.
//!
//! Map: `agreement` (under `strict`, all ranks say the same of an operation), `same_bits` (every
//! element has the expected value), `exactly_once` (nothing is read, delivered or completed twice
//! or outside its range), `recovery` (what a rank still lacks is kept by those ranks that have it),
//! `faults` (no fault has no cause, and no cause has no fault), `gone` (a rank that is known to be
//! gone is not waited for), `epochs` (no node has two homes at once), `memory` (buffers stay
//! within the grant), `no_leak` (nothing is left at the end), `traffic` (waiting is cheap),
//! `causes` (a node sends no more than it was asked for), `fairness` (nobody overtakes in the line
//! for the lock), `liveness` (everything ends).

mod agreement;
mod causes;
mod epochs;
mod exactly_once;
mod fairness;
mod faults;
mod gone;
mod liveness;
mod memory;
mod no_leak;
mod ranges;
mod recovery;
mod same_bits;
mod traffic;

pub use memory::{Account, Holdings};
pub use ranges::Ranges;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use trib_proto::{Limits, Nanos, Path, window};
use trib_wire::{Collective, Fault, Placement, Signature};

use crate::fabric::Tree;
use crate::options::Options;
use crate::symbol::Expr;
use crate::workload::Workload;
use causes::Causes;
use fairness::Line;
use traffic::Traffic;

/// The first thing that went wrong in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The checker that found it.
    pub checker: &'static str,
    /// When.
    pub at: Nanos,
    /// What.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} s: {}", self.checker, self.at, self.what)
    }
}

/// An operation as one member sees it.
#[derive(Clone, Debug, Default)]
struct Member {
    rank: u32,
    signature: Option<Signature>,
    posted: bool,
    delivered: Ranges,
    outcome: Option<Result<Range<u64>, Fault>>,
    /// The elements of which the rank keeps its contribution, though the operation is over.
    kept: Option<Range<u64>>,
}

struct Operation {
    group: usize,
    expected: Option<Expr>,
    members: Vec<Member>,
    endings: Vec<Ending>,
    /// Whether it is streamed, and the number after its last piece; once a rank has sent that one.
    end: Option<(bool, u64)>,
}

/// How an operation ended at one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// The member.
    pub rank: u32,
    /// When.
    pub at: Nanos,
    /// Why it failed, if it did.
    pub fault: Option<Fault>,
}

#[derive(Clone, Debug, Default)]
struct GroupState {
    /// Ranks that have freed it.
    freed: Vec<u32>,
    /// Whether it has failed at some member.
    failed: bool,
}

/// Where in its vector a numbered fragment or segment of a group lies.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Piece {
    operation: usize,
    range: Range<u64>,
}

/// What a rank keeps for others.
#[derive(Clone, Default, Debug)]
struct RankRoom {
    /// The bytes that it may keep.
    most: u64,
    /// The bytes that it keeps.
    kept: u64,
    /// What it has sent, by group and path.
    sent: BTreeMap<(usize, bool), Sent>,
}

/// The pieces of a group that a rank has sent over one path.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    /// The number after the last of them.
    end: u64,
    /// The rank's epoch.
    epoch: u32,
    /// The number after the last that it had sent when this epoch began.
    before: u64,
}

/// Everything that the checkers remember of a run.
pub struct Checkers {
    tree: Tree,
    work: Workload,
    operations: Vec<Operation>,
    groups: Vec<GroupState>,
    dead: Vec<bool>,
    /// Ranks that were stopped for so long that others may take them for dead.
    stopped: Vec<bool>,
    /// Ranks that have left the job.
    left: Vec<bool>,
    /// When the node above each rank was told last that the rank's process is gone, and in which
    /// epoch.
    seen_gone: Vec<Option<(Nanos, Placement)>>,
    /// Whether some rank has died of which nobody is told.
    dies_silently: bool,
    /// Whether a process has ended that was a home of nodes or might have become one, so that nodes
    /// may have to be looked for.
    bereft: bool,
    /// How many nodes have ended because nobody was left below.
    deserted: usize,
    /// When a core began last.
    epoch_at: Nanos,
    /// The placement that follows from all that any core knew when it began.
    newest: Placement,
    /// Nodes that are gone in a job that does not go on without them.
    lost: Vec<usize>,
    recovers: bool,
    /// Whether operations end at all ranks alike.
    strict: bool,
    /// Whether the job has gone to another epoch.
    moved: bool,
    /// Nodes and placements for which some process hosts the node.
    hosted: BTreeSet<(usize, Placement)>,
    limits: Limits,
    /// The link that datagrams do not pass: the node at its upper end, and the first and the last
    /// rank at or below its lower end.
    narrow: Option<(usize, (u32, u32))>,
    pieces: BTreeMap<(usize, bool, u64), Piece>,
    stable: BTreeMap<(usize, bool, u32), u64>,
    /// The last words about stable pieces, after which the ranks that heard them forget.
    heard: Vec<(usize, bool, u32, u64)>,
    rooms: Vec<RankRoom>,
    traffic: Vec<Traffic>,
    causes: Vec<Causes>,
    /// The requests for the lock at each core of the root.
    lines: BTreeMap<usize, Line>,
    now: Nanos,
    /// When the last planned fault is over.
    calm_at: Nanos,
    progress: Nanos,
    failure: Option<Failure>,
}

impl Checkers {
    /// Checkers for a program on a tree, under these options.
    pub fn new(tree: &Tree, work: &Workload, options: &Options) -> Checkers {
        let operations = work.operations.iter().map(|plan| {
            let members = work.groups[plan.group].members.iter();
            Operation {
                group: plan.group,
                expected: None,
                endings: Vec::new(),
                end: None,
                members: members.map(|rank| Member { rank: *rank, ..Member::default() }).collect(),
            }
        });
        Checkers {
            tree: tree.clone(),
            operations: operations.collect(),
            groups: vec![GroupState::default(); work.groups.len()],
            dead: vec![false; tree.leaves.len()],
            stopped: vec![false; tree.leaves.len()],
            left: vec![false; tree.leaves.len()],
            seen_gone: vec![None; tree.leaves.len()],
            dies_silently: false,
            bereft: false,
            deserted: 0,
            epoch_at: Nanos(0),
            newest: Placement::FIRST,
            lost: Vec::new(),
            recovers: options.recovers,
            strict: options.strict,
            moved: false,
            hosted: BTreeSet::new(),
            limits: options.limits,
            narrow: None,
            pieces: BTreeMap::new(),
            stable: BTreeMap::new(),
            heard: Vec::new(),
            rooms: vec![RankRoom { most: options.rank_memory, ..RankRoom::default() }; tree.leaves.len()],
            causes: Vec::new(),
            lines: BTreeMap::new(),
            traffic: vec![Traffic::default(); tree.leaves.len()],
            work: work.clone(),
            now: Nanos(0),
            calm_at: Nanos(0),
            progress: Nanos(0),
            failure: None,
        }
    }

    /// The time goes on. The last planned fault is over at `calm_at`.
    pub fn tick(&mut self, now: Nanos, calm_at: Nanos) {
        self.check_forgotten();
        (self.now, self.calm_at) = (now, calm_at);
    }

    /// What went wrong first.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Something is wrong; only the first time counts.
    pub fn fail(&mut self, checker: &'static str, what: String) {
        let at = self.now;
        self.failure.get_or_insert(Failure { checker, at, what });
    }

    /// A rank was killed.
    pub fn rank_killed(&mut self, rank: u32) {
        self.dead[rank as usize] = true;
        self.progress = self.now;
    }

    /// A rank will stand still for so long that others may take it for dead.
    pub fn rank_stopped(&mut self, rank: u32) {
        self.stopped[rank as usize] = true;
    }

    /// A node is gone, and the job does not go on without it: no group with ranks below it need
    /// succeed any more.
    pub fn node_killed(&mut self, node: usize) {
        self.lost.push(node);
        self.progress = self.now;
    }

    /// Datagrams do not get through the link above these ranks to a node.
    pub fn narrowed(&mut self, node: usize, ranks: (u32, u32)) {
        self.narrow = Some((node, ranks));
    }

    /// The rank posts the operation, with the signature that its script says.
    pub fn posted(&mut self, operation: usize, rank: u32) {
        let plan = &self.work.operations[operation];
        let signature = match plan.odd {
            Some((odd, signature)) if odd == rank => signature,
            _ => plan.signature,
        };
        self.progress(rank);
        let member = self.member(operation, rank);
        member.posted = true;
        member.signature = Some(signature);
    }

    /// The rank frees the group.
    pub fn freed(&mut self, group: usize, rank: u32) {
        self.progress(rank);
        self.check_rested(group, rank);
        self.groups[group].freed.push(rank);
    }

    /// A rank begins to make a group, which others may have waited for.
    pub fn creates(&mut self) {
        self.progress = self.now;
    }

    /// The group is ready at this rank.
    pub fn ready(&mut self, rank: u32) {
        self.progress(rank);
    }

    /// How each operation has ended so far, in the order in which it ended at its members.
    pub fn endings(&self) -> Vec<Vec<Ending>> {
        self.operations.iter().map(|operation| operation.endings.clone()).collect()
    }

    /// Whether the operation is over at this rank.
    pub fn is_complete(&self, operation: usize, rank: u32) -> bool {
        let members = &self.operations[operation].members;
        members.iter().any(|m| m.rank == rank && m.outcome.is_some())
    }

    fn progress(&mut self, rank: u32) {
        self.progress = self.now;
        self.traffic[rank as usize].progress(self.now);
    }

    fn member(&mut self, operation: usize, rank: u32) -> &mut Member {
        let members = &mut self.operations[operation].members;
        let at = members.iter().position(|m| m.rank == rank);
        &mut members[at.expect("only members post")]
    }

    fn size(&self, group: usize) -> u32 {
        self.work.groups[group].members.len() as u32
    }

    fn position(&self, group: usize, rank: u32) -> u32 {
        let members = &self.work.groups[group].members;
        members.iter().position(|m| *m == rank).expect("only members take part") as u32
    }

    fn given(&self, operation: usize, rank: u32) -> Range<u64> {
        let group = self.operations[operation].group;
        let signature = self.work.operations[operation].signature;
        window::given(&signature, self.size(group), self.position(group, rank))
    }

    fn gotten(&self, operation: usize, rank: u32) -> Range<u64> {
        let group = self.operations[operation].group;
        let signature = self.work.operations[operation].signature;
        window::gotten(&signature, self.size(group), self.position(group, rank))
    }

    /// The hull of the elements in `range` that a rank gets and that have not come to it. What it
    /// gives to an allgather it has, whether it comes or not.
    fn lacks(&self, operation: usize, member: &Member, range: &Range<u64>) -> Option<Range<u64>> {
        let overlap = |other: Range<u64>| other.start.max(range.start)..other.end.min(range.end);
        let gotten = self.gotten(operation, member.rank);
        if self.work.operations[operation].signature.collective != Collective::Allgather {
            return member.delivered.missing(&overlap(gotten));
        }
        let own = self.given(operation, member.rank);
        let sides = [gotten.start..own.start, own.end..gotten.end].map(|side| member.delivered.missing(&overlap(side)));
        let mut lacking = sides.into_iter().flatten();
        let first = lacking.next()?;
        Some(lacking.fold(first, |all, other| all.start.min(other.start)..all.end.max(other.end)))
    }

    /// The same of all elements.
    fn lacks_any(&self, operation: usize, member: &Member) -> Option<Range<u64>> {
        self.lacks(operation, member, &(0..u64::MAX))
    }

    fn is_disturbed(&self, group: usize) -> bool {
        let plan = &self.work.groups[group];
        let is_hurt = |rank: &u32| self.dead[*rank as usize] || self.stopped[*rank as usize];
        plan.disturbed.is_some() || plan.members.iter().any(is_hurt) || self.has_lost_a_node(group)
    }

    /// Whether the group has ranks below a node that is gone for good.
    fn has_lost_a_node(&self, group: usize) -> bool {
        let members = &self.work.groups[group].members;
        let is_below = |node: &usize| self.tree.nodes[*node].ranks.iter().any(|rank| members.contains(rank));
        self.lost.iter().any(is_below)
    }

    /// Whether the job has gone to another epoch.
    pub fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether any group may fail in this run.
    pub fn may_fail(&self) -> bool {
        (0..self.groups.len()).any(|group| self.is_disturbed(group))
    }

    fn name(&self, operation: usize) -> String {
        let plan = &self.work.operations[operation];
        format!("operation {operation} ({} in group {})", plan.signature, plan.group)
    }
}

/// Whether a path is the stream's, as part of a key.
fn streams(path: Path) -> bool {
    path == Path::Stream
}
