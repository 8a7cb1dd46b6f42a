//! A process that may host nodes of a job's tree, each in the epochs whose placement names it.

use std::collections::{BTreeMap, BTreeSet};

use trib_wire::{ChildIndex, Epoch, NodeId, Placement};

use super::caller::Caller;
use super::view::View;
use crate::time::Nanos;

/// What a process is told of a node that it may host.
#[derive(Clone, Copy, Debug)]
pub struct Hosting {
    /// The node.
    pub node: NodeId,
    /// How many candidates the node has.
    pub candidates: usize,
    /// The position of this process in that list.
    pub me: usize,
    /// The node above, and how many candidates that has; `None` at the root of the tree.
    pub parent: Option<(NodeId, usize)>,
}

/// What a process answers to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The caller is a child of the node from now on, when it has confirmed.
    Accept,
    /// The caller's placement is behind the view's, and it is to call anew with that.
    Moved,
    /// It cannot be. The caller counts a move for the node.
    Refuse,
}

/// What follows from a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// What the caller is told.
    pub answer: Answer,
    /// Whether the caller knew more than the process. All nodes that the process hosts tell their
    /// neighbours (`move_to`), and are gone.
    pub moved: bool,
    /// Whether the process hosts the node from now on, and has to make its core.
    pub begins: bool,
}

/// A node that the process hosts in this epoch.
struct Hosted {
    /// The children that have confirmed their calls. Each may do so once in an epoch, because a
    /// node that has forgotten its children is no use to them, nor a child that has forgotten its
    /// node. One that has not confirmed may not have heard the answer, and may call again.
    confirmed: BTreeSet<u16>,
    /// The other candidates of the root after a move, and when to tell them of the epoch.
    told: BTreeMap<usize, Nanos>,
}

/// A node that the process may host.
struct Seat {
    hosting: Hosting,
    hosted: Option<Hosted>,
    /// The way to the node above. What it has learnt of fruitless calls outlives an epoch.
    caller: Option<Caller>,
}

/// A process that may host nodes.
pub struct Host {
    view: View,
    seats: BTreeMap<NodeId, Seat>,
}

impl Host {
    /// A process that may host these nodes of a job whose first epoch is `first`.
    pub fn new(first: Epoch, hostings: impl IntoIterator<Item = Hosting>) -> Host {
        let mut host = Host { view: View::new(first), seats: BTreeMap::new() };
        hostings.into_iter().for_each(|hosting| host.add(hosting));
        host
    }

    /// The process may host another node of the job.
    pub fn add(&mut self, hosting: Hosting) {
        self.seats.insert(hosting.node, Seat { hosting, hosted: None, caller: None });
    }

    /// The process may host a node of the job no more.
    pub fn remove(&mut self, node: NodeId) {
        self.seats.remove(&node);
    }

    /// What the process knows of the placement.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether the process hosts the node now.
    pub fn hosts(&self, node: NodeId) -> bool {
        self.seats.get(&node).is_some_and(|seat| seat.hosted.is_some())
    }

    /// The process begins to host a node without having been called, if the placement names it.
    pub fn begin(&mut self, now: Nanos, node: NodeId) -> bool {
        let (view, Some(seat)) = (&self.view, self.seats.get_mut(&node)) else { return false };
        let Hosting { candidates, me, parent, .. } = seat.hosting;
        if view.placement().candidate(node, candidates) != me || seat.hosted.is_some() {
            return false;
        }
        let tells = parent.is_none() && view.has_moved();
        let told = (0..candidates).filter(|other| tells && *other != me).map(|other| (other, now)).collect();
        seat.hosted = Some(Hosted { confirmed: BTreeSet::new(), told });
        if let Some((parent, candidates)) = parent {
            let caller = seat.caller.get_or_insert_with(|| Caller::new(parent, candidates, now));
            caller.on_moved(now);
        }
        true
    }

    /// A child of a node calls, with the placement that it knows.
    pub fn on_call(&mut self, now: Nanos, node: NodeId, child: ChildIndex, placement: &Placement) -> Heard {
        let moved = self.told(placement);
        let is_behind = self.view.placement() != placement;
        let begins = !is_behind && self.begin(now, node);
        let hosted = self.seats.get_mut(&node).and_then(|seat| seat.hosted.as_mut());
        let answer = match hosted {
            _ if is_behind => Answer::Moved,
            Some(hosted) if !hosted.confirmed.contains(&child.0) => Answer::Accept,
            _ => Answer::Refuse,
        };
        Heard { answer, moved, begins }
    }

