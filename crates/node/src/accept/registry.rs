//! Which children may connect, and to which worker their logical node belongs.
//!
//! What follows from a call, or from news of a placement, is decided by one
//! [`Host`](trib_proto::placing::Host) for each tree; the registry keeps what the acceptor is to do
//! about it ([`Step`], [`Call`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use trib_control::clock::unix_ms;
use trib_keys::HelloKey;
use trib_messages::job::NodeGrant;
use trib_messages::recovery::{EpochCause, EpochPart, Replayed};
use trib_messages::via::Via;
use trib_proto::Nanos;
use trib_proto::node::Link;
use trib_proto::placing::{Answer, Errand, Host, Hosting};
use trib_transport::tcp::{Admission, Admitted, Denied};
use trib_transport::ucx::UcxWorker;
use trib_waiting::clock::Clock;
use trib_wire::auth::FrameKey;
use trib_wire::hello::{Hello, Nonce, Status};
use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Placement};

use super::chronicle::Chronicle;
use crate::job::memory_for;
use crate::worker::Key;

/// One tree of a job: its lane.
pub(crate) type Tree = (JobId, u32);

/// The logical nodes of this process, those included that it may host one day.
pub(crate) struct Registry {
    nodes: HashMap<Key, Entry>,
    /// Where the nodes of each tree are, and which of them this process hosts.
    trees: HashMap<Tree, Host>,
    /// The trees that have moved since the steps were last taken.
    moved: BTreeSet<Tree>,
    /// The epochs of each tree that has moved.
    chronicles: BTreeMap<Tree, Chronicle>,
    tally: EpochTally,
    /// The logical nodes that this process hosts since then.
    begun: BTreeSet<Key>,
    clock: Clock,
}

/// The number of epochs that trees have come to here, by how this process came to know of them.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct EpochTally {
    /// It found a node gone, or could not reach one.
    pub(crate) found: u64,
    /// A neighbour told it.
    pub(crate) told: u64,
}

/// What the worker of a logical node is to be told.
pub(crate) enum Step {
    /// Its tree has another placement: the core ends, if there is one.
    Leave { key: Key, worker: usize, placement: Placement },
    /// This process hosts it from now on.
    Begin { grant: Box<NodeGrant>, worker: usize, placement: Placement, results: FrameKey },
    /// It has left, and cannot come back, because the manager has ended its job.
    Forget(Key),
}

/// A call to another process, in the placement that this one knows.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) grant: NodeGrant,
    pub(crate) worker: usize,
    pub(crate) placement: Placement,
    /// The position of the called process in the list of candidates.
    pub(crate) candidate: usize,
    pub(crate) purpose: Purpose,
    /// How long the other process may take.
    pub(crate) patience: Duration,
}

/// What a call is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A candidate of the node above, to be its child.
    Parent,
    /// Another candidate of the logical node itself, which is the root, to tell it the placement.
    Candidate,
}

struct Entry {
    grant: NodeGrant,
    worker: usize,
    udp_port: u16,
    /// What its edges over UCX go through, if it has any.
    ucx: Option<UcxWorker>,
    /// When it was installed, milliseconds since 1970-01-01 UTC.
    since_ms: u64,
    /// What was drawn for it then.
    drawn: Nonce,
    /// The manager has ended the job: children that are here finish, and no other child may
    /// connect.
    ended: bool,
}

impl Entry {
    fn tree(&self) -> Tree {
        (self.grant.job, self.grant.lane)
    }

    /// The key that children get in their handshakes. A placement is one of a logical node here
    /// once at most, so a core that seals payloads with what follows from it is the only one that
    /// ever has.
    fn results(&self, placement: &Placement) -> FrameKey {
        match self.grant.limits.mode.seals() {
            true => self.grant.key.fresh_results(placement, &self.drawn),
            false => self.grant.key.results(placement),
        }
    }

    /// Whether a Hello of this child may come from there. A candidate may come from wherever it
    /// reaches this process.
    fn may_be_at(&self, child: ChildIndex, peer: IpAddr) -> Option<bool> {
        if child == ChildIndex::ALL {
            return self.grant.recovers.then_some(true);
        }
        let addresses = &self.grant.children.get(usize::from(child.0))?.addresses;
        let is_there = |address: &IpAddr| address.to_canonical() == peer.to_canonical();
        Some(addresses.is_empty() || addresses.iter().any(is_there))
    }
}

