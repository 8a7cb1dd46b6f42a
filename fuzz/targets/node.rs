//! A node's core between correct ranks, a hostile child or parent with valid keys, and a clock.
//!
//! An input is a quota and then steps: the ranks' programs make groups, post and free; frames are
//! brought on, lost, doubled, changed and made up; links come and go; time passes.
//!
//! Asserted: nothing panics; buffers, slots, stream contexts and the core's own memory stay within
//! the grant; every frame that is sent is one that a parser takes, goes to a neighbour that exists,
//! and has a cause; folds have parts that fit; a timer that was called is not due again at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::answer::Above;
use trib_fuzz::draw::Draw;
use trib_fuzz::frames::{Frame, change, frame, ranks, signature};
use trib_fuzz::leaf::Leaf;
use trib_fuzz::limits::{ELEMENTS_MAX, ROUNDS_MAX, SPANS, STEPS_MAX};
use trib_fuzz::node::{LEAVES, Node};
use trib_proto::Nanos;
use trib_proto::node::Link;
use trib_wire::{ChildIndex, Placement, RankList, Signature};

fuzz_target!(|bytes: &[u8]| {
    let mut draw = Draw::new(bytes);
    let mut world = World::new(&mut draw);
    for _ in 0..STEPS_MAX {
        if draw.is_over() {
            break;
        }
        world.step(&mut draw);
    }
    world.node.explain();
    world.node.move_to(&Placement::FIRST);
});

struct World {
    node: Node,
    leaves: Vec<Leaf>,
    above: Above,
    now: Nanos,
    /// The last frame that came, which may come again.
    last: Option<(Link, Frame)>,
}

impl World {
    fn new(draw: &mut Draw<'_>) -> World {
        let mut node = Node::new(draw);
        let config = node.config();
        let (limits, policy) = (config.limits, (config.recovers, config.strict));
        let mut leaves: Vec<Leaf> = (0..LEAVES).map(|rank| Leaf::new(rank, limits, policy, 1 << 20)).collect();
        for (child, leaf) in leaves.iter_mut().enumerate() {
            leaf.link_up(Nanos(0), trib_fuzz::node::EPOCH);
            node.link_is(Nanos(0), Link::Child(ChildIndex(child as u16)), true);
        }
        for link in [Link::Child(ChildIndex(LEAVES as u16)), Link::Parent] {
            if (link != Link::Parent || node.config().parent.is_some()) && !draw.one_in(4) {
                node.link_is(Nanos(0), link, true);
            }
        }
        World { node, leaves, above: Above::default(), now: Nanos(0), last: None }
    }

    fn step(&mut self, draw: &mut Draw<'_>) {
        let now = self.now;
        match draw.below(20) {
            0 => self.create(draw),
            1 => {
                let (rank, which, signature) = (self.leaf(draw), draw.byte().into(), operation(draw));
                self.leaves[rank].post(now, which, signature, None);
            }
            2 => {
                let (rank, which) = (self.leaf(draw), draw.byte().into());
                self.leaves[rank].free(now, which);
            }
            3 => self.post_everywhere(draw),
            4..8 => self.bring_all(draw),
            8 => self.bring_one(draw, |_, _| {}),
            9 => self.bring_one(draw, change),
            10 => {
                let link = self.node.link(draw);
                if let Some(frame) = frame(draw, self.node.edge(link)) {
                    self.hand_in(link, frame);
                }
            }
            11 => {
                if let Some((link, frame)) = self.last.clone() {
                    self.node.frame(now, link, &frame);
                }
            }
            12 => self.node.write(now, draw.one_in(2)),
            13 => self.pass(draw),
            14 => {
                let rank = self.leaf(draw);
                self.leaves[rank].out.up.clear();
            }
            15 => {
                let (link, up) = (self.node.link(draw), draw.one_in(2));
                if let (false, Link::Child(child)) = (self.node.link_is(now, link, up), link)
                    && let Some(leaf) = self.leaves.get_mut(usize::from(child.0))
                {
                    leaf.link_down();
                }
            }
            16 => self.node.gone(now, ChildIndex(draw.below(4) as u16)),
            17 => {
                let link = self.node.link(draw);
                let header = self.last.as_ref().map_or(self.node.edge(link), |(_, frame)| frame.header);
                self.node.too_long(now, link, &header);
            }
            18 => {
                let (rank, which) = (self.leaf(draw), draw.byte().into());
                self.leaves[rank].tell(now, which, draw);
            }
            _ => self.answer(draw),
        }
    }

