//! The core when nodes die: every rank loses its connection and goes to the next epoch at a time of
//! its own, and yet every operation ends everywhere with the right bytes.
//!
//! The programs of the ranks, the order of frames on different links, the loss of datagrams and the
//! moments of death are drawn from a seed. Nothing is read of a program's input once its operation
//! is over, except the copy that the core has asked for (`LeafMemory::complete`).

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use trib_messages::policy::Recovery;
use trib_proto::leaf::{GroupId, OpId, Post};
use trib_proto::node::{self, Link};
use trib_proto::{Limits, Nanos, Path, window};
use trib_wire::{Collective, Epoch, RankList, Signature};

use crate::parts::{EPOCH, End, Frame, Leaf, Node, RANKS, create, leaf, limits, nodes, received, signature, vector};

/// Numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

/// What a rank's program does next.
#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Post(usize, usize),
    /// Wait for all that was posted in the group, then leave it.
    Free(usize),
}

/// A group of the program, and the operations that its members post.
struct Plan {
    members: Vec<u32>,
    tag: u64,
    operations: Vec<Signature>,
}

/// A direction of a link in one epoch, over one path: from one actor to another.
type Way = (usize, u32, u32, bool);

struct Fabric {
    random: Random,
    limits: Limits,
    policy: Recovery,
    plans: Vec<Plan>,
    leaves: Vec<Leaf>,
    scripts: Vec<VecDeque<Step>>,
    groups: Vec<BTreeMap<usize, GroupId>>,
    posted: Vec<BTreeMap<(usize, usize), OpId>>,
    /// The epoch of each rank, and all nodes that ever were; `None` are dead.
    at: Vec<usize>,
    epochs: Vec<Option<Vec<Node>>>,
    ways: BTreeMap<Way, VecDeque<Frame>>,
    /// How many datagrams of a hundred are lost.
    loss: usize,
    now: Nanos,
}

impl Fabric {
    fn new(seed: u64) -> Fabric {
        let mut random = Random(seed);
        let policy = if seed.is_multiple_of(3) { Recovery::Strict } else { Recovery::Retry };
        let limits = Limits {
            window: 1 + random.below(5) as u32,
            staging: 1 + random.below(3) as u32,
            flight: 1 + random.below(4) as u32,
            control_memory: 1 << 20,
            heartbeat: Nanos::from_millis(1_000_000),
            dead_after: Nanos::from_millis(60_000_000),
            groups: 16,
            osts: 128,
            ..limits(1 + random.below(2) as u32, random.below(3) as u32)
        };
        let shapes: [&[u32]; 5] = [&[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 5], &[4, 1], &[0, 2], &[5, 3, 0]];
        let plans: Vec<Plan> = (0..1 + random.below(4))
            .map(|_| {
                let members = shapes[random.below(shapes.len())].to_vec();
                let collective = |random: &mut Random| Collective::ALL[random.below(Collective::ALL.len())];
                let operations = (0..random.below(6))
                    .map(|_| {
                        let collective = collective(&mut random);
                        let count = [0, 1, 9, 40, 150, 400][random.below(6)];
                        let root = random.below(members.len()) as u32;
                        signature(collective, if collective == Collective::Barrier { 0 } else { count }, root)
                    })
                    .collect();
                Plan { members, tag: random.below(2) as u64, operations }
            })
            .collect();
        let scripts = (0..RANKS).map(|rank| script(&plans, rank)).collect();
        Fabric {
            loss: [0, 0, 10, 40][random.below(4)],
            random,
            limits,
            policy,
            plans,
            leaves: (0..RANKS).map(|rank| leaf(rank, limits, policy)).collect(),
            scripts,
            groups: vec![BTreeMap::new(); RANKS as usize],
            posted: vec![BTreeMap::new(); RANKS as usize],
            at: vec![0; RANKS as usize],
            epochs: vec![Some(nodes(limits, EPOCH, policy))],
            ways: BTreeMap::new(),
            now: Nanos(0),
        }
    }

    /// Runs the program with so many changes of the epoch.
    fn run(mut self, changes: usize) {
        // The programs may begin before their connections are open.
        let mut closed: Vec<usize> = (0..self.leaves.len()).collect();
        let mut changes: Vec<usize> = (0..changes).map(|_| self.random.below(2500)).collect();
        changes.sort_unstable();
        for turn in 0.. {
            assert!(turn < 200_000, "it hangs: {}", self.state());
            while changes.first() == Some(&turn) {
                changes.remove(0);
                self.change_epoch();
            }
            self.collect();
            let last = self.epochs.len() - 1;
            let is_behind = |rank: &usize| self.at[*rank] < last && !closed.contains(rank);
            let behind: Vec<usize> = (0..self.at.len()).filter(is_behind).collect();
            let called = |way: &Way| way.2 < 100 || self.at[way.2 as usize - 100] == way.0;
            let ways: Vec<Way> =
                self.ways.iter().filter(|(way, queue)| !queue.is_empty() && called(way)).map(|(way, _)| *way).collect();
            match self.random.below(10) {
                0 if !closed.is_empty() => {
                    let rank = closed.swap_remove(self.random.below(closed.len()));
                    let Leaf { core, memory } = &mut self.leaves[rank];
                    core.on_link_up(self.now, EPOCH, memory);
                }
                0 if !behind.is_empty() => {
                    let rank = behind[self.random.below(behind.len())];
                    self.move_rank(rank);
                }
                1..3 => {
                    let rank = self.random.below(RANKS as usize);
                    self.go_on(rank);
                }
                _ if !ways.is_empty() => {
                    let way = ways[self.random.below(ways.len())];
                    self.deliver(way);
                }
                _ => self.wait(),
            }
            let idle = closed.is_empty() && ways.is_empty() && behind.is_empty() && changes.is_empty();
            if idle && self.scripts.iter().all(VecDeque::is_empty) && self.is_quiet() {
                break;
            }
        }
        self.check();
    }

