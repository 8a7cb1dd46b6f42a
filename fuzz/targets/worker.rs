//! A node's worker between a hostile rank with valid keys and another tenant's job, and a clock.
//!
//! An input is a quota and then steps: the ranks of the first job make groups, post and free; one
//! of them also says what no core says, once or hundreds of times, writes bytes that are no frame,
//! does not read, goes, and comes again; people ask; the job ends and begins; time passes. The
//! ranks of the second job are correct, and post now and then.
//!
//! Asserted: nothing panics; each operation of the second job ends with the right sums within a
//! bounded number of rounds, however much the hostile rank has sent, and in no round is more taken
//! of one job than its share; memory stays within the grants; questions are answered; when the
//! ranks are gone and a while has passed, nothing is left of any job.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::draw::Draw;
use trib_fuzz::frames::{Frame, change, frame, ranks, signature};
use trib_fuzz::job::{Job, limits};
use trib_fuzz::memory;
use trib_fuzz::rank::{Rank, header};
use trib_node::{Ask, Stepped};
use trib_proto::Nanos;
use trib_wire::{Collective, DataType, JobId, RankList, ReduceOp, Signature, WireFormat};

fuzz_target!(|bytes: &[u8]| {
    let before = memory::now();
    let mut draw = Draw::new(bytes);
    let mut world = World::new(&mut draw);
    for _ in 0..STEPS_MAX {
        if draw.is_over() {
            break;
        }
        world.step(&mut draw);
    }
    world.adds_up(7);
    world.all_leave();
    drop(world);
    let left = memory::now() - before;
    assert!(left <= LEFT_MAX, "{left} bytes are left");
});

struct World {
    worker: Stepped,
    /// The job with the hostile rank, which is its last, and the ranks that are there.
    job: Job,
    ranks: Vec<Option<Rank>>,
    /// Whether the hostile rank reads.
    reads: bool,
    other: Job,
    others: Vec<Rank>,
    now: Nanos,
    hosted: usize,
    removed: usize,
    /// The last frame that was made up.
    last: Option<Frame>,
    /// The bytes that the worker has taken from the allocator, and those that it may have.
    taken: isize,
    may_take: isize,
    frames: u64,
}

impl World {
    fn new(draw: &mut Draw<'_>) -> World {
        let before = memory::now();
        let worker = Stepped::start().expect("a poll and a socket");
        let taken = memory::now() - before;
        let (job, other) = (Job::new(7, RANKS, limits(draw)), Job::new(8, OTHERS, limits(&mut Draw::new(&[3, 2, 1]))));
        let mut world = World {
            worker,
            job,
            ranks: (0..RANKS).map(|_| None).collect(),
            reads: true,
            other,
            others: Vec::new(),
            now: Nanos(0),
            hosted: 0,
            removed: 0,
            last: None,
            taken,
            may_take: taken + OWN_BYTES_MAX,
            frames: 0,
        };
        world.may_take += world.host(true) + world.host(false);
        world.others = (0..OTHERS).map(|rank| world.other.connect(&mut world.worker, rank)).collect();
        world.others.iter_mut().for_each(|rank| rank.create(RankList::world(OTHERS), 0));
        (0..RANKS as usize).for_each(|rank| world.connect(rank));
        world.round();
        world
    }

    /// Calls the worker, and counts what it takes.
    fn call<T>(&mut self, call: impl FnOnce(&mut Stepped) -> T) -> T {
        let before = memory::now();
        let result = call(&mut self.worker);
        self.taken += memory::now() - before;
        assert!(self.taken <= self.may_take, "the worker has {} bytes, {} are enough", self.taken, self.may_take);
        result
    }

    /// Has a job hosted, and returns what is reserved for it.
    fn host(&mut self, first: bool) -> isize {
        let job = if first { &self.job } else { &self.other };
        let before = memory::now();
        let reserved = job.host(&mut self.worker);
        self.taken += memory::now() - before;
        self.hosted += 1;
        reserved as isize
    }

    fn connect(&mut self, rank: usize) {
        self.ranks[rank] = Some(self.job.connect(&mut self.worker, rank as u32));
    }

