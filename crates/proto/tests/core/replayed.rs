//! What is sent in an epoch for which a rank had sent it in an earlier one, too, says so on its way
//! up, and the root counts it.

use std::collections::{BTreeMap, VecDeque};

use trib_messages::policy::Recovery;
use trib_proto::leaf::{GroupId, Note, Post};
use trib_proto::node;
use trib_proto::{Nanos, Path};
use trib_wire::body::Held;
use trib_wire::header::FLAG_STREAM;
use trib_wire::{
    Body, ChildIndex, Collective, Epoch, GroupKey, Header, JobId, Kind, Marks, NodeId, RankList, Signature,
};

use super::parts::{EPOCH, End, Frame, Leaf, Node, RANKS, create, leaf, limits, nodes, signature, vector};

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Sender {
    Rank(u32),
    Node(u16),
}

/// A job whose nodes all die at once, and whose ranks go to the next epoch together.
struct Job {
    epoch: Epoch,
    leaves: Vec<Leaf>,
    nodes: Vec<Node>,
    groups: Vec<GroupId>,
    wires: VecDeque<Frame>,
    /// The rank whose contributions do not arrive.
    cut: Option<u32>,
    /// The pieces to which each has contributed in this epoch, and whether it said that they had
    /// been sent before.
    said: BTreeMap<Sender, BTreeMap<u64, bool>>,
}

impl Job {
    /// Six ranks with a group of all of them.
    fn new() -> Job {
        let limits = limits(1, 0);
        let mut job = Job {
            epoch: EPOCH,
            leaves: (0..RANKS).map(|rank| leaf(rank, limits, Recovery::Retry)).collect(),
            nodes: nodes(limits, EPOCH, Recovery::Retry),
            groups: Vec::new(),
            wires: VecDeque::new(),
            cut: None,
            said: BTreeMap::new(),
        };
        for Leaf { core, memory } in &mut job.leaves {
            core.on_link_up(Nanos(0), EPOCH, memory);
            job.groups.push(create(core, RankList::world(RANKS), 0, memory));
        }
        job.run();
        job
    }

    fn post(&mut self, ranks: impl IntoIterator<Item = u32>, signature: Signature) {
        for rank in ranks {
            let Leaf { core, memory } = &mut self.leaves[rank as usize];
            let post = Post { id: core.next_op(), number: None, signature, stretch_of: 0 };
            memory.inputs.insert(post.id, vector(rank, signature.count, 0));
            core.post(Nanos(0), self.groups[rank as usize], &post, memory).expect("the operation is valid");
        }
        self.run();
    }

    /// All nodes die, and others take their places.
    fn move_on(&mut self) {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.nodes = nodes(limits(1, 0), self.epoch, Recovery::Retry);
        (self.cut, self.said) = (None, BTreeMap::new());
        self.wires.clear();
        for Leaf { core, memory } in &mut self.leaves {
            core.on_link_down(memory);
            memory.notes.clear();
            core.on_link_up(Nanos(0), self.epoch, memory);
        }
        self.run();
    }

    fn run(&mut self) {
        while self.collect() {
            let Some(frame) = self.wires.pop_front() else { continue };
            match frame.to {
                End::Leaf(rank) => {
                    let Leaf { core, memory } = &mut self.leaves[rank as usize];
                    memory.incoming = frame.data;
                    core.on_frame(Nanos(0), frame.path, &frame.header, frame.body, memory);
                }
                End::Node(id, link) => {
                    let Node { core, memory } = &mut self.nodes[usize::from(id)];
                    let data = (!frame.data.is_empty()).then_some(frame.data);
                    let frame = node::Frame { path: frame.path, header: &frame.header, body: &frame.body, data };
                    core.on_frame(Nanos(0), link, frame, memory);
                }
            }
        }
    }

    /// Puts what was sent on its way. Returns whether anything goes on.
    fn collect(&mut self) -> bool {
        let mut sent = Vec::new();
        for Leaf { memory, .. } in &mut self.leaves {
            sent.extend(memory.sent.drain(..).map(|frame| (Sender::Rank(memory.rank), frame)));
        }
        let mut goes_on = !self.wires.is_empty();
        for Node { core, memory } in &mut self.nodes {
            sent.extend(memory.sent.drain(..).map(|frame| (Sender::Node(memory.node), frame)));
            for (child, header) in std::mem::take(&mut memory.written) {
                core.on_written(Nanos(0), child, &header, memory);
                goes_on = true;
            }
        }
        for (from, frame) in sent {
            goes_on = true;
            if frame.header.kind != Kind::Contribution {
                assert!(!frame.header.is_replayed(), "it has no meaning in {}", frame.header);
            } else {
                self.said.entry(from).or_default().insert(frame.header.seq, frame.header.is_replayed());
                if self.cut.map(Sender::Rank) == Some(from) {
                    continue;
                }
            }
            self.wires.push_back(frame);
        }
        goes_on
    }