    /// All nodes die or are given up, and there are others. Ranks learn of it one after the other.
    fn change_epoch(&mut self) {
        let die = self.random.below(2) == 0;
        let last = self.epochs.len() - 1;
        if die {
            self.epochs[last] = None;
            self.ways.retain(|(epoch, ..), _| *epoch != last);
        }
        let epoch = Epoch(EPOCH.0 + self.epochs.len() as u32);
        self.epochs.push(Some(nodes(self.limits, epoch, self.policy)));
    }

    fn move_rank(&mut self, rank: usize) {
        let number = End::Leaf(rank as u32).number();
        let old = self.at[rank];
        self.ways.retain(|(epoch, _, to, _), _| *epoch != old || *to != number);
        self.at[rank] = self.epochs.len() - 1;
        let epoch = Epoch(EPOCH.0 + self.at[rank] as u32);
        let Leaf { core, memory } = &mut self.leaves[rank];
        core.on_link_down(memory);
        core.on_link_up(self.now, epoch, memory);
    }

    /// The rank's program does its next step, if it need not wait.
    fn go_on(&mut self, rank: usize) {
        let Some(step) = self.scripts[rank].front().cloned() else { return };
        let Leaf { core, memory } = &mut self.leaves[rank];
        match step {
            Step::Create(group) => {
                let plan = &self.plans[group];
                let id = create(core, RankList::from_ranks(plan.members.iter().copied()), plan.tag, memory);
                self.groups[rank].insert(group, id);
            }
            Step::Post(group, number) => {
                let plan = &self.plans[group];
                let signature = plan.operations[number];
                let len = window::vector_elements(&signature, plan.members.len() as u32).unwrap();
                let id = core.next_op();
                memory.inputs.insert(id, vector(rank as u32, len, salt(group, number)));
                self.posted[rank].insert((group, number), id);
                let post = Post { id, number: None, signature, stretch_of: 0 };
                core.post(self.now, self.groups[rank][&group], &post, memory).unwrap();
            }
            Step::Free(group) => {
                let mut posted = self.posted[rank].iter().filter(|((g, _), _)| *g == group);
                if !posted.all(|(_, op)| memory.done.contains_key(op)) {
                    return;
                }
                core.free_group(self.now, self.groups[rank][&group], memory);
            }
        }
        self.scripts[rank].pop_front();
    }

    /// Puts what was sent on its way.
    fn collect(&mut self) {
        for (rank, leaf) in self.leaves.iter_mut().enumerate() {
            for frame in leaf.memory.sent.drain(..) {
                let way =
                    (self.at[rank], End::Leaf(rank as u32).number(), frame.to.number(), frame.path == Path::Stream);
                if self.epochs[self.at[rank]].is_some() {
                    self.ways.entry(way).or_default().push_back(frame);
                }
            }
        }
        for (epoch, nodes) in self.epochs.iter_mut().enumerate() {
            for node in nodes.iter_mut().flatten() {
                for (child, header) in std::mem::take(&mut node.memory.written) {
                    node.core.on_written(self.now, child, &header, &mut node.memory);
                }
                let from = End::Node(node.memory.node, Link::Parent).number();
                for frame in node.memory.sent.drain(..) {
                    // What a node sends to a rank that has not called yet waits for it.
                    if matches!(frame.to, End::Leaf(rank) if self.at[rank as usize] > epoch) {
                        continue;
                    }
                    let way = (epoch, from, frame.to.number(), frame.path == Path::Stream);
                    self.ways.entry(way).or_default().push_back(frame);
                }
            }
        }
    }

