//! A rank's core under a program, a node above it that may be hostile, and a clock.
//!
//! An input is a quota and then steps: the program makes groups, posts and frees; the node answers
//! rightly, wrongly, late, twice, or says what nobody asked; the connection ends and comes again in
//! the next epoch; time passes.
//!
//! Asserted: nothing panics; each operation is over once, succeeds only with all of its result, and
//! has each element delivered at most once, to where `destination` said; only what is given and not
//! forgotten is read; every frame that is sent is one that a parser takes; a group fails once; a
//! timer that was called is not due again at once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::answer::Above;
use trib_fuzz::draw::Draw;
use trib_fuzz::frames::{Frame, change, frame, ranks, signature};
use trib_fuzz::leaf::Leaf;
use trib_fuzz::limits::{ELEMENTS_MAX, ROUNDS_MAX, SPANS, STEPS_MAX, limits};
use trib_fuzz::node::{EPOCH, JOB, NODE};
use trib_proto::Nanos;
use trib_wire::{ChildIndex, Epoch, Header, Kind, RankList, Signature};

fuzz_target!(|bytes: &[u8]| {
    let mut draw = Draw::new(bytes);
    let quota = limits(&mut draw);
    let recovers = draw.one_in(2);
    let policy = (recovers, recovers && draw.one_in(2));
    let mut leaf = Leaf::new(RANK, quota, policy, draw.pick(&[1, 40, 1 << 20]));
    let mut world = World { now: Nanos(0), epoch: EPOCH, above: Above::default(), last: None };
    leaf.link_up(world.now, world.epoch);
    for _ in 0..STEPS_MAX {
        if draw.is_over() {
            break;
        }
        world.step(&mut leaf, &mut draw);
    }
});

struct World {
    now: Nanos,
    epoch: Epoch,
    above: Above,
    /// The last frame that came, which may come again.
    last: Option<Frame>,
}

impl World {
    fn step(&mut self, leaf: &mut Leaf, draw: &mut Draw<'_>) {
        let now = self.now;
        match draw.below(16) {
            0 => leaf.create(ranks(draw), draw.below(2).into(), draw.one_in(4)),
            1..4 => {
                let (which, signature) = (draw.byte().into(), operation(draw));
                let number = draw.one_in(8).then(|| (draw.number(1 << 40), draw.below(3) as u16));
                leaf.post(now, which, signature, number);
            }
            4 => leaf.free(now, draw.byte().into()),
            5..8 => self.answer_all(leaf),
            8 => self.answer(leaf, |_| {}),
            9 => self.answer(leaf, |frame| change(draw, frame)),
            10 => {
                if let Some(frame) = frame(draw, self.edge()) {
                    self.hand_in(leaf, frame);
                }
            }
            11 => {
                if let Some(frame) = self.last.clone() {
                    leaf.frame(now, &frame);
                }
            }
            12 => {
                self.now = if draw.one_in(2) { leaf.deadline().min(now + DAY) } else { now + draw.pick(&SPANS) };
                leaf.time(self.now);
            }
            13 => {
                leaf.link_down();
                if leaf.is_detached() && draw.one_in(2) {
                    (self.epoch, self.above) = (Epoch(self.epoch.0 + 1), Above::default());
                    leaf.out.up.clear();
                    leaf.link_up(now, self.epoch);
                }
            }
            14 => leaf.tell(now, draw.byte().into(), draw),
            _ => {
                let header = self.last.as_ref().map_or(self.edge(), |frame| frame.header);
                leaf.too_long(now, &header);
            }
        }
    }

    /// The node answers what was sent, until nothing is sent any more.
    fn answer_all(&mut self, leaf: &mut Leaf) {
        for _ in 0..ROUNDS_MAX {
            let frames = std::mem::take(&mut leaf.out.up);
            if frames.is_empty() {
                return;
            }
            for frame in &frames {
                if let Some(answer) = self.above.answer(frame, &RankList::from_ranks([RANK])) {
                    self.hand_in(leaf, answer);
                }
            }
        }
    }

    /// The node answers one frame, perhaps with another than would be right.
    fn answer(&mut self, leaf: &mut Leaf, spoil: impl FnOnce(&mut Frame)) {
        if leaf.out.up.is_empty() {
            return;
        }
        let frame = leaf.out.up.remove(0);
        if let Some(mut answer) = self.above.answer(&frame, &RankList::from_ranks([RANK])) {
            spoil(&mut answer);
            self.hand_in(leaf, answer);
        }
    }

    fn hand_in(&mut self, leaf: &mut Leaf, frame: Frame) {
        leaf.frame(self.now, &frame);
        self.last = Some(frame);
    }

    fn edge(&self) -> Header {
        Header::new(Kind::Heartbeat, JOB, self.epoch, NODE, ChildIndex(RANK as u16))
    }
}

/// An operation, most often a short one.
fn operation(draw: &mut Draw<'_>) -> Signature {
    let signature = signature(draw);
    let count = if draw.one_in(16) { signature.count } else { signature.count % ELEMENTS_MAX };
    Signature { count, root: signature.root % 3, ..signature }
}

/// Its number.
const RANK: u32 = 1;
const DAY: Nanos = Nanos::from_millis(86_400_000);