/// What the registry knows of a grant.
pub(crate) enum Known {
    /// It is new.
    No,
    /// It is installed as it is.
    Same,
    /// Another grant is installed for the same node, or for another job with the same number.
    Other {
        /// When that was installed, milliseconds since 1970-01-01 UTC.
        since_ms: u64,
    },
}

impl Registry {
    /// Whether the grant is installed, or another one for the same node, or a grant of another job
    /// with its number: two managers that know nothing of each other both count from the beginning,
    /// but each job has a mark of its own.
    pub(crate) fn knows(&self, grant: &NodeGrant) -> Known {
        let is_foreign = |(key, entry): &(&Key, &Entry)| key.0 == grant.job && entry.grant.mark != grant.mark;
        match self.nodes.get(&(grant.job, grant.node)) {
            Some(entry) if entry.grant == *grant => Known::Same,
            Some(entry) => Known::Other { since_ms: entry.since_ms },
            None => match self.nodes.iter().find(is_foreign) {
                Some((_, entry)) => Known::Other { since_ms: entry.since_ms },
                None => Known::No,
            },
        }
    }

    /// Adds a grant. From now on children may connect. A primary hosts the logical node at once.
    /// `drawn` was drawn for it.
    pub(crate) fn insert(
        &mut self,
        grant: NodeGrant,
        worker: usize,
        udp_port: u16,
        ucx: Option<UcxWorker>,
        drawn: Nonce,
    ) {
        let (key, tree, now) = ((grant.job, grant.node), (grant.job, grant.lane), self.now());
        // The parent of a job that does not move is called once, and no move follows.
        let parent = grant.parent.as_ref().filter(|_| grant.recovers);
        let hosting = Hosting {
            node: grant.node,
            candidates: grant.candidates.len(),
            me: usize::from(grant.candidate),
            parent: parent.map(|parent| (parent.node, parent.candidates.len())),
        };
        let host = self.trees.entry(tree).or_insert_with(|| Host::new(grant.epoch, []));
        host.add(hosting);
        if grant.candidate == 0 && host.begin(now, grant.node) {
            self.begun.insert(key);
        }
        self.nodes.insert(key, Entry { grant, worker, udp_port, ucx, drawn, since_ms: unix_ms(), ended: false });
    }

    /// When the newest of the logical nodes was installed.
    pub(crate) fn last_came_ms(&self) -> Option<u64> {
        self.nodes.values().map(|entry| entry.since_ms).max()
    }