    fn deliver(&mut self, way: Way) {
        let queue = self.ways.get_mut(&way).unwrap();
        let at = if way.3 { 0 } else { self.random.below(queue.len()) };
        let frame = queue.remove(at).unwrap();
        if !way.3 && self.random.below(100) < self.loss {
            return;
        }
        match frame.to {
            End::Leaf(rank) => {
                let Leaf { core, memory } = &mut self.leaves[rank as usize];
                memory.incoming = frame.data;
                core.on_frame(self.now, frame.path, &frame.header, frame.body, memory);
            }
            End::Node(id, link) => {
                let Some(nodes) = &mut self.epochs[way.0] else { return };
                let Node { core, memory } = &mut nodes[usize::from(id)];
                let data = (!frame.data.is_empty()).then_some(frame.data);
                let frame = node::Frame { path: frame.path, header: &frame.header, body: &frame.body, data };
                core.on_frame(self.now, link, frame, memory);
            }
        }
    }

    /// Nothing is on its way: the time goes on to the next timer.
    fn wait(&mut self) {
        let next = self.leaves.iter().map(|leaf| leaf.core.next_deadline()).min().unwrap_or(Nanos::NEVER);
        if next < Nanos::from_millis(900_000) {
            self.now = Nanos(self.now.0.max(next.0));
            for Leaf { core, memory } in &mut self.leaves {
                core.on_timer(self.now, memory);
            }
        }
    }

    /// What is not at its end.
    fn state(&self) -> String {
        let ranks: Vec<_> = (0..self.leaves.len())
            .map(|rank| {
                let core = &self.leaves[rank].core;
                (self.at[rank], core.outstanding(), core.groups_left_behind(), &self.scripts[rank])
            })
            .collect();
        let ways: Vec<_> = self.ways.iter().filter(|(_, queue)| !queue.is_empty()).map(|(way, _)| way).collect();
        format!("{ranks:?}, under way {ways:?}")
    }

    fn is_quiet(&self) -> bool {
        let silent = |leaf: &Leaf| leaf.memory.sent.is_empty() && leaf.core.groups_left_behind() == 0;
        let empty = |node: &Node| node.memory.sent.is_empty() && node.memory.written.is_empty();
        self.leaves.iter().all(silent) && self.epochs.last().unwrap().iter().flatten().all(empty)
    }

    fn check(&self) {
        for (rank, leaf) in self.leaves.iter().enumerate() {
            assert_eq!(leaf.core.outstanding(), 0, "rank {rank}");
            assert!(leaf.memory.inputs.is_empty(), "rank {rank} keeps {:?}", leaf.memory.inputs.keys());
            assert!(leaf.memory.failed.is_empty(), "rank {rank}: {:?}", leaf.memory.failed);
            for ((group, number), op) in &self.posted[rank] {
                let plan = &self.plans[*group];
                let signature = &plan.operations[*number];
                assert!(leaf.memory.done[op].is_ok(), "{signature}: {:?}", leaf.memory.done[op]);
                let expected = expected(plan, signature, salt(*group, *number));
                let me = plan.members.iter().position(|member| *member == rank as u32).unwrap() as u32;
                let size = plan.members.len() as u32;
                let gotten = window::gotten(signature, size, me);
                let bytes = received(leaf.memory.results.get(op), signature, (size, me), &expected);
                assert_eq!(bytes, expected[gotten.start as usize..gotten.end as usize], "{signature} at rank {rank}");
            }
        }
        for node in self.epochs.last().unwrap().iter().flatten() {
            assert_eq!(node.core.groups(), 0, "groups left at node {}", node.memory.node);
            assert_eq!(node.core.buffers_held(), (0, 0), "buffers left at node {}", node.memory.node);
            assert_eq!(node.core.streams_held(), 0);
        }
    }
}

impl End {
    /// A number for the actor: nodes first, then ranks.
    fn number(self) -> u32 {
        match self {
            End::Node(node, _) => u32::from(node),
            End::Leaf(rank) => 100 + rank,
        }
    }
}

/// The groups one after the other; two at a time are alive.
fn script(plans: &[Plan], rank: u32) -> VecDeque<Step> {
    let mut steps = VecDeque::new();
    let mine: Vec<usize> = (0..plans.len()).filter(|group| plans[*group].members.contains(&rank)).collect();
    for pair in mine.chunks(2) {
        steps.extend(pair.iter().map(|group| Step::Create(*group)));
        for number in 0..6 {
            let posts = pair.iter().filter(|group| number < plans[**group].operations.len());
            steps.extend(posts.map(|group| Step::Post(*group, number)));
        }
        steps.extend(pair.iter().map(|group| Step::Free(*group)));
    }
    steps
}

fn salt(group: usize, number: usize) -> u64 {
    (group * 16 + number) as u64
}

fn expected(plan: &Plan, signature: &Signature, salt: u64) -> Vec<u8> {
    let size = plan.members.len() as u32;
    let len = window::vector_elements(signature, size).unwrap();
    let mut sum = vec![0u8; len as usize];
    for (position, rank) in plan.members.iter().enumerate() {
        let input = vector(*rank, len, salt);
        for at in window::given(signature, size, position as u32) {
            sum[at as usize] = sum[at as usize].wrapping_add(input[at as usize]);
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_operation_ends_with_the_right_bytes(seed in any::<u64>(), changes in 0usize..5) {
        Fabric::new(seed).run(changes);
    }
}
