//! Groups whose members share a host give and take over a board, memory that all of them have
//! mapped, and need no node for that. Groups of several hosts have one on each, and go over the
//! tree as one member of each host.
//!
//! Such a group is made over the tree like any other, and remains there: the tree tells when a
//! member dies or leaves. Its first two operations, which nobody sees, find out whether all members
//! can have a board (`founding`). If so, all operations go over it (`running`): cut into pieces
//! (`cut`, `piece`) and folded in the order of the tree (`shape`, `fold`), so that the bits are
//! those of the tree. `span` is how a group lies on several hosts, whose `heads` make one more
//! group and bring the others the answers of that. `lookout` is what a waiting thread looks for,
//! `first_wait` how it waits for a short operation, and `room` says whether it may keep its
//! processor meanwhile. If not, they go over the tree. What is posted before that is decided waits.
//! A member that waits for long tells its node for which ranks (`late`).
//!
//! ```text
//!   post --> [waits] --founding--> running: board, no node          every member can
//!                         '------> lane:    tree                    somebody cannot
//! ```

mod cut;
mod first_wait;
mod fold;
mod founding;
mod heads;
mod late;
mod lookout;
mod over_lane;
mod piece;
mod room;
mod running;
mod shape;
mod sleepers;
mod span;

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use trib_proto::Nanos;
use trib_proto::leaf::{GroupId, Standstill};
use trib_transport::memory::{Bell, Board};
use trib_wire::{RankList, Signature};

use super::lane::Lane;
use super::operation::Operation;
use crate::completion::Completion;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Memory;
use crate::posting::Part;
use founding::{Arrivals, Founding, Verdict};
use late::{LATE_PAUSE, Position};
use over_lane::OverLane;
use room::Seat;
use running::{Broken, Running};
use shape::Shape;
use sleepers::Sleepers;
use span::Span;

pub(crate) use first_wait::FirstWait;
pub(crate) use lookout::Lookout;
pub(crate) use shape::HostTrees;

/// The groups of one engine that have boards, or may come to one.
pub(super) struct Boards {
    trees: Option<Arc<HostTrees>>,
    /// None if this process may not share memory.
    bell: Option<Bell>,
    /// Where this process may run. It is asked once, because that takes files.
    seat: Seat,
    arrivals: Arrivals,
    /// An index is used again when its group is gone.
    groups: Vec<Option<Group>>,
    /// The indices of groups that are founded, or have operations under way.
    active: Vec<usize>,
    /// The threads that sleep until something comes.
    sleepers: Sleepers,
    /// A request has ended since this was last read.
    pub(super) finished: bool,
    operations: u64,
    /// From when on the node may be told again which ranks are late.
    free: Nanos,
}

/// A group some of whose members share a host.
struct Group {
    state: Arc<GroupState>,
    id: GroupId,
    /// The group of its heads, if this member is one.
    heads: Option<GroupId>,
    /// It has failed. Until then what was on its way may still come.
    ends: Option<Nanos>,
    way: Way,
}

enum Way {
    /// It is not decided. The operations wait.
    Founding(Box<Founding>, VecDeque<Waiting>),
    Board(Box<Running>),
    Tree,
    /// The group has failed, or the way to a board has.
    Failed,
}

struct Waiting {
    part: Part,
    completion: Arc<Completion>,
}

/// What has become of an operation that was to be done at once.
pub(super) enum Ran {
    /// It is over.
    Over,
    /// It is posted, and this member has given to it.
    Begun(Arc<Completion>),
    /// It is to be posted.
    Not,
}

/// A group that is about to be made, and is to look for boards.
pub(super) struct Plan {
    reach: Reach,
}

/// Over which hosts a group reaches.
enum Reach {
    /// Over one, where it is folded in this order.
    Host(Shape),
    Hosts(Box<Span>),
}

impl Group {
    /// Leaves the group of the heads, if this member is one.
    fn leave_heads(&mut self, now: Nanos, lane: &mut Lane) {
        if let Some(heads) = self.heads.take() {
            lane.free_group(now, heads);
            lane.flush(now);
        }
    }
}

impl Boards {
    /// `shares` says whether this process may share memory. One that may not, or cannot, takes part
    /// in founding nevertheless, and says so to the others.
    pub(super) fn new(trees: Option<Arc<HostTrees>>, shares: bool) -> Boards {
        let bell = (shares && trees.is_some()).then(Bell::new);
        let bell = bell.and_then(|made| made.inspect_err(|cause| tracing::info!(%cause, "this rank has no bell")).ok());
        Boards {
            trees,
            bell,
            seat: Seat::own(),
            arrivals: Arrivals::default(),
            groups: Vec::new(),
            active: Vec::new(),
            sleepers: Sleepers::default(),
            finished: false,
            operations: 0,
            free: Nanos(0),
        }
    }