    fn step(&mut self, draw: &mut Draw<'_>) {
        let now = self.now;
        match draw.below(24) {
            0 => {
                let (members, tag) = (ranks(draw), draw.below(2).into());
                self.each(|rank| rank.create(members.clone(), tag));
            }
            1 => {
                let tag = draw.below(2).into();
                self.each(|rank| rank.create(RankList::world(RANKS), tag));
            }
            2 | 3 => {
                let (which, count) = (draw.byte().into(), 1 + draw.number(5_000));
                self.each(|rank| {
                    rank.post(now, which, sum(count), vec![1; 8 * count as usize]);
                });
            }
            4 => {
                let (which, signature) = (draw.byte().into(), signature(draw));
                let signature = Signature { count: signature.count % 600, ..signature };
                let bytes = 16 * 6 * (1 + signature.count as usize);
                self.hostile(|rank| {
                    rank.post(now, which, signature, vec![2; bytes]);
                });
            }
            5 => {
                let which = draw.byte().into();
                self.each(|rank| rank.free(now, which));
            }
            6..9 => (0..1 + draw.below(4)).for_each(|_| self.round()),
            9..11 => {
                self.last = frame(draw, header(&self.job.config(RANKS - 1)));
                self.say(1);
            }
            11 => {
                if let Some(frame) = &mut self.last {
                    change(draw, frame);
                }
                self.say(1);
            }
            12 => {
                let times = draw.pick(&[2, 40, 600, 2_500]);
                self.say(times);
            }
            13 => {
                let bytes: Vec<u8> = (0..1 + draw.below(120)).map(|_| draw.byte()).collect();
                self.hostile(|rank| rank.write_raw(&bytes));
            }
            14 | 15 => {
                let span = draw.pick(&SPANS);
                self.pass(span);
            }
            16 => drop(self.ranks[RANKS as usize - 1].take()),
            17 => {
                let rank = draw.below(RANKS) as usize;
                self.connect(rank);
            }
            18 => {
                let kind =
                    [Ask::Count, Ask::Report, Ask::Activity, Ask::Explain(JobId(7), draw.one_in(2).then_some(0))];
                let ask = draw.pick(&kind);
                self.worker.ask(ask);
            }
            19 => self.reads = !self.reads,
            20 => {
                let rank = trib_wire::ChildIndex(draw.below(RANKS + 1) as u16);
                self.worker.child_gone(self.job.node(), rank);
            }
            21 => {
                self.worker.end(self.job.node().0);
            }
            22 => self.begin_again(),
            _ => self.adds_up(1 + draw.number(3_000)),
        }
    }

    fn each(&mut self, work: impl FnMut(&mut Rank)) {
        self.ranks.iter_mut().flatten().for_each(work);
    }

    fn hostile(&mut self, work: impl FnOnce(&mut Rank)) {
        if let Some(rank) = &mut self.ranks[RANKS as usize - 1] {
            work(rank);
        }
    }

    /// The hostile rank says what was made up, so often.
    fn say(&mut self, times: u32) {
        let Some(Frame { path, header, body }) = self.last.clone() else { return };
        let payload = match header.kind.carries_data() {
            true => vec![3; header.payload_len as usize],
            false => body.to_bytes().to_vec(),
        };
        self.hostile(|rank| {
            for _ in 0..times {
                match path {
                    trib_proto::Path::Stream => rank.edge.stream(&header, payload.clone()),
                    trib_proto::Path::Datagram => rank.edge.datagram(&header, &payload),
                }
            }
        });
    }

    /// The manager has ended the first job, or its ranks have gone, and admits it again.
    fn begin_again(&mut self) {
        self.removed += self.worker.removed().len();
        if self.removed == self.hosted - 1 {
            self.ranks.iter_mut().for_each(|rank| *rank = None);
            // What the first one had reserved has been given back.
            self.host(true);
            (0..RANKS as usize).for_each(|rank| self.connect(rank));
            self.round();
        }
    }