    /// A child has confirmed its call of this epoch: it has heard that it was accepted.
    pub fn on_confirmed(&mut self, node: NodeId, epoch: Epoch, child: ChildIndex) {
        let is_today = epoch == self.view.epoch();
        let hosted = self.seats.get_mut(&node).and_then(|seat| seat.hosted.as_mut());
        if let Some(hosted) = hosted.filter(|_| is_today) {
            hosted.confirmed.insert(child.0);
        }
    }

    /// The process is told of a placement. Returns whether it is new: all nodes that the process
    /// hosts tell their neighbours, and are gone.
    pub fn told(&mut self, placement: &Placement) -> bool {
        let moved = self.view.told(placement);
        self.empty_if(moved)
    }

    /// The process leaves the job: every node that it hosts moves on to its next candidate, and no
    /// other comes here. Returns whether it hosts any, as in `told`.
    pub fn leave(&mut self) -> bool {
        let hosted = self.seats.iter().filter(|(_, seat)| seat.hosted.is_some());
        let placement = hosted.fold(self.view.placement().clone(), |placement, (node, _)| placement.without(*node));
        let moved = self.told(&placement);
        self.seats.clear();
        moved
    }

    /// A neighbour of a node that the process hosts is gone, in the epoch of that node's core.
    /// Returns whether this begins a new epoch, as in `told`.
    pub fn suspect(&mut self, node: NodeId, epoch: Epoch) -> bool {
        let moved = self.view.suspect(node, epoch);
        self.empty_if(moved)
    }

    /// The connection of a hosted node to the one above is lost. Returns whether this begins a new
    /// epoch, as in `told`.
    pub fn on_parent_lost(&mut self, now: Nanos, node: NodeId, epoch: Epoch) -> bool {
        if epoch != self.view.epoch() || !self.hosts(node) {
            return false;
        }
        let caller = self.seats.get_mut(&node).and_then(|seat| seat.caller.as_mut());
        let moved = caller.is_some_and(|caller| caller.on_lost(now, &mut self.view));
        self.empty_if(moved)
    }

    /// When `on_timer` wants to be called.
    pub fn deadline(&self) -> Nanos {
        let hosted = self.seats.values().filter_map(|seat| Some((seat, seat.hosted.as_ref()?)));
        hosted
            .map(|(seat, hosted)| {
                let calls = seat.caller.as_ref().map_or(Nanos::NEVER, Caller::deadline);
                hosted.told.values().copied().fold(calls, Nanos::min)
            })
            .min()
            .unwrap_or(Nanos::NEVER)
    }

    /// The clock has reached `deadline`. Returns whether a new epoch begins, because a node above
    /// did not answer, as in `told`, and else what is to be done.
    pub fn on_timer(&mut self, now: Nanos) -> (bool, Vec<Errand>) {
        let mut errands = Vec::new();
        let epoch = self.view.epoch();
        for (node, seat) in &mut self.seats {
            let Some(hosted) = &mut seat.hosted else { continue };
            for (candidate, due) in hosted.told.iter_mut().filter(|(_, due)| **due <= now) {
                *due = now + TELL_AGAIN;
                errands.push(Errand::Tell { node: *node, candidate: *candidate, until: *due });
            }
            let Some(caller) = &mut seat.caller else { continue };
            let candidate = caller.on_timer(now, &mut self.view);
            if self.view.epoch() != epoch {
                // The call that failed was of the old epoch, and so would be the next one.
                caller.on_moved(now);
                return (self.empty_if(true), Vec::new());
            }
            let (above, until) = (caller.node(), caller.deadline());
            errands.extend(candidate.map(|candidate| Errand::Call { node: *node, above, candidate, until }));
        }
        (false, errands)
    }

    /// A call of a hosted node was accepted.
    pub fn on_accepted(&mut self, node: NodeId) {
        if let Some(caller) = self.seats.get_mut(&node).and_then(|seat| seat.caller.as_mut()) {
            caller.on_accepted();
        }
    }