    /// How many operations went over boards.
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    /// What a sleeper watches, if it waits for anything of a board.
    pub(super) fn bell(&self) -> Option<RawFd> {
        self.bell.as_ref().filter(|_| self.is_busy()).map(AsRawFd::as_raw_fd)
    }

    /// Whether members of a group look for a board. All of them get the same answer.
    pub(super) fn plan(&self, members: &RankList, me: u32) -> Option<Plan> {
        let trees = self.trees.as_ref()?;
        let reach = match trees.shape(members) {
            Some(shape) => Reach::Host(shape),
            None => Reach::Hosts(Box::new(Span::of(trees, members, me)?)),
        };
        Some(Plan { reach })
    }

    /// The group has been begun on its lane, and may come to a board.
    pub(super) fn begin(&mut self, plan: Plan, (members, tag): (RankList, u64), id: GroupId, state: &Arc<GroupState>) {
        let founding = Box::new(Founding::new(id, members, tag, state, plan, self.seat));
        let group =
            Group { state: state.clone(), id, heads: None, ends: None, way: Way::Founding(founding, VecDeque::new()) };
        let free = self.groups.iter().position(Option::is_none).unwrap_or(self.groups.len());
        if free == self.groups.len() {
            self.groups.push(None);
        }
        state.know_board(free);
        self.groups[free] = Some(group);
        self.active.push(free);
    }

    /// The index of a group that has not been left.
    #[inline]
    pub(super) fn index_of(&self, state: &GroupState) -> Option<usize> {
        let at = state.board()?;
        // The index may be another group's by now.
        let group = self.groups.get(at)?.as_ref()?;
        std::ptr::eq(&raw const *group.state, state).then_some(at)
    }

    /// The same, if this operation of the group is posted here, and not on its lane.
    #[inline]
    pub(super) fn takes(&self, state: &GroupState, signature: &Signature) -> Option<usize> {
        let here = |at: &usize| match &self.groups[*at] {
            Some(Group { way: Way::Founding(..), .. }) => true,
            Some(Group { way: Way::Board(running), .. }) => running.serves(signature),
            _ => false,
        };
        self.index_of(state).filter(here)
    }

    /// Posts an operation of a group that `takes` it.
    pub(super) fn post(
        &mut self,
        at: usize,
        (now, lane): (Nanos, &mut Lane),
        part: Part,
    ) -> Result<Arc<Completion>, Error> {
        let Boards { groups, bell: Some(bell), finished, operations, active, .. } = self else {
            return self.wait(at, part);
        };
        let Some(group) = groups.get_mut(at).and_then(Option::as_mut) else { return Err(unknown()) };
        if let Some(error) = group.state.error() {
            return Err(error.clone());
        }
        let Way::Board(running) = &mut group.way else { return self.wait(at, part) };
        let Part { signature, memory, .. } = part;
        let completion = Arc::new(Completion::on_board(at, signature));
        running.post(signature, memory, completion.clone());
        *operations += 1;
        // What is broken shows when the group goes on.
        let mut trunk = OverLane::new(lane, now, group.heads);
        *finished |= running.advance(bell, &mut trunk).unwrap_or(true);
        if running.is_busy() && !active.contains(&at) {
            active.push(at);
        }
        Ok(completion)
    }

    /// An operation of this group has been posted on its lane. Those that share a board with this
    /// rank and call something else would not hear of it there.
    pub(super) fn note(&mut self, state: &GroupState, (now, lane): (Nanos, &mut Lane), signature: Signature) {
        let Some(at) = self.index_of(state) else { return };
        if let Some(Some(Group { way: Way::Board(running), .. })) = self.groups.get_mut(at) {
            running.note(signature);
            if !self.active.contains(&at) {
                self.active.push(at);
            }
            self.advance(at, now, lane);
        }
    }