    /// Forgets a logical node. Returns whether it was the last one of its job.
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        let Some(entry) = self.nodes.remove(&key) else { return false };
        if let Some(host) = self.trees.get_mut(&entry.tree()) {
            host.remove(key.1);
        }
        let was_last = !self.nodes.keys().any(|(job, _)| *job == key.0);
        if was_last {
            self.trees.retain(|(job, _), _| *job != key.0);
            self.chronicles.retain(|(job, _), _| *job != key.0);
        }
        was_last
    }

    /// A neighbour of a logical node knows of this placement of its tree.
    pub(crate) fn learn(&mut self, key: Key, placement: &Placement) {
        self.change(key, EpochCause::Told, |host, _| host.told(placement));
    }

    /// This process leaves: the logical nodes that it hosts go on to their next candidates, and it
    /// hosts no other. Those of jobs that do not go on stay.
    pub(crate) fn leave(&mut self) {
        let recovers = |tree: &&Tree| self.nodes.values().any(|entry| entry.tree() == **tree && entry.grant.recovers);
        let trees: Vec<Tree> = self.trees.keys().filter(recovers).copied().collect();
        for tree in trees {
            if self.trees.get_mut(&tree).is_some_and(Host::leave) {
                self.moved.insert(tree);
            }
        }
    }

    /// A logical node has found that a neighbour is gone, in the epoch of its core.
    pub(crate) fn suspect(&mut self, key: Key, epoch: Epoch, neighbour: NodeId) {
        let parent = self.nodes.get(&key).and_then(|entry| Some(entry.grant.parent.as_ref()?.node));
        self.change(key, EpochCause::Lost { node: neighbour }, |host, now| match parent == Some(neighbour) {
            true => host.on_parent_lost(now, key.1, epoch),
            false => host.suspect(neighbour, epoch),
        });
    }

    /// The call of a logical node to the one above has failed.
    pub(crate) fn call_failed(&mut self, key: Key, epoch: Epoch) {
        let parent = self.nodes.get(&key).and_then(|entry| Some(entry.grant.parent.as_ref()?.node));
        let cause = parent.map_or(EpochCause::Told, |node| EpochCause::Unreached { node });
        self.change(key, cause, |host, now| host.on_parent_lost(now, key.1, epoch));
    }

    fn change(&mut self, key: Key, cause: EpochCause, change: impl FnOnce(&mut Host, Nanos) -> bool) {
        let now = self.now();
        let Some(entry) = self.nodes.get(&key).filter(|entry| entry.grant.recovers) else { return };
        let tree = entry.tree();
        if self.trees.get_mut(&tree).is_some_and(|host| change(host, now)) {
            self.has_moved(tree, cause);
        }
    }

    /// A tree has another placement.
    fn has_moved(&mut self, tree: Tree, cause: EpochCause) {
        self.moved.insert(tree);
        match cause {
            EpochCause::Told => self.tally.told += 1,
            EpochCause::Lost { .. } | EpochCause::Unreached { .. } => self.tally.found += 1,
        }
        if let Some(host) = self.trees.get(&tree) {
            self.chronicles.entry(tree).or_default().enter(tree.1, host.view().placement(), cause);
        }
    }

    /// The last epochs of a job's trees.
    pub(crate) fn epochs(&self, job: JobId) -> Vec<EpochPart> {
        let own = self.chronicles.iter().filter(|((other, _), _)| *other == job);
        own.flat_map(|(_, chronicle)| chronicle.last()).collect()
    }

    /// A core of a tree has ended that has replayed this in the epoch of the placement.
    pub(crate) fn replayed(&mut self, tree: Tree, placement: &Placement, replayed: Replayed) {
        if let Some(chronicle) = self.chronicles.get_mut(&tree) {
            chronicle.add(placement, replayed);
        }
    }

    /// What cores that have ended have replayed, by job.
    pub(crate) fn replayed_before(&self) -> BTreeMap<JobId, Replayed> {
        let mut jobs: BTreeMap<JobId, Replayed> = BTreeMap::new();
        for ((job, _), chronicle) in &self.chronicles {
            *jobs.entry(*job).or_default() += chronicle.replayed();
        }
        jobs
    }

    /// How many epochs there were.
    pub(crate) fn epoch_tally(&self) -> EpochTally {
        self.tally
    }

    /// What follows from all that was learnt since this was last asked.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for tree in std::mem::take(&mut self.moved) {
            let Some(host) = self.trees.get(&tree) else { continue };
            for (key, entry) in self.nodes.iter().filter(|(_, entry)| entry.tree() == tree) {
                let placement = host.view().placement().clone();
                steps.push(Step::Leave { key: *key, worker: entry.worker, placement });
                if entry.ended && !host.hosts(key.1) {
                    steps.push(Step::Forget(*key));
                }
            }
        }
        for key in std::mem::take(&mut self.begun) {
            let Some((entry, host)) = self.hosted(key) else { continue };
            let (grant, placement) = (Box::new(entry.grant.clone()), host.view().placement().clone());
            let results = entry.results(&placement);
            steps.push(Step::Begin { grant, worker: entry.worker, placement, results });
        }
        steps
    }

    /// The calls that are due.
    pub(crate) fn take_calls(&mut self) -> Vec<Call> {
        let (now, mut calls, mut moved) = (self.now(), Vec::new(), Vec::new());
        for (tree, host) in self.trees.iter_mut().filter(|(_, host)| host.deadline() <= now) {
            let before = host.view().placement().clone();
            let (has_moved, errands) = host.on_timer(now);
            if has_moved {
                let mut all = host.view().placement().moves();
                let silent = all.find(|(node, moves)| *moves > before.moves_of(*node)).map(|(node, _)| node);
                moved.extend(silent.map(|node| (*tree, EpochCause::Unreached { node })));
            }
            for errand in errands {
                let (node, candidate, until, purpose) = match errand {
                    Errand::Call { node, candidate, until, .. } => (node, candidate, until, Purpose::Parent),
                    Errand::Tell { node, candidate, until } => (node, candidate, until, Purpose::Candidate),
                };
                let Some(entry) = self.nodes.get(&(tree.0, node)) else { continue };
                let (grant, placement) = (entry.grant.clone(), host.view().placement().clone());
                let patience = Duration::from_nanos(until.since(now).0);
                calls.push(Call { grant, worker: entry.worker, placement, candidate, purpose, patience });
            }
        }
        moved.into_iter().for_each(|(tree, cause)| self.has_moved(tree, cause));
        calls
    }

    /// How long until a call is due.
    pub(crate) fn patience(&mut self) -> Option<Duration> {
        let now = self.now();
        let due = self.trees.values().map(Host::deadline).min().filter(|due| *due != Nanos::NEVER)?;
        Some(Duration::from_nanos(due.since(now).0))
    }

    /// Whether this process still hosts the logical node in this placement.
    pub(crate) fn hosts(&self, key: Key, placement: &Placement) -> bool {
        self.hosted(key).is_some_and(|(_, host)| host.view().placement() == placement)
    }

    /// The node above has accepted the call of a logical node.
    pub(crate) fn accepted(&mut self, key: Key) {
        if let Some(host) = self.host_of(key) {
            host.on_accepted(key.1);
        }
    }

    /// A candidate of the root has answered with the placement that it knows now.
    pub(crate) fn answered(&mut self, key: Key, candidate: usize, placement: &Placement) {
        self.learn(key, placement);
        let now = self.now();
        if let Some(host) = self.host_of(key)
            && host.view().placement() == placement
        {
            host.on_has_heard(now, key.1, candidate);
        }
    }

    /// The far end of a link has spoken for the first time over it, in this epoch: a child has
    /// heard that it was accepted, and nobody else may take its seat.
    pub(crate) fn spoke(&mut self, key: Key, epoch: Epoch, link: Link) {
        let Some(host) = self.host_of(key).filter(|host| host.view().epoch() == epoch) else { return };
        match link {
            Link::Parent => host.on_fruit(key.1),
            Link::Child(child) => host.on_confirmed(key.1, epoch, child),
        }
    }

    fn host_of(&mut self, key: Key) -> Option<&mut Host> {
        let tree = self.nodes.get(&key)?.tree();
        self.trees.get_mut(&tree)
    }

    /// A logical node that this process hosts now.
    fn hosted(&self, key: Key) -> Option<(&Entry, &Host)> {
        let entry = self.nodes.get(&key)?;
        let host = self.trees.get(&entry.tree())?;
        host.hosts(key.1).then_some((entry, host))
    }

    fn now(&mut self) -> Nanos {
        Nanos(self.clock.read())
    }

    /// Whether a Hello is of the placement that this process knows.
    pub(crate) fn is_of_today(&self, hello: &Hello) -> bool {
        self.hosts((hello.job, hello.node), &hello.placement)
    }

    /// The jobs that have logical nodes here, each once.
    pub(crate) fn jobs(&self) -> Vec<JobId> {
        let jobs: BTreeSet<JobId> = self.nodes.keys().map(|(job, _)| *job).collect();
        jobs.into_iter().collect()
    }

    /// The manager has ended a job. Returns its logical nodes that are not here, though they might
    /// have come.
    pub(crate) fn end(&mut self, job: JobId) -> Vec<Key> {
        for (_, entry) in self.nodes.iter_mut().filter(|(key, _)| key.0 == job) {
            entry.ended = true;
        }
        let is_absent = |key: &Key| key.0 == job && self.hosted(*key).is_none();
        self.nodes.keys().copied().filter(is_absent).collect()
    }

    /// The bytes of buffers that each job has here.
    pub(crate) fn memory(&self) -> BTreeMap<JobId, u64> {
        let mut memory = BTreeMap::new();
        for (key, entry) in &self.nodes {
            let bytes: &mut u64 = memory.entry(key.0).or_default();
            *bytes = bytes.saturating_add(memory_for(&entry.grant));
        }
        memory
    }

    /// A logical node's grant and worker.
    pub(crate) fn find(&self, key: Key) -> Option<(&NodeGrant, usize)> {
        self.nodes.get(&key).map(|entry| (&entry.grant, entry.worker))
    }

    /// The number of logical nodes on a worker.
    pub(crate) fn load_of(&self, worker: usize) -> usize {
        self.nodes.values().filter(|entry| entry.worker == worker).count()
    }

    fn seat(&self, hello: &Hello, peer: SocketAddr) -> Result<Admitted, (Status, Epoch)> {
        if !self.nodes.keys().any(|(job, _)| *job == hello.job) {
            return Err((Status::UnknownJob, Epoch(0)));
        }
        let entry = self.nodes.get(&(hello.job, hello.node)).ok_or((Status::UnknownNode, Epoch(0)))?;
        let Entry { grant, udp_port, ucx, ended, .. } = entry;
        let refuse = |status| Err((status, grant.epoch));
        let may_move = grant.recovers || hello.placement == Placement::FIRST;
        if !may_move || hello.epoch != hello.placement.epoch(grant.epoch) {
            return refuse(Status::WrongEpoch);
        }
        if *ended {
            return refuse(Status::UnknownJob);
        }
        match entry.may_be_at(hello.child, peer.ip()).filter(|_| hello.channel == 0) {
            None => refuse(Status::UnknownChild),
            Some(false) => refuse(Status::WrongAddress),
            Some(true) => match hello_key(grant, hello) {
                Some(key) => {
                    let child = grant.children.get(usize::from(hello.child.0));
                    let ucx = ucx.clone().filter(|_| child.is_some_and(|child| child.via == Via::Ucx));
                    Ok(Admitted { key, epoch: hello.epoch, udp_port: *udp_port, ucx })
                }
                None => refuse(Status::UnknownChild),
            },
        }
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            nodes: HashMap::new(),
            trees: HashMap::new(),
            moved: BTreeSet::new(),
            chronicles: BTreeMap::new(),
            tally: EpochTally::default(),
            begun: BTreeSet::new(),
            clock: Clock::start(),
        }
    }
}