    /// A frame came from the node above a hosted one.
    pub fn on_fruit(&mut self, node: NodeId) {
        if let Some(caller) = self.seats.get_mut(&node).and_then(|seat| seat.caller.as_mut()) {
            caller.on_fruit();
        }
    }

    /// A candidate of a hosted root has heard of the view's placement. It may begin anew, know
    /// nothing of it then, and take in callers that know no more: so it is told again, now and
    /// then.
    pub fn on_has_heard(&mut self, now: Nanos, node: NodeId, candidate: usize) {
        let hosted = self.seats.get_mut(&node).and_then(|seat| seat.hosted.as_mut());
        if let Some(due) = hosted.and_then(|hosted| hosted.told.get_mut(&candidate)) {
            *due = now + TELL_AFRESH;
        }
    }

    /// In a new epoch the process hosts nothing, until it is called.
    fn empty_if(&mut self, moved: bool) -> bool {
        for seat in self.seats.values_mut().filter(|_| moved) {
            seat.hosted = None;
        }
        moved
    }
}

/// What a process has to do for a node that it hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errand {
    /// To call a candidate of the node above, with the view's placement.
    Call {
        /// The hosted node.
        node: NodeId,
        /// The node above.
        above: NodeId,
        /// Which candidate of that one.
        candidate: usize,
        /// How long it may take.
        until: Nanos,
    },
    /// To tell another candidate of the hosted root the view's placement. Its answer is the
    /// placement that it knows then: `told`, and `on_has_heard` if that is the view's.
    Tell {
        /// The root.
        node: NodeId,
        /// Which candidate of it.
        candidate: usize,
        /// When it is told again, unless it has answered.
        until: Nanos,
    },
}

/// After this time a candidate of the root that has not answered is told again.
const TELL_AGAIN: Nanos = Nanos::from_millis(1_000);