    /// Does a short operation of a group, if it goes over a board, whose caller waits for it.
    #[inline]
    pub(super) fn run(
        &mut self,
        group: &GroupState,
        signature: Signature,
        memory: &mut Memory,
        first_wait: &mut FirstWait<'_>,
    ) -> Ran {
        let Some(at) = self.index_of(group) else { return Ran::Not };
        let Boards { groups, bell: Some(bell), operations, active, .. } = self else { return Ran::Not };
        let Some(Group { way: Way::Board(running), .. }) = &mut groups[at] else { return Ran::Not };
        if group.error().is_some() || !running.serves(&signature) {
            return Ran::Not;
        }
        match running.run_short(signature, memory, bell, first_wait) {
            Ok(()) => {
                *operations += 1;
                Ran::Over
            }
            Err(false) => Ran::Not,
            Err(true) => {
                let completion = Arc::new(Completion::on_board(at, signature));
                running.post_given(signature, std::mem::replace(memory, Memory::none()), completion.clone());
                *operations += 1;
                if !active.contains(&at) {
                    active.push(at);
                }
                Ran::Begun(completion)
            }
        }
    }

    fn wait(&mut self, at: usize, part: Part) -> Result<Arc<Completion>, Error> {
        let group = self.groups.get_mut(at).and_then(Option::as_mut);
        let Some(Group { state, way: Way::Founding(_, waiting), .. }) = group else { return Err(unknown()) };
        if let Some(error) = state.error() {
            return Err(error.clone());
        }
        let completion = Arc::new(Completion::on_board(at, part.signature));
        waiting.push_back(Waiting { part, completion: completion.clone() });
        Ok(completion)
    }

    /// Whether any group needs progress even while the application makes no call.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// When a group has something to do though nothing has come.
    pub(super) fn next_deadline(&self, now: Nanos) -> Nanos {
        let due = |at: &usize| match self.groups.get(*at) {
            Some(Some(Group { way: Way::Founding(founding, _), .. })) => founding.deadline(now),
            Some(Some(Group { way: Way::Board(running), ends, .. })) => {
                running.word_due(now, self.free).min(ends.unwrap_or(Nanos::NEVER))
            }
            _ => Nanos::NEVER,
        };
        self.active.iter().map(due).min().unwrap_or(Nanos::NEVER)
    }

    /// Goes on with every group that has something under way. `rung` says that the bell was heard.
    pub(super) fn progress(&mut self, now: Nanos, lane: &mut Lane, rung: bool) {
        if self.active.is_empty() && !rung {
            return;
        }
        let founds = |at: &usize| matches!(self.groups.get(*at), Some(Some(Group { way: Way::Founding(..), .. })));
        if let Some(bell) = &self.bell
            && (rung || self.active.iter().any(founds))
        {
            bell.clear(|token, memory| self.arrivals.add(token, memory));
        }
        let mut next = 0;
        while let Some(at) = self.active.get(next).copied() {
            self.advance(at, now, lane);
            // One that is over has made room for the next.
            next += usize::from(self.active.get(next) == Some(&at));
        }
    }

    /// Goes on with one group.
    pub(super) fn advance(&mut self, at: usize, now: Nanos, lane: &mut Lane) {
        self.go_on(at, now, lane);
        let is_active = match self.groups.get_mut(at).and_then(Option::as_mut) {
            Some(Group { way: Way::Founding(..), .. }) => true,
            Some(Group { way: Way::Board(running), id, .. }) => {
                if let Some(word) = running.word(now, self.free) {
                    self.free = now + LATE_PAUSE;
                    lane.tell_of_board(now, *id, word);
                }
                if !running.is_busy() {
                    running.wake_up();
                }
                running.is_busy() || running.has_accused()
            }
            _ => false,
        };
        if !is_active {
            self.active.retain(|other| *other != at);
        }
    }

    fn go_on(&mut self, at: usize, now: Nanos, lane: &mut Lane) {
        let Some(group) = self.groups.get_mut(at).and_then(Option::as_mut) else { return };
        if !matches!(group.way, Way::Tree | Way::Failed)
            && let Some(error) = group.state.error()
        {
            let error = error.clone();
            return self.end(at, &error, now, lane);
        }
        match &mut group.way {
            Way::Founding(..) => {
                self.found(at, now, lane);
                // It may have posted, joined or left something.
                lane.flush(now);
            }
            Way::Board(running) => {
                let Some(bell) = &self.bell else { return };
                let mut trunk = OverLane::new(lane, now, group.heads);
                let advanced = running.advance(bell, &mut trunk);
                if trunk.has_posted() {
                    lane.flush(now);
                }
                match advanced {
                    Ok(finished) => self.finished |= finished,
                    Err(Broken { fault }) => {
                        let (state, id) = (group.state.clone(), group.id);
                        let error = lane.driver.failure(&fault, Some(&state), None);
                        state.fail(error.clone());
                        // The others learn from the tree that the group does not go on, and why.
                        lane.report(now, id, fault);
                        self.end(at, &error, now, lane);
                    }
                }
            }
            Way::Tree | Way::Failed => {}
        }
    }