impl Admission for Registry {
    fn admit(&mut self, hello: &Hello, peer: SocketAddr) -> Result<Admitted, (Status, Epoch)> {
        self.seat(hello, peer)
    }

    fn confirm(&mut self, hello: &Hello, peer: SocketAddr) -> Result<FrameKey, Denied> {
        self.seat(hello, peer).map_err(|(status, _)| Denied::Status(status))?;
        // Only who has the key of the edge is told so.
        if self.nodes.get(&(hello.job, hello.node)).is_some_and(|entry| entry.grant.limits.mode != hello.mode) {
            return Err(Denied::Status(Status::WrongMode));
        }
        let (now, key) = (self.now(), (hello.job, hello.node));
        if hello.child == ChildIndex::ALL {
            self.learn(key, &hello.placement);
        }
        let Some(host) = self.host_of(key) else { return Err(Denied::Status(Status::UnknownNode)) };
        if hello.child == ChildIndex::ALL {
            return Err(Denied::Moved(host.view().placement().clone()));
        }
        let heard = host.on_call(now, hello.node, hello.child, &hello.placement);
        let verdict = match heard.answer {
            Answer::Accept => Ok(()),
            Answer::Moved => Err(Denied::Moved(host.view().placement().clone())),
            Answer::Refuse if host.hosts(hello.node) => Err(Denied::Status(Status::DuplicateChild)),
            Answer::Refuse => Err(Denied::Status(Status::UnknownNode)),
        };
        if let Some(tree) = self.nodes.get(&key).map(Entry::tree).filter(|_| heard.moved) {
            self.has_moved(tree, EpochCause::Told);
        }
        self.begun.extend(Some(key).filter(|_| heard.begins));
        verdict.and_then(|()| match self.nodes.get(&key) {
            Some(entry) => Ok(entry.results(&hello.placement)),
            None => Err(Denied::Status(Status::UnknownNode)),
        })
    }
}

