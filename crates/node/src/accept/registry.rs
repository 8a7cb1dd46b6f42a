//! Which children may connect, and to which worker their logical node belongs.
//!
//! Of a job that goes on when a node dies, this process knows the placement of each tree of which
//! it may host a node. It learns newer ones from children that call, from neighbours of its nodes,
//! and from nodes of its own that find a neighbour dead.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use trib_control::clock::unix_ms;
use trib_messages::job::{GrantChild, NodeGrant};
use trib_transport::edge_keys;
use trib_transport::tcp::{Admission, Admitted, Denied};
use trib_wire::auth::JobKey;
use trib_wire::hello::{Hello, Status};
use trib_wire::{ChildIndex, Epoch, JobId, Placement};

use crate::job::memory_for;
use crate::worker::Key;

/// One tree of a job: its lane.
pub(crate) type Tree = (JobId, u32);

/// The logical nodes of this process, those included that it may host one day.
#[derive(Default)]
pub(crate) struct Registry {
    nodes: HashMap<Key, Entry>,
    /// Where the nodes of each tree are; a tree that has not moved need not stand here.
    placements: HashMap<Tree, Placement>,
    /// The trees that have moved since this was last asked.
    moved: BTreeSet<Tree>,
}

/// A logical node of a tree that has moved.
pub(crate) struct Move {
    pub(crate) key: Key,
    pub(crate) grant: NodeGrant,
    pub(crate) worker: usize,
    pub(crate) placement: Placement,
    /// Whether this process hosts it now.
    pub(crate) is_here: bool,
}

struct Entry {
    grant: NodeGrant,
    children: Vec<Seat>,
    worker: usize,
    udp_port: u16,
    /// When it was installed, milliseconds since 1970-01-01 UTC.
    since_ms: u64,
    /// The manager has ended the job: children that are here finish, and no other child may
    /// connect.
    ended: bool,
}

/// A child's seat.
struct Seat {
    /// The addresses from which it may connect; any if there are none.
    addresses: Vec<IpAddr>,
    /// Its child has spoken over a connection: a link opens once per epoch. Before that the child
    /// may not have heard that its connection is open, and tries again.
    taken: bool,
}