    /// How many pieces each rank has sent in this epoch.
    fn sent(&self) -> Vec<u64> {
        (0..RANKS).map(|rank| self.said.get(&Sender::Rank(rank)).map_or(0, |said| said.len() as u64)).collect()
    }

    /// Everything is over. Those of `all` pieces, 16 bytes each, say that they were sent before
    /// that were. `before` has their number at each rank.
    fn check(&self, path: Path, before: &[u64], all: u64) {
        let most = |ranks: std::ops::Range<usize>| *before[ranks].iter().max().expect("there are ranks");
        let nodes = [(Sender::Node(1), most(0..3)), (Sender::Node(2), most(3..6))];
        let ranks = before.iter().enumerate().map(|(rank, before)| (Sender::Rank(rank as u32), *before));
        for (from, before) in ranks.chain(nodes) {
            let wanted: BTreeMap<u64, bool> = (0..all).map(|seq| (seq, seq < before)).collect();
            assert_eq!(self.said[&from], wanted, "{from:?}");
        }
        for Leaf { core, memory } in &self.leaves {
            let counted = memory.notes.iter().filter(|note| **note == Note::Replayed).count() as u64;
            assert_eq!((core.outstanding(), counted), (0, before[memory.rank as usize]), "rank {}", memory.rank);
        }
        let counted = [0, 1, 2].map(|node: usize| self.nodes[node].memory.replayed.clone());
        assert_eq!(counted, [vec![(path, 16); most(0..6) as usize], vec![], vec![]]);
    }
}

/// A vector of so many bytes.
fn allreduce(count: u64) -> Signature {
    signature(Collective::Allreduce, count, 0)
}

#[test]
fn fragments_that_were_sent_in_the_epoch_before_say_so_and_no_others() {
    let mut job = Job::new();
    job.post(0..5, allreduce(5 * 16));
    assert_eq!(job.sent(), [3, 3, 3, 3, 3, 0], "a window");
    assert!(job.said.values().flat_map(BTreeMap::values).all(|replayed| !replayed), "this is the first epoch");
    job.move_on();
    job.post(5..6, allreduce(5 * 16));
    job.check(Path::Datagram, &[3, 3, 3, 3, 3, 0], 5);
}

#[test]
fn one_rank_that_sends_again_is_enough() {
    // Its part comes first at the nodes above it, or last at the root.
    for early in [1, 5] {
        let mut job = Job::new();
        job.post([early], allreduce(5 * 16));
        let before = job.sent();
        assert_eq!((before.iter().sum::<u64>(), before[early as usize]), (3, 3));
        job.move_on();
        for late in (0..RANKS).filter(|rank| *rank != early) {
            job.post([late], allreduce(5 * 16));
        }
        job.check(Path::Datagram, &before, 5);
    }
}

#[test]
fn segments_that_were_sent_in_the_epoch_before_say_so_and_no_others() {
    // The flight, or the staging room of a node that does not fold.
    for (cut, before) in [(5, [3, 3, 3, 2, 2, 2]), (0, [2, 2, 2, 3, 3, 3])] {
        let mut job = Job::new();
        job.cut = Some(cut);
        job.post(0..RANKS, allreduce(20 * 16));
        assert_eq!(job.sent(), before);
        assert!(job.said.values().flat_map(BTreeMap::values).all(|replayed| !replayed), "this is the first epoch");
        job.move_on();
        job.check(Path::Stream, &before, 20);
    }
}

/// The key of the group of all ranks.
fn key() -> GroupKey {
    GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) }
}

/// One rank with the group of all, without the others.
struct Alone {
    leaf: Leaf,
    epoch: Epoch,
    group: GroupId,
}

impl Alone {
    fn new() -> Alone {
        let mut leaf = leaf(0, limits(1, 0), Recovery::Retry);
        leaf.core.on_link_up(Nanos(0), EPOCH, &mut leaf.memory);
        let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
        let mut alone = Alone { leaf, epoch: EPOCH, group };
        alone.hear(Kind::Ready, Path::Stream, 0, Body::Ready(key(), Marks::default()));
        alone
    }

    fn post(&mut self, count: u64) {
        let Leaf { core, memory } = &mut self.leaf;
        let post = Post { id: core.next_op(), number: None, signature: allreduce(count), stretch_of: 0 };
        memory.inputs.insert(post.id, vector(0, count, 0));
        core.post(Nanos(0), self.group, &post, memory).expect("the operation is valid");
    }