/// The key with which the far end that a Hello names has to prove itself: the candidate that hosts
/// the child in the placement of the Hello, or another candidate of the root.
fn hello_key(grant: &NodeGrant, hello: &Hello) -> Option<HelloKey> {
    match hello.child {
        ChildIndex::ALL => Some(grant.root.as_ref()?.hello(&hello.placement)),
        child => Some(grant.child_keys(child, &hello.placement)?.hello),
    }
}

#[cfg(test)]
mod tests {
    use trib_keys::JobKey;
    use trib_messages::job::{GrantChild, Limits};
    use trib_wire::{ChildKind, Mode, Rank, RankList};

    use super::*;

    fn grant() -> NodeGrant {
        let (secret, job, node) = (JobKey([1; 32]), JobId(1), NodeId(0));
        let child = |rank: u32, addresses: &[&str]| GrantChild {
            kind: ChildKind::Rank(Rank(rank)),
            candidates: 1,
            in_rank: true,
            ranks: RankList::from_ranks([rank]),
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
            via: Via::Tcp,
        };
        NodeGrant {
            job,
            epoch: Epoch(3),
            mark: secret.mark(job),
            key: secret.node(job, node, 0),
            root: Some(secret.root(job, node)),
            limits: Limits {
                groups: 1,
                window: 1,
                osts: 1,
                payload: 8,
                streams: 1,
                segment: 8,
                staging: 1,
                flight: 1,
                control_memory: 1 << 20,
                stream_threshold: 8,
                lease_operations: 0,
                heartbeat_ms: 100,
                dead_after_ms: 2,
                recovery: trib_messages::policy::Recovery::Retry,
                mode: Mode::Checked,
                faults: false,
            },
            world_size: 2,
            node,
            name: "leaf0".into(),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: vec!["10.0.0.1:4000".parse().unwrap()],
            in_ranks: Vec::new(),
            recovers: false,
            parent: None,
            children: vec![child(0, &[]), child(1, &["10.0.0.1", "10.0.0.3"])],
        }
    }