    /// A round of the worker, and of all ranks that read.
    fn round(&mut self) {
        let now = self.now;
        for rank in self.ranks.iter_mut().flatten() {
            rank.write();
        }
        self.call(|worker| worker.round()).expect("poll works");
        let frames = self.worker.stream_frames();
        let taken = frames - std::mem::replace(&mut self.frames, frames);
        assert!(taken <= FRAMES_MAX, "{taken} frames were taken in a round");
        let last = RANKS as usize - 1;
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            if let Some(rank) = rank.as_mut().filter(|_| at != last || self.reads) {
                rank.poll(now);
            }
        }
        self.others.iter_mut().for_each(|rank| rank.poll(now));
    }

    /// Time passes, in which the correct ranks do not sleep for as long as the dead.
    fn pass(&mut self, span: Nanos) {
        let parts = 1 + span.0 / SLEEP.0;
        for _ in 0..parts {
            let part = Nanos(span.0 / parts);
            self.now = self.now + part;
            self.worker.pass(part);
            self.round();
        }
    }

    /// The other job's ranks add up a vector.
    fn adds_up(&mut self, count: u64) {
        let vector: Vec<u8> = (0..count).flat_map(|at| (at as i64).to_le_bytes()).collect();
        let wanted: Vec<u8> = (0..count).flat_map(|at| (at as i64 * i64::from(OTHERS)).to_le_bytes()).collect();
        let now = self.now;
        let post = |rank: &mut Rank| rank.post(now, 0, sum(count), vector.clone()).expect("a group that is there");
        let ops: Vec<_> = self.others.iter_mut().map(post).collect();
        for _ in 0..ROUNDS_MAX {
            let over: Vec<_> = self.others.iter().zip(&ops).map(|(rank, op)| rank.over(*op)).collect();
            if over.iter().all(Option::is_some) {
                assert!(over.into_iter().flatten().all(|result| result == Ok(&wanted)), "a wrong sum");
                return;
            }
            self.now = self.now + TICK;
            self.worker.pass(TICK);
            self.round();
        }
        panic!("the other job stands still");
    }

    /// The ranks go, and what is left of the jobs ends a while later.
    fn all_leave(&mut self) {
        self.ranks.clear();
        self.others.clear();
        for _ in 0..GOING {
            self.now = self.now + AWAKE;
            self.worker.pass(AWAKE);
            self.call(|worker| worker.round()).expect("poll works");
        }
        assert!(self.worker.is_empty(), "a logical node without ranks stays");
        self.removed += self.worker.removed().len();
        assert_eq!(self.removed, self.hosted);
        let unanswered = self.worker.unanswered();
        assert_eq!(unanswered, 0, "questions are not answered");
        let counters = self.worker.counters();
        assert_eq!((counters["jobs_broken"], counters["links_opened"]), (0, counters["links_closed"]), "{counters:?}");
    }
}

fn sum(count: u64) -> Signature {
    Signature {
        collective: Collective::Allreduce,
        dtype: DataType::I64,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count,
    }
}

/// The ranks of either job.
const RANKS: u32 = 3;
const OTHERS: u32 = 2;
/// More steps than fit into the longest input that is worth it.
const STEPS_MAX: usize = 200;
/// How often the worker may have its turn until an operation is over.
const ROUNDS_MAX: usize = 400;
/// What passes in each of them.
const TICK: Nanos = Nanos::from_millis(5);
/// How long the worker sleeps then: one that sleeps for longer does not judge a rank from which it
/// does not read, because too much waits for that.
const AWAKE: Nanos = Nanos::from_millis(250);
/// Half a minute until nodes without ranks are gone, and some for the questions.
const GOING: usize = 320;
/// What passes at a time, and how long a correct rank sleeps at most.
const SPANS: [Nanos; 6] = [
    Nanos(1),
    Nanos::from_micros(300),
    Nanos::from_millis(20),
    Nanos::from_millis(600),
    Nanos::from_millis(5_000),
    Nanos::from_millis(25_000),
];
const SLEEP: Nanos = Nanos::from_millis(5_000);
/// The frames that a share of work is for, of both jobs, when each weighs as little as it may, and
/// those that a reader has at hand when the share is used up.
const FRAMES_MAX: u64 = 2 * 512 + 64;
/// What the worker needs for itself, beside the grants.
const OWN_BYTES_MAX: isize = 1 << 20;
/// What tables of the process may have grown by.
const LEFT_MAX: isize = 64 << 10;