impl Seat {
    fn may_be_at(&self, peer: IpAddr) -> bool {
        let is_there = |address: &IpAddr| address.to_canonical() == peer.to_canonical();
        self.addresses.is_empty() || self.addresses.iter().any(is_there)
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
    /// but each job has a key of its own.
    pub(crate) fn knows(&self, grant: &NodeGrant) -> Known {
        let is_foreign = |(key, entry): &(&Key, &Entry)| key.0 == grant.job && entry.grant.key != grant.key;
        match self.nodes.get(&(grant.job, grant.node)) {
            Some(entry) if entry.grant == *grant => Known::Same,
            Some(entry) => Known::Other { since_ms: entry.since_ms },
            None => match self.nodes.iter().find(is_foreign) {
                Some((_, entry)) => Known::Other { since_ms: entry.since_ms },
                None => Known::No,
            },
        }
    }

    /// Adds a grant. From now on children may connect.
    pub(crate) fn insert(&mut self, grant: NodeGrant, worker: usize, udp_port: u16) {
        let seat = |child: &GrantChild| Seat { addresses: child.addresses.clone(), taken: false };
        let children = grant.children.iter().map(seat).collect();
        let key = (grant.job, grant.node);
        let since_ms = unix_ms();
        self.nodes.insert(key, Entry { grant, children, worker, udp_port, since_ms, ended: false });
    }

    /// When the newest of the logical nodes was installed.
    pub(crate) fn last_came_ms(&self) -> Option<u64> {
        self.nodes.values().map(|entry| entry.since_ms).max()
    }

    /// Forgets a logical node. Returns whether it was the last one of its job.
    pub(crate) fn remove(&mut self, key: Key) -> bool {
        let was_last = self.nodes.remove(&key).is_some() && !self.nodes.keys().any(|(job, _)| *job == key.0);
        if was_last {
            self.placements.retain(|(job, _), _| *job != key.0);
        }
        was_last
    }

    /// Where the nodes of a tree are.
    pub(crate) fn placement(&self, tree: Tree) -> Placement {
        self.placements.get(&tree).cloned().unwrap_or_default()
    }

    /// A neighbour, or a logical node of this process, knows of this placement of its tree.
    pub(crate) fn learn(&mut self, key: Key, placement: &Placement) {
        let Some(grant) = self.nodes.get(&key).map(|entry| &entry.grant).filter(|grant| grant.recovers) else { return };
        let tree = (grant.job, grant.lane);
        let known = self.placements.entry(tree).or_default();
        if known.covers(placement) {
            return;
        }
        *known = known.with(placement);
        self.moved.insert(tree);
        for entry in self.nodes.values_mut().filter(|entry| (entry.grant.job, entry.grant.lane) == tree) {
            entry.children.iter_mut().for_each(|seat| seat.taken = false);
        }
    }

    /// The logical nodes, here or not, of all trees that have moved since this was last asked.
    pub(crate) fn take_moves(&mut self) -> Vec<Move> {
        let mut moves = Vec::new();
        for tree in std::mem::take(&mut self.moved) {
            let placement = self.placement(tree);
            for (key, entry) in self.nodes.iter().filter(|(_, entry)| (entry.grant.job, entry.grant.lane) == tree) {
                let is_here = is_here(&entry.grant, &placement);
                let (grant, worker, placement) = (entry.grant.clone(), entry.worker, placement.clone());
                moves.push(Move { key: *key, grant, worker, placement, is_here });
            }
        }
        moves
    }

    /// Whether a Hello is of the placement that this process knows.
    pub(crate) fn is_of_today(&self, hello: &Hello) -> bool {
        let entry = self.nodes.get(&(hello.job, hello.node));
        entry.is_some_and(|entry| self.placement((hello.job, entry.grant.lane)) == hello.placement)
    }

    /// The jobs that have logical nodes here, each once.
    pub(crate) fn jobs(&self) -> Vec<JobId> {
        let jobs: BTreeSet<JobId> = self.nodes.keys().map(|(job, _)| *job).collect();
        jobs.into_iter().collect()
    }

    /// A child has spoken over its connection in this epoch; nobody else may come in its place.
    pub(crate) fn seat_is_taken(&mut self, key: Key, epoch: Epoch, child: ChildIndex) {
        let today = self.nodes.get(&key).map(|entry| {
            let placement = self.placement((key.0, entry.grant.lane));
            placement.epoch(entry.grant.epoch)
        });
        if today != Some(epoch) {
            return;
        }
        let seat = self.nodes.get_mut(&key).and_then(|entry| entry.children.get_mut(usize::from(child.0)));
        if let Some(seat) = seat {
            seat.taken = true;
        }
    }

    /// The manager has ended a job. Returns its logical nodes that are not here, though they might
    /// have come.
    pub(crate) fn end(&mut self, job: JobId) -> Vec<Key> {
        let placements = &self.placements;
        let mut absent = Vec::new();
        for (key, entry) in self.nodes.iter_mut().filter(|(key, _)| key.0 == job) {
            entry.ended = true;
            let placement = placements.get(&(job, entry.grant.lane)).cloned().unwrap_or_default();
            if !is_here(&entry.grant, &placement) {
                absent.push(*key);
            }
        }
        absent
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

    /// The worker of a logical node.
    pub(crate) fn worker_of(&self, key: Key) -> Option<usize> {
        self.nodes.get(&key).map(|entry| entry.worker)
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
        let Entry { grant, children, udp_port, ended, .. } = entry;
        let refuse = |status| Err((status, grant.epoch));
        let may_move = grant.recovers || hello.placement == Placement::FIRST;
        if !may_move || hello.epoch != hello.placement.epoch(grant.epoch) {
            return refuse(Status::WrongEpoch);
        }
        if *ended {
            return refuse(Status::UnknownJob);
        }
        let Some(seat) = children.get(usize::from(hello.child.0)).filter(|_| hello.channel == 0) else {
            return refuse(Status::UnknownChild);
        };
        if !seat.may_be_at(peer.ip()) {
            return refuse(Status::WrongAddress);
        }
        // A child of another placement either brings news, or gets some when it has proven itself.
        if seat.taken && self.placement((hello.job, grant.lane)) == hello.placement {
            return refuse(Status::DuplicateChild);
        }
        let key = hello_key(&grant.key, hello);
        Ok(Admitted { key, epoch: hello.epoch, udp_port: *udp_port })
    }
}

impl Admission for Registry {
    fn admit(&mut self, hello: &Hello, peer: SocketAddr) -> Result<Admitted, (Status, Epoch)> {
        self.seat(hello, peer)
    }

    fn confirm(&mut self, hello: &Hello, peer: SocketAddr) -> Result<(), Denied> {
        self.seat(hello, peer).map_err(|(status, _)| Denied::Status(status))?;
        let key = (hello.job, hello.node);
        self.learn(key, &hello.placement);
        let Some(entry) = self.nodes.get(&key) else { return Err(Denied::Status(Status::UnknownNode)) };
        let placement = self.placement((hello.job, entry.grant.lane));
        if placement != hello.placement {
            Err(Denied::Moved(placement))
        } else if !is_here(&entry.grant, &placement) {
            Err(Denied::Status(Status::UnknownNode))
        } else {
            Ok(())
        }
    }
}

/// Whether the process that has this grant hosts the logical node in a placement.
fn is_here(grant: &NodeGrant, placement: &Placement) -> bool {
    placement.candidate(grant.node, usize::from(grant.candidates)) == usize::from(grant.candidate)
}

fn hello_key(key: &JobKey, hello: &Hello) -> trib_transport::HelloKey {
    edge_keys(key, hello.job, hello.epoch, hello.node, ChildIndex(hello.child.0)).hello
}

#[cfg(test)]
mod tests {
    use trib_messages::job::Limits;
    use trib_wire::{ChildKind, NodeId, Rank, RankList};

    use super::*;

    fn grant() -> NodeGrant {
        let child = |rank: u32, addresses: &[&str]| GrantChild {
            kind: ChildKind::Rank(Rank(rank)),
            ranks: RankList::from_ranks([rank]),
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        };
        NodeGrant {
            job: JobId(1),
            epoch: Epoch(3),
            key: JobKey([1; 32]),
            limits: Limits {
                groups: 1,
                window: 1,
                osts: 1,
                payload: 8,
                streams: 1,
                segment: 8,
                staging: 1,
                flight: 1,
                stream_threshold: 8,
                lease_operations: 0,
                heartbeat_ms: 1,
                dead_after_ms: 2,
            },
            world_size: 2,
            node: NodeId(0),
            name: "leaf0".into(),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: 1,
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
            udp_port: 9,
            nonce: [0; 16],
            placement: Placement::FIRST,
        };
        let peer: SocketAddr = "10.0.0.2:77".parse().unwrap();
        let mut registry = Registry::default();
        registry.insert(grant(), 0, 4000);
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
        assert_eq!(status(&hello, peer), None, "a place is not taken before the proof");
        assert_eq!(registry.confirm(&hello, peer), Ok(()));
        assert_eq!(registry.confirm(&hello, peer), Ok(()), "nor before the child has spoken");
        registry.seat_is_taken((JobId(1), NodeId(0)), Epoch(3), ChildIndex(0));
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
            udp_port: 9,
            nonce: [0; 16],
            placement,
        };
        let peer: SocketAddr = "10.0.0.2:77".parse().unwrap();
        let key = (JobId(1), NodeId(0));
        let mut registry = Registry::default();
        // This process is the backup of node 0.
        registry.insert(NodeGrant { recovers: true, candidate: 1, candidates: 2, ..grant() }, 0, 4000);
        let first = hello(Placement::FIRST);
        assert!(registry.admit(&first, peer).is_ok(), "the refusal has to be proven");
        assert_eq!(registry.confirm(&first, peer), Err(Denied::Status(Status::UnknownNode)), "it is elsewhere");
        assert!(registry.take_moves().is_empty());

        let moved = Placement::FIRST.without(NodeId(0));
        let second = hello(moved.clone());
        assert_eq!(registry.admit(&second, peer).map(|admitted| admitted.epoch), Ok(Epoch(4)));
        assert_eq!(registry.confirm(&second, peer), Ok(()));
        assert!(registry.is_of_today(&second) && !registry.is_of_today(&first));
        let [news] = &registry.take_moves()[..] else { panic!("one logical node has moved") };
        assert_eq!((news.key, &news.placement, news.is_here), (key, &moved, true));
        assert_eq!(registry.confirm(&first, peer), Err(Denied::Moved(moved.clone())));

        registry.seat_is_taken(key, Epoch(3), ChildIndex(0));
        assert_eq!(registry.confirm(&second, peer), Ok(()), "a frame of the epoch before takes no seat");
        registry.seat_is_taken(key, Epoch(4), ChildIndex(0));
        assert_eq!(registry.confirm(&second, peer), Err(Denied::Status(Status::DuplicateChild)));

        registry.learn(key, &Placement::FIRST.without(NodeId(7)));
        let [news] = &registry.take_moves()[..] else { panic!("the tree has moved") };
        assert_eq!(news.placement, moved.without(NodeId(7)), "what both know");
        assert!(registry.take_moves().is_empty());
        let wrong = Hello { epoch: Epoch(9), ..hello(moved) };
        assert_eq!(registry.admit(&wrong, peer).map_err(|(status, _)| status).err(), Some(Status::WrongEpoch));
        assert_eq!(registry.end(JobId(1)), [], "it is here, so its worker ends it");
    }

    #[test]
    fn a_grant_that_comes_again_is_told_from_another() {
        let mut registry = Registry::default();
        assert!(matches!(registry.knows(&grant()), Known::No));
        registry.insert(grant(), 1, 4000);
        assert!(matches!(registry.knows(&grant()), Known::Same));
        assert!(matches!(registry.knows(&NodeGrant { epoch: Epoch(4), ..grant() }), Known::Other { .. }));
        assert!(registry.last_came_ms().is_some());
        assert_eq!((registry.load_of(0), registry.load_of(1)), (0, 1));
        registry.remove((JobId(1), NodeId(0)));
        assert!(matches!(registry.knows(&grant()), Known::No));
    }
}