    fn leaf(&self, draw: &mut Draw<'_>) -> usize {
        draw.below(LEAVES) as usize
    }

    /// The programs of all ranks that are here make a group.
    fn create(&mut self, draw: &mut Draw<'_>) {
        let (members, tag, companion) = (ranks(draw), draw.below(2).into(), draw.one_in(4));
        for leaf in &mut self.leaves {
            leaf.create(members.clone(), tag, companion);
        }
    }

    /// All ranks post the same operation.
    fn post_everywhere(&mut self, draw: &mut Draw<'_>) {
        let (which, signature) = (draw.byte().into(), operation(draw));
        for leaf in &mut self.leaves {
            leaf.post(self.now, which, signature, None);
        }
    }

    /// Brings all that was sent to where it goes, until nothing is sent any more.
    fn bring_all(&mut self, draw: &mut Draw<'_>) {
        let answers = draw.one_in(2);
        for _ in 0..ROUNDS_MAX {
            let mut moved = false;
            for child in 0..self.leaves.len() {
                for frame in std::mem::take(&mut self.leaves[child].out.up) {
                    moved = true;
                    self.hand_in(Link::Child(ChildIndex(child as u16)), frame);
                }
            }
            self.node.write(self.now, true);
            if answers {
                moved |= self.answer_all();
            }
            for (child, leaf) in self.leaves.iter_mut().enumerate() {
                for frame in std::mem::take(&mut self.node.out.down[child]) {
                    moved = true;
                    leaf.frame(self.now, &frame);
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Brings one frame of a rank to the node, perhaps another than it was.
    fn bring_one(&mut self, draw: &mut Draw<'_>, spoil: impl Fn(&mut Draw<'_>, &mut Frame)) {
        let child = self.leaf(draw);
        if self.leaves[child].out.up.is_empty() {
            return;
        }
        let mut frame = self.leaves[child].out.up.remove(0);
        spoil(draw, &mut frame);
        self.hand_in(Link::Child(ChildIndex(child as u16)), frame);
    }

    /// The parent answers one frame, perhaps with another than would be right.
    fn answer(&mut self, draw: &mut Draw<'_>) {
        if self.node.out.up.is_empty() {
            return;
        }
        let frame = self.node.out.up.remove(0);
        if let Some(mut answer) = self.above.answer(&frame, &below()) {
            if draw.one_in(2) {
                change(draw, &mut answer);
            }
            self.hand_in(Link::Parent, answer);
        }
    }

    /// The parent answers everything; the node below answers nothing.
    fn answer_all(&mut self) -> bool {
        let frames = std::mem::take(&mut self.node.out.up);
        for frame in &frames {
            if let Some(answer) = self.above.answer(frame, &below()) {
                self.hand_in(Link::Parent, answer);
            }
        }
        !frames.is_empty()
    }

    fn hand_in(&mut self, link: Link, frame: Frame) {
        self.node.frame(self.now, link, &frame);
        self.last = Some((link, frame));
    }

    /// Time passes, up to the next timer or by some span.
    fn pass(&mut self, draw: &mut Draw<'_>) {
        self.now = self.now + draw.pick(&SPANS);
        self.node.time(self.now);
        for leaf in &mut self.leaves {
            leaf.time(self.now);
        }
    }
}

/// An operation that ranks agree on, most often a short one.
fn operation(draw: &mut Draw<'_>) -> Signature {
    let signature = signature(draw);
    Signature { count: signature.count % ELEMENTS_MAX, root: signature.root % 2, ..signature }
}

/// The ranks at and below the node.
fn below() -> RankList {
    RankList::world(LEAVES + 2)
}