    #[test]
    fn each_reason_to_refuse_has_its_own_status() {
        let hello = Hello {
            job: JobId(1),
            epoch: Epoch(3),
            node: NodeId(0),
            child: ChildIndex(0),
            channel: 0,
            mode: Mode::Checked,
            udp_port: 9,
            nonce: [0; 16],
            placement: Placement::FIRST,
        };
        let peer: SocketAddr = "10.0.0.2:77".parse().unwrap();
        let mut registry = Registry::default();
        registry.insert(grant(), 0, 4000, None, [7; 16]);
        let mut status = |hello: &Hello, peer| registry.admit(hello, peer).err().map(|e| e.0);
        assert_eq!(status(&Hello { job: JobId(2), ..hello.clone() }, peer), Some(Status::UnknownJob));
        assert_eq!(status(&Hello { node: NodeId(5), ..hello.clone() }, peer), Some(Status::UnknownNode));
        assert_eq!(status(&Hello { epoch: Epoch(2), ..hello.clone() }, peer), Some(Status::WrongEpoch));
        assert_eq!(status(&Hello { child: ChildIndex(2), ..hello.clone() }, peer), Some(Status::UnknownChild));
        assert_eq!(status(&Hello { channel: 1, ..hello.clone() }, peer), Some(Status::UnknownChild));
        let second = Hello { child: ChildIndex(1), ..hello.clone() };
        assert_eq!(status(&second, peer), Some(Status::WrongAddress));
        assert_eq!(status(&second, "[::ffff:10.0.0.1]:5".parse().unwrap()), None);
        assert_eq!(status(&second, "10.0.0.3:5".parse().unwrap()), None);
        assert_eq!(status(&hello, peer), None, "a seat is not taken before the proof");
        assert!(registry.confirm(&hello, peer).is_ok());
        assert!(registry.confirm(&hello, peer).is_ok(), "nor before the child has spoken");
        registry.spoke((JobId(1), NodeId(0)), Epoch(3), Link::Child(ChildIndex(0)));
        assert_eq!(registry.confirm(&hello, peer), Err(Denied::Status(Status::DuplicateChild)));
        registry.end(JobId(1));
        assert_eq!(registry.confirm(&second, "10.0.0.1:1".parse().unwrap()), Err(Denied::Status(Status::UnknownJob)));
    }