/// After this time one that has answered is told again. A rank that has come to the wrong one waits
/// for as long, which must be less than the others have patience with a rank that does not call.
const TELL_AFRESH: Nanos = Nanos::from_millis(5_000);

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Epoch = Epoch(3);
    const ROOT: NodeId = NodeId(0);
    const INNER: NodeId = NodeId(1);
    const NOW: Nanos = Nanos(0);

    /// A process that is candidate `me` of the root and of an inner node, which have three each.
    fn host(me: usize) -> Host {
        let root = Hosting { node: ROOT, candidates: 3, me, parent: None };
        let inner = Hosting { node: INNER, candidates: 3, me, parent: Some((ROOT, 3)) };
        Host::new(FIRST, [root, inner])
    }

    fn heard(answer: Answer, moved: bool, begins: bool) -> Heard {
        Heard { answer, moved, begins }
    }

    #[test]
    fn the_first_call_of_an_epoch_makes_the_node_and_each_child_confirms_once() {
        let mut host = host(0);
        let child = |host: &mut Host, child| host.on_call(NOW, INNER, ChildIndex(child), &Placement::FIRST);
        assert_eq!(child(&mut host, 0), heard(Answer::Accept, false, true));
        assert_eq!(child(&mut host, 1), heard(Answer::Accept, false, false));
        assert_eq!(child(&mut host, 0), heard(Answer::Accept, false, false), "it may not have heard the answer");
        host.on_confirmed(INNER, FIRST, ChildIndex(0));
        host.on_confirmed(INNER, Epoch(2), ChildIndex(1));
        assert_eq!(child(&mut host, 0), heard(Answer::Refuse, false, false));
        assert_eq!(child(&mut host, 1), heard(Answer::Accept, false, false));
        assert!(host.hosts(INNER) && !host.hosts(ROOT));
        let (moved, errands) = host.on_timer(NOW);
        let [Errand::Call { node: INNER, above: ROOT, candidate: 0, until }] = errands[..] else {
            panic!("{errands:?}")
        };
        assert_eq!((moved, until), (false, host.deadline()));
    }

    #[test]
    fn one_who_is_behind_is_told_and_one_who_is_ahead_is_followed() {
        let (mut host, ahead) = (host(0), Placement::FIRST.without(ROOT));
        assert!(host.begin(NOW, INNER) && host.begin(NOW, ROOT));
        assert_eq!(host.on_call(NOW, INNER, ChildIndex(0), &ahead), heard(Answer::Accept, true, true));
        assert!(!host.hosts(ROOT) && host.view().epoch() == Epoch(4));
        assert_eq!(host.on_call(NOW, INNER, ChildIndex(1), &Placement::FIRST), heard(Answer::Moved, false, false));
        // Neither knows all that the other knows.
        let aside = Placement::FIRST.without(INNER);
        assert_eq!(host.on_call(NOW, INNER, ChildIndex(1), &aside), heard(Answer::Moved, true, false));
        assert_eq!(host.view().placement(), &aside.with(&ahead));
    }

    #[test]
    fn a_process_that_the_placement_does_not_name_refuses() {
        let mut host = host(1);
        assert_eq!(host.on_call(NOW, ROOT, ChildIndex(0), &Placement::FIRST), heard(Answer::Refuse, false, false));
        let moved = Placement::FIRST.without(ROOT);
        assert_eq!(host.on_call(NOW, ROOT, ChildIndex(0), &moved), heard(Answer::Accept, true, true));
    }

    #[test]
    fn who_hosts_the_root_after_a_move_tells_all_its_other_candidates_and_those_who_know_seldom() {
        let mut host = host(1);
        host.on_call(NOW, ROOT, ChildIndex(0), &Placement::FIRST.without(ROOT));
        let tell = |candidate, until| Errand::Tell { node: ROOT, candidate, until };
        assert_eq!(host.on_timer(NOW), (false, vec![tell(0, TELL_AGAIN), tell(2, TELL_AGAIN)]));
        host.on_has_heard(NOW, ROOT, 2);
        assert_eq!(host.on_timer(NOW), (false, vec![]));
        let again = host.deadline();
        assert_eq!(host.on_timer(again), (false, vec![tell(0, again + TELL_AGAIN)]));
        host.on_has_heard(again, ROOT, 0);
        let afresh = host.deadline();
        assert_eq!(afresh, NOW + TELL_AFRESH);
        assert_eq!(host.on_timer(afresh), (false, vec![tell(2, afresh + TELL_AGAIN)]), "it may have forgotten");
        host.on_has_heard(afresh, INNER, 2);
        assert_eq!(host.deadline(), afresh + TELL_AGAIN, "that is another node");
    }

    #[test]
    fn one_who_leaves_takes_all_that_it_hosts_out_of_the_placement_and_hosts_no_more() {
        let mut host = host(0);
        assert!(!host.leave(), "it hosts nothing");
        let mut host = self::host(0);
        assert!(host.begin(NOW, ROOT) && host.begin(NOW, INNER));
        assert!(host.leave());
        let left = Placement::FIRST.without(ROOT).without(INNER);
        assert_eq!((host.view().placement(), host.hosts(ROOT), host.deadline()), (&left, false, Nanos::NEVER));
        let call = |host: &mut Host, placement: &Placement| host.on_call(NOW, INNER, ChildIndex(0), placement).answer;
        assert_eq!(call(&mut host, &Placement::FIRST), Answer::Moved);
        let round = (0..3).fold(left, |placement, _| placement.without(INNER));
        assert_eq!(call(&mut host, &round), Answer::Refuse, "though its turn would have come again");
    }

    #[test]
    fn a_parent_that_does_not_answer_is_left_with_all_that_the_process_hosts() {
        let mut host = host(0);
        assert!(host.begin(NOW, INNER));
        assert_eq!(host.on_timer(NOW).1.len(), 1);
        let late = host.deadline();
        assert_eq!(host.on_timer(late), (true, vec![]));
        assert!(!host.hosts(INNER) && host.view().placement().moves_of(ROOT) == 1);
        assert!(host.begin(late, INNER));
        host.on_timer(late);
        host.on_accepted(INNER);
        assert_eq!(host.deadline(), Nanos::NEVER);
        assert!(!host.on_parent_lost(late, INNER, FIRST), "that was the epoch before");
        assert!(host.on_parent_lost(late, INNER, host.view().epoch()));
        assert!(!host.suspect(ROOT, FIRST) && host.suspect(ROOT, host.view().epoch()));
    }
}