    fn hear(&mut self, kind: Kind, path: Path, seq: u64, body: Body) {
        let flags = if kind == Kind::Held { 0 } else { FLAG_STREAM };
        let header = Header { seq, flags, ..Header::new(kind, JobId(7), self.epoch, NodeId(1), ChildIndex(0)) };
        self.leaf.core.on_frame(Nanos(0), path, &header, body, &mut self.leaf.memory);
    }

    fn move_on(&mut self) {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.leaf.core.on_link_down(&mut self.leaf.memory);
        self.leaf.core.on_link_up(Nanos(0), self.epoch, &mut self.leaf.memory);
        self.hear(Kind::Ready, Path::Stream, 0, Body::Ready(key(), Marks::default()));
    }

    /// The result of a piece comes, all zeros.
    fn receive(&mut self, sent: &Frame) {
        let Leaf { core, memory } = &mut self.leaf;
        memory.incoming = vec![0; 16];
        let header = Header { kind: Kind::Result, epoch: self.epoch, ..sent.header };
        core.on_frame(Nanos(0), sent.path, &header, Body::None, memory);
    }

    /// The pieces that were sent since the last call, and whether they had been sent before.
    fn said(&mut self) -> Vec<(u64, bool)> {
        let sent = self.leaf.memory.sent.drain(..).map(|frame| frame.header);
        sent.filter(|header| header.kind == Kind::Contribution).map(|h| (h.seq, h.is_replayed())).collect()
    }
}

#[test]
fn a_fragment_that_is_lost_and_sent_again_says_what_it_said() {
    let mut alone = Alone::new();
    let lose = |alone: &mut Alone| {
        let Leaf { core, memory } = &mut alone.leaf;
        core.on_timer(core.next_deadline(), memory);
        alone.said();
        let held = Body::Held(Held { node: NodeId(1), missing: 1, have: 0, have_base: 0 });
        alone.hear(Kind::Held, Path::Datagram, 0, held);
        alone.said()
    };
    alone.post(16);
    assert_eq!((alone.said(), lose(&mut alone)), (vec![(0, false)], vec![(0, false)]));
    alone.move_on();
    assert_eq!((alone.said(), lose(&mut alone)), (vec![(0, true)], vec![(0, true)]));
}

#[test]
fn what_was_sent_two_epochs_ago_was_sent_before() {
    for (count, path) in [(6 * 16, Path::Datagram), (20 * 16, Path::Stream)] {
        let mut alone = Alone::new();
        alone.post(count);
        let lease = |alone: &mut Alone| {
            if path == Path::Stream {
                alone.hear(Kind::Grant, Path::Stream, 1, Body::None);
                alone.hear(Kind::Credit, Path::Stream, 20, Body::None);
            }
        };
        lease(&mut alone);
        let sent: Vec<Frame> =
            alone.leaf.memory.sent.drain(..).filter(|f| f.header.kind == Kind::Contribution).collect();
        alone.receive(&sent[0]);
        alone.receive(&sent[1]);
        assert_eq!(alone.said(), [(3, false), (4, false)], "a window, or a flight, behind the second result");
        // Others lack the first results. The next nodes die before there are any.
        alone.move_on();
        lease(&mut alone);
        assert_eq!(alone.said(), [(0, true), (1, true), (2, true)]);
        alone.move_on();
        lease(&mut alone);
        assert_eq!(alone.said(), [(0, true), (1, true), (2, true)]);
        for frame in &sent {
            alone.receive(frame);
        }
        assert_eq!(alone.said(), [(3, true), (4, true), (5, false)], "{path:?}");
    }
}

#[test]
fn segments_that_a_lease_ended_before_are_sent_again_in_the_epoch_and_do_not_say_so() {
    let mut alone = Alone::new();
    alone.post(20 * 16);
    alone.hear(Kind::Grant, Path::Stream, 1, Body::None);
    assert_eq!(alone.said(), [(0, false), (1, false)]);
    alone.hear(Kind::Revoke, Path::Stream, 1, Body::None);
    alone.hear(Kind::LeaseEnd, Path::Stream, 0, Body::None);
    alone.hear(Kind::Grant, Path::Stream, 2, Body::None);
    assert_eq!(alone.said(), [(0, false), (1, false)], "nodes have dropped them");
    alone.hear(Kind::Revoke, Path::Stream, 2, Body::None);
    alone.hear(Kind::LeaseEnd, Path::Stream, 0, Body::None);
    alone.move_on();
    alone.hear(Kind::Grant, Path::Stream, 1, Body::None);
    assert_eq!(alone.said(), [(0, true), (1, true)], "they were sent, though nothing was on its way");
}