    #[test]
    fn a_child_brings_news_of_a_placement_or_gets_some() {
        let hello = |placement: Placement| Hello {
            job: JobId(1),
            epoch: placement.epoch(Epoch(3)),
            node: NodeId(0),
            child: ChildIndex(0),
            channel: 0,
            mode: Mode::Checked,
            udp_port: 9,
            nonce: [0; 16],
            placement,
        };
        let peer: SocketAddr = "10.0.0.2:77".parse().unwrap();
        let key = (JobId(1), NodeId(0));
        let mut registry = Registry::default();
        // This process is the backup of node 0.
        let candidates = ["10.0.0.1:4000", "10.0.0.9:4000"].map(|address| address.parse().unwrap()).to_vec();
        registry.insert(NodeGrant { recovers: true, candidate: 1, candidates, ..grant() }, 0, 4000, None, [7; 16]);
        let first = hello(Placement::FIRST);
        assert!(registry.admit(&first, peer).is_ok(), "the refusal has to be proven");
        assert_eq!(registry.confirm(&first, peer), Err(Denied::Status(Status::UnknownNode)), "it is elsewhere");
        assert!(registry.take_steps().is_empty());

        let moved = Placement::FIRST.without(NodeId(0));
        let second = hello(moved.clone());
        assert_eq!(registry.admit(&second, peer).map(|admitted| admitted.epoch), Ok(Epoch(4)));
        let results = registry.confirm(&second, peer).unwrap();
        assert!(results == self::grant().key.results(&moved));
        assert!(registry.is_of_today(&second) && !registry.is_of_today(&first));
        let [Step::Leave { .. }, Step::Begin { grant, placement, .. }] = &registry.take_steps()[..] else {
            panic!("one logical node has moved");
        };
        assert_eq!(((grant.job, grant.node), placement), (key, &moved));
        let [call] = &registry.take_calls()[..] else { panic!("the other candidate of the root has to hear of it") };
        assert_eq!((call.purpose, call.candidate, &call.placement), (Purpose::Candidate, 0, &moved));
        registry.answered(key, 0, &moved);
        assert!(registry.take_calls().is_empty(), "it has");
        assert_eq!(registry.confirm(&first, peer), Err(Denied::Moved(moved.clone())));

        registry.spoke(key, Epoch(3), Link::Child(ChildIndex(0)));
        assert!(registry.confirm(&second, peer).is_ok(), "a frame of the epoch before takes no seat");
        registry.spoke(key, Epoch(4), Link::Child(ChildIndex(0)));
        assert_eq!(registry.confirm(&second, peer), Err(Denied::Status(Status::DuplicateChild)));

        registry.learn(key, &Placement::FIRST.without(NodeId(7)));
        let [Step::Leave { placement, .. }] = &registry.take_steps()[..] else { panic!("the tree has moved") };
        assert_eq!(placement, &moved.without(NodeId(7)), "what both know");
        assert!(registry.take_steps().is_empty());
        let candidate = Hello { child: ChildIndex::ALL, udp_port: 0, ..hello(moved.clone()) };
        assert!(registry.admit(&candidate, peer).is_ok());
        let answer = Err(Denied::Moved(moved.without(NodeId(7))));
        assert_eq!(registry.confirm(&candidate, peer), answer, "a candidate always hears the placement");
        let wrong = Hello { epoch: Epoch(9), ..hello(moved) };
        assert_eq!(registry.admit(&wrong, peer).map_err(|(status, _)| status).err(), Some(Status::WrongEpoch));
        assert_eq!(registry.end(JobId(1)), [key], "nobody has called in this epoch");
    }

    #[test]
    fn a_node_of_an_ended_job_is_forgotten_when_its_tree_moves() {
        let (key, mut registry) = ((JobId(1), NodeId(0)), Registry::default());
        let candidates = ["10.0.0.1:4000", "10.0.0.9:4000"].map(|address| address.parse().unwrap()).to_vec();
        registry.insert(NodeGrant { recovers: true, candidates, ..grant() }, 0, 4000, None, [7; 16]);
        assert!(matches!(registry.take_steps()[..], [Step::Begin { .. }]));
        assert_eq!(registry.end(JobId(1)), [], "its children finish first");
        registry.learn(key, &Placement::FIRST.without(NodeId(0)));
        let steps = registry.take_steps();
        let [Step::Leave { .. }, Step::Forget(forgotten)] = steps[..] else { panic!("nothing can come back") };
        assert_eq!(forgotten, key);
        assert!(registry.remove(key), "it was the last of its job");
    }

    #[test]
    fn a_grant_that_comes_again_is_told_from_another() {
        let mut registry = Registry::default();
        assert!(matches!(registry.knows(&grant()), Known::No));
        registry.insert(grant(), 1, 4000, None, [7; 16]);
        assert!(matches!(registry.knows(&grant()), Known::Same));
        assert!(matches!(registry.knows(&NodeGrant { epoch: Epoch(4), ..grant() }), Known::Other { .. }));
        assert!(registry.last_came_ms().is_some());
        assert_eq!((registry.load_of(0), registry.load_of(1)), (0, 1));
        registry.remove((JobId(1), NodeId(0)));
        assert!(matches!(registry.knows(&grant()), Known::No));
    }
}