    fn found(&mut self, at: usize, now: Nanos, lane: &mut Lane) {
        let fits = self.mapped() <= BYTES_MAX;
        let Some(group) = self.groups[at].as_mut() else { return };
        let Way::Founding(founding, mut waiting) = std::mem::replace(&mut group.way, Way::Failed) else { return };
        let bell = self.bell.as_ref().filter(|_| fits);
        let verdict = founding.advance(now, lane, &mut group.heads, bell, &mut self.arrivals);
        match verdict {
            Ok(Verdict::Open(founding)) => {
                group.way = Way::Founding(founding, waiting);
            }
            Ok(Verdict::Board(mut running)) => {
                for Waiting { part, completion } in waiting {
                    if running.serves(&part.signature) {
                        running.post(part.signature, part.memory, completion);
                        self.operations += 1;
                    } else {
                        running.note(part.signature);
                        post_on_tree(lane, now, group.id, Waiting { part, completion });
                    }
                }
                group.way = Way::Board(running);
                lane.tell_of_board(now, group.id, None);
                group.state.ready.finish(Ok(()));
                self.finished = true;
                self.go_on(at, now, lane);
            }
            Ok(Verdict::Tree) => {
                group.way = Way::Tree;
                group.leave_heads(now, lane);
                waiting.drain(..).for_each(|waiting| post_on_tree(lane, now, group.id, waiting));
                group.state.ready.finish(Ok(()));
                self.finished = true;
            }
            Err(error) => {
                group.leave_heads(now, lane);
                let error = group.state.error().cloned().unwrap_or(error);
                waiting.drain(..).for_each(|waiting| waiting.completion.finish(Err(error.clone())));
                group.state.ready.finish(Err(error));
                self.finished = true;
            }
        }
    }

    /// The bytes of all boards, those that are yet to come included.
    fn mapped(&self) -> usize {
        let members = |group: &Group| match &group.way {
            Way::Founding(founding, _) => founding.members(),
            Way::Board(running) => running.members(),
            Way::Tree | Way::Failed => 0,
        };
        self.groups.iter().flatten().filter_map(|group| Board::bytes(members(group))).sum()
    }

    /// A group has failed. What was called before the cause may be on its way: an answer that a
    /// head is about to show, or what a late member gives. So it has a moment to come.
    fn end(&mut self, at: usize, error: &Error, now: Nanos, lane: &mut Lane) {
        if let Some(Some(Group { way: Way::Board(running), ends, heads, .. })) = self.groups.get_mut(at)
            && let Some(bell) = &self.bell
        {
            let until = *ends.get_or_insert(now + LAST_MOMENT);
            let mut trunk = OverLane::new(lane, now, *heads);
            self.finished |= running.finish_up(bell, &mut trunk);
            if running.is_busy() && now < until {
                return;
            }
        }
        self.fail(at, error, now, lane);
    }

    /// A group is over at this member: what it has not done ends with this error.
    fn fail(&mut self, at: usize, error: &Error, now: Nanos, lane: &mut Lane) {
        let Some(group) = self.groups.get_mut(at).and_then(Option::as_mut) else { return };
        // What the heads have under way lies on the board, which is there until they have left.
        group.leave_heads(now, lane);
        match std::mem::replace(&mut group.way, Way::Failed) {
            Way::Founding(_, waiting) => {
                waiting.into_iter().for_each(|waiting| waiting.completion.finish(Err(error.clone())));
                group.state.ready.finish(Err(error.clone()));
            }
            // The others are not told here that it goes on no more: they hear of what has happened,
            // and the same, from the tree or from the board.
            Way::Board(mut running) => running.end().for_each(|completion| completion.finish(Err(error.clone()))),
            Way::Tree | Way::Failed => {}
        }
        self.finished = true;
    }

    /// The group is left, on its lane already. If it no longer `worked`, the board says nothing of
    /// that: the others hear from the tree why it does not, some of them later than this member.
    pub(super) fn free(&mut self, at: usize, (error, worked): (&Error, bool), now: Nanos, lane: &mut Lane) {
        if let Some(Some(Group { way: Way::Board(running), .. })) = self.groups.get_mut(at)
            && let Some(bell) = self.bell.as_ref().filter(|_| worked)
        {
            running.leave(bell);
        }
        self.fail(at, error, now, lane);
        self.active.retain(|other| *other != at);
        if let Some(group) = self.groups.get_mut(at) {
            *group = None;
        }
    }

    /// Leaves all groups.
    pub(super) fn free_all(&mut self, error: &Error, now: Nanos, lane: &mut Lane) {
        for at in 0..self.groups.len() {
            let worked = self.groups[at].as_ref().is_some_and(|group| group.state.error().is_none());
            self.free(at, (error, worked), now, lane);
        }
    }

    /// The group with this index, if it works over a board.
    fn running(&self, at: usize) -> Option<&Running> {
        running_at(&self.groups, at)
    }

    /// Whether the group has members on other hosts.
    pub(super) fn is_wide(&self, at: usize) -> bool {
        self.running(at).is_some_and(Running::is_wide)
    }

    /// The operation over the lane for which this member of a group waits.
    pub(super) fn flight(&self, at: usize) -> Option<&Completion> {
        self.running(at)?.flight().map(Arc::as_ref)
    }

    /// How far this member of a group is, if it has something under way there.
    pub(super) fn position(&self, at: usize) -> Option<Position> {
        self.running(at)?.position()
    }

    /// What a thread looks for that waits for an operation of this group; `None` if the group has
    /// no board, or does nothing there.
    pub(super) fn lookout(&self, at: usize) -> Option<Lookout> {
        self.running(at)?.lookout()
    }

    /// Whether a member of this group that waits may keep its processor for a while.
    pub(super) fn is_roomy(&self, at: usize) -> bool {
        self.running(at).is_some_and(Running::is_roomy)
    }

    /// Whether this thread should wait for this group on another processor.
    pub(super) fn is_crowded(&self, at: usize) -> bool {
        self.running(at).is_some_and(Running::is_crowded)
    }

    /// For which ranks an operation of the group with this index waits, as far as this member sees
    /// it.
    pub(super) fn late(&self, at: usize) -> Option<Standstill> {
        self.running(at)?.standstill(Nanos(0))
    }

    /// Called before a sleep, before it is asked how long that may be.
    pub(super) fn see(&mut self, now: Nanos) {
        for at in &self.active {
            if let Some(Some(Group { way: Way::Board(running), .. })) = self.groups.get_mut(*at) {
                running.see(now);
            }
        }
    }

    /// Called before every sleep. Returns whether there is something to do instead.
    pub(super) fn fall_asleep(&mut self) -> bool {
        let Boards { sleepers, groups, active, .. } = self;
        sleepers.fall_asleep(running_of(groups, active))
    }

    /// Called after every sleep.
    pub(super) fn wake_up(&mut self) {
        let Boards { sleepers, groups, active, .. } = self;
        sleepers.wake_up(running_of(groups, active));
    }

    /// Called when a thread stops looking that has gone on with groups. Returns whether a sleeping
    /// thread has something to do.
    pub(super) fn stop_looking(&self) -> bool {
        self.sleepers.look_for(running_of(&self.groups, &self.active))
    }
}

/// The groups with these indices that have boards.
fn running_of<'a>(groups: &'a [Option<Group>], indices: &'a [usize]) -> impl Iterator<Item = &'a Running> {
    indices.iter().filter_map(|at| running_at(groups, *at))
}

fn running_at(groups: &[Option<Group>], at: usize) -> Option<&Running> {
    match &groups.get(at)?.as_ref()?.way {
        Way::Board(running) => Some(running),
        _ => None,
    }
}

/// Posts an operation that has waited, and goes over the tree.
fn post_on_tree(lane: &mut Lane, now: Nanos, group: GroupId, waiting: Waiting) {
    let Waiting { part: Part { signature, memory, stretch_of }, completion } = waiting;
    let operation = Operation::new(group, memory, completion.clone()).stretch_of(stretch_of);
    if let Err(error) = lane.post(now, None, signature, operation) {
        completion.finish(Err(error));
    }
}

/// How long what is on its way may take to come when its group has failed.
const LAST_MOMENT: Nanos = Nanos::from_millis(100);

/// A program with more communicators than that has room for does the operations of the others over
/// the tree. A page takes memory when it is first used.
const BYTES_MAX: usize = 512 << 20;

/// A group is known here before a caller gets it, so this is a bug.
fn unknown() -> Error {
    Error::broken("an operation for a group that is not among those with boards")
}

#[cfg(test)]
mod tests;
