//! Members of a group in one thread, each with a mapping of its own, that go on in any order. What
//! each does at a time is what it does in a process between two waits.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use trib_proto::Nanos;
use trib_transport::memory::{Bell, BellAddress, Board};
use trib_waiting::clock::Clock;
use trib_waiting::{Patience, Stare, TURN, Yields};
use trib_wire::body::{Fault, Reason};
use trib_wire::{Collective, DataType, RankList, ReduceOp, Signature, WireFormat};

use super::cut::{Cut, View};
use super::first_wait::FirstWait;
use super::heads::Trunk;
use super::running::Running;
use super::shape::Shape;
use super::sleepers::Sleepers;
use crate::completion::Completion;
use crate::error::Error;
use crate::memory::{Input, Memory};
use crate::operation;

mod founded;
mod numbers;
mod simulated;
mod wide;

/// The way between the hosts of a group that has one.
struct Alone;

impl Trunk for Alone {
    fn post(&mut self, _: (u64, u16), _: Signature, _: u64, _: Memory) -> Result<Arc<Completion>, Fault> {
        unreachable!("a group of one host goes nowhere")
    }

    fn fault(&self) -> Fault {
        unreachable!("a group of one host goes nowhere")
    }
}

/// A group's members, each with its bell.
struct Members {
    all: Vec<(Running, Bell)>,
    shape: Shape,
}

/// An operation at one member, with its buffers.
struct Posted {
    completion: Arc<Completion>,
    output: Vec<u8>,
    /// What it must come to; none if this member gets nothing.
    expected: Option<Vec<u8>>,
    /// It is read while the operation runs.
    _input: Vec<u8>,
}

/// What a test draws of an operation.
#[derive(Clone, Copy, Debug)]
struct Draw {
    collective: Collective,
    count: u64,
    root: u32,
    in_place: bool,
}

impl Members {
    fn new(shape: Shape, size: usize) -> Members {
        let (first, memory) = Board::create(size).unwrap();
        let others = (1..size).map(|me| Board::open(&memory, size, me).unwrap());
        let bells: Vec<Bell> = (0..size).map(|_| Bell::new().unwrap()).collect();
        let names: Vec<_> = bells.iter().map(|bell| BellAddress::of(bell.name()).unwrap()).collect();
        let ranks = RankList::from_ranks((0..size as u32).map(|member| 10 + 2 * member));
        let running = |board| Running::new(board, shape.clone(), ranks.clone(), names.clone(), true);
        let all = std::iter::once(first).chain(others).map(running).zip(bells).collect();
        Members { all, shape }
    }

    fn size(&self) -> u32 {
        self.all.len() as u32
    }

    fn post(&mut self, member: u32, draw: Draw, turn: u64) -> Posted {
        self.post_to(member, self.size(), draw, turn)
    }

    /// The same in a group of `size` members, of which the last may not be among these.
    fn post_to(&mut self, member: u32, size: u32, draw: Draw, turn: u64) -> Posted {
        let (posted, memory, signature) = prepare((member, size), draw, turn, &self.shape);
        let (running, bell) = &mut self.all[member as usize];
        running.post(signature, memory, posted.completion.clone());
        let _ = running.advance(bell, &mut Alone);
        posted
    }

    fn go_on(&mut self, member: u32) -> Result<(), Reason> {
        let (running, bell) = &mut self.all[member as usize];
        running.advance(bell, &mut Alone).map(|_| ()).map_err(|broken| broken.fault.reason)
    }
}

/// An operation of `member` of so many, which is to be posted, and its memory. The sum is that of
/// the shape.
fn prepare((member, size): (u32, u32), draw: Draw, turn: u64, shape: &Shape) -> (Posted, Memory, Signature) {
    let signature = draw.signature();
    let input = vector(&signature, size, member, turn);
    let gotten = trib_proto::window::gotten(&signature, size, member);
    let whole = Collective::Allgather == draw.collective || Collective::Bcast == draw.collective;
    let len = (gotten.end - gotten.start) as usize * signature.dtype.size();
    // In place the vector lies in the output, an allgather's block at its own offset.
    let in_place = draw.in_place
        && match draw.collective {
            Collective::Bcast | Collective::Barrier => false,
            Collective::Reduce => member == draw.root,
            _ => true,
        };
    let mut output = vec![0xee; len.max(if in_place { input.len() } else { 0 })];
    let given = match (in_place, draw.collective) {
        (true, Collective::Allgather) => {
            output[member as usize * input.len()..][..input.len()].copy_from_slice(&input);
            Input::InPlace
        }
        (true, _) => {
            output[..input.len()].copy_from_slice(&input);
            Input::InPlace
        }
        (false, _) => Input::At(input.as_ptr()),
    };
    let memory = Memory::new(&signature, size, member, given, output.as_mut_ptr()).unwrap();
    let completion = Arc::new(Completion::on_board(0, signature));
    let expected = (len > 0).then(|| {
        let blocks: Vec<Vec<u8>> = (0..size).map(|other| vector(&signature, size, other, turn)).collect();
        match draw.collective {
            Collective::Allgather => blocks.concat(),
            Collective::Bcast => blocks[draw.root as usize].clone(),
            _ => {
                let from = gotten.start as usize * 8;
                fold_plainly(shape, &blocks)[from..from + len].to_vec()
            }
        }
    });
    debug_assert!(!whole || expected.as_ref().is_none_or(|expected| expected.len() == len));
    (Posted { completion, output, expected, _input: input }, memory, signature)
}

impl Draw {
    fn signature(self) -> Signature {
        match self.collective {
            Collective::Barrier => operation::barrier(),
            // These move bytes.
            Collective::Bcast => operation::bcast(8 * self.count, self.root),
            Collective::Allgather => operation::allgather(8 * self.count),
            collective => Signature {
                collective,
                dtype: DataType::F64,
                op: ReduceOp::Sum,
                format: WireFormat::Plain,
                root: if collective == Collective::Reduce { self.root } else { 0 },
                count: self.count,
            },
        }
    }
}

/// What a member gives, as long as the signature says. Sums of these depend on their order.
fn vector(signature: &Signature, size: u32, member: u32, turn: u64) -> Vec<u8> {
    let bytes = match signature.collective {
        Collective::Barrier => 0,
        Collective::ReduceScatter => signature.count * u64::from(size) * 8,
        Collective::Allgather | Collective::Bcast => signature.count,
        _ => signature.count * 8,
    };
    let value = |at: u64| {
        let seed = (at + 7 * turn).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(member) << 40);
        (seed >> 11) as f64 * if seed & 1 == 0 { 1e-3 } else { 1e9 }
    };
    (0..bytes / 8).flat_map(|at| value(at).to_le_bytes()).collect()
}

/// The sum in the order of the shape, one element after the other.
fn fold_plainly(shape: &Shape, blocks: &[Vec<u8>]) -> Vec<u8> {
    let element = |member: usize, at: usize| f64::from_le_bytes(blocks[member][8 * at..][..8].try_into().unwrap());
    fn sum(shape: &Shape, element: &dyn Fn(usize) -> f64) -> f64 {
        match shape {
            Shape::Member(member) => element(*member),
            Shape::Node(parts) => parts.iter().map(|part| sum(part, element)).reduce(|a, b| a + b).unwrap(),
        }
    }
    let len = blocks[0].len() / 8;
    (0..len).flat_map(|at| sum(shape, &|member| element(member, at)).to_le_bytes()).collect()
}

fn shapes(size: usize) -> Vec<Shape> {
    let member = Shape::Member;
    let mut shapes =
        vec![Shape::Node((0..size).map(member).collect()), Shape::Node((0..size).rev().map(member).collect())];
    if size > 3 {
        let (even, odd) = (0..size).partition::<Vec<_>, _>(|member| member % 2 == 0);
        let part = |members: Vec<usize>| Shape::Node(members.into_iter().map(member).collect());
        shapes.push(Shape::Node(vec![part(even), part(odd)]));
    }
    shapes
}

fn draws() -> impl Strategy<Value = Draw> {
    let counts = prop_oneof![Just(0u64), 1u64..20, 100u64..1000, 7000u64..9000, 20_000u64..60_000];
    (0..Collective::ALL.len(), counts, 0u32..6, any::<bool>()).prop_map(|(which, count, root, in_place)| Draw {
        collective: Collective::ALL[which],
        count,
        root,
        in_place,
    })
}

/// Whether a bell was rung since it was last cleared.
fn has_rung(bell: &Bell) -> bool {
    use std::os::fd::AsRawFd;
    let mut entry = libc::pollfd { fd: bell.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the entry lives across the call.
    unsafe { libc::poll(&raw mut entry, 1, 0) == 1 }
}

/// Whether a bell was rung since this was last asked.
fn is_rung(bell: &Bell) -> bool {
    let rung = has_rung(bell);
    bell.clear(|_, _| {});
    rung
}

/// Every operation of the program is over at every member, with the right bits.
fn check(posted: &[Vec<Posted>], program: &[Draw]) -> Result<(), TestCaseError> {
    for (member, posted) in posted.iter().enumerate() {
        for (number, (posted, draw)) in posted.iter().zip(program).enumerate() {
            prop_assert_eq!(posted.completion.outcome(), Some(Ok::<(), Error>(())));
            if let Some(expected) = &posted.expected {
                let is_right = posted.output[..expected.len()] == expected[..];
                prop_assert!(is_right, "member {member}, operation {number}: {draw:?}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Members post and go on in any order, as far ahead of each other as they like, and every
    /// result has the bits of the plain sum.
    #[test]
    fn results_have_the_bits_of_the_tree_in_whatever_order_members_go_on(
        size in 2usize..6,
        which in 0usize..3,
        mut program in prop::collection::vec(draws(), 1..9),
        order in prop::collection::vec((0u32..6, any::<bool>()), 1..200),
    ) {
        let shapes = shapes(size);
        let mut members = Members::new(shapes[which % shapes.len()].clone(), size);
        program.iter_mut().for_each(|draw| draw.root %= size as u32);
        let mut posted: Vec<Vec<Posted>> = (0..size).map(|_| Vec::new()).collect();
        let later = (0u32..).map(|turn| (turn, turn % 7 == 0));
        let mut steps = 0;
        for (member, posts) in order.into_iter().chain(later) {
            let member = member % size as u32;
            let own = &mut posted[member as usize];
            match program.get(own.len()).filter(|_| posts) {
                Some(draw) => own.push(members.post(member, *draw, own.len() as u64)),
                None => prop_assert_eq!(members.go_on(member), Ok(())),
            }
            let is_over = |posted: &Vec<Posted>| {
                posted.len() == program.len() && posted.iter().all(|posted| posted.completion.is_done())
            };
            if posted.iter().all(is_over) {
                break;
            }
            steps += 1;
            prop_assert!(steps < 20_000, "members wait for each other for ever");
        }
        check(&posted, &program)?;
        prop_assert!(members.all.iter().all(|(running, _)| !running.is_busy()));
    }
}

#[test]
fn members_that_disagree_hear_the_same_of_it() {
    let mut members = Members::new(shapes(3)[0].clone(), 3);
    let draw = Draw { collective: Collective::Allreduce, count: 9, root: 0, in_place: false };
    let _kept: Vec<Posted> = (0..3)
        .map(|member| members.post(member, Draw { count: if member == 1 { 20_000 } else { 9 }, ..draw }, 0))
        .collect();
    for member in 0..3 {
        let (running, bell) = &mut members.all[member];
        let fault = running.advance(bell, &mut Alone).unwrap_err().fault;
        assert_eq!((fault.reason, fault.rank_a.0, fault.rank_b.0), (Reason::Mismatch, 10, 12), "member {member}");
        let (one, other) = fault.signatures.unwrap();
        assert_eq!((one.count, other.count), (9, 20_000));
    }
}

#[test]
fn who_waits_for_all_beside_a_bcast_hears_of_it_though_only_the_root_gives() {
    let mut members = Members::new(shapes(3)[0].clone(), 3);
    let bcast = Draw { collective: Collective::Bcast, count: 1, root: 2, in_place: false };
    let sum = Draw { collective: Collective::Allreduce, ..bcast };
    let _kept = [members.post(0, bcast, 0), members.post(1, sum, 0)];
    assert_eq!(members.go_on(1), Ok(()), "the root has not called");
    let _root = members.post(2, bcast, 0);
    let (running, bell) = &mut members.all[1];
    let fault = running.advance(bell, &mut Alone).unwrap_err().fault;
    assert_eq!((fault.reason, fault.rank_a.0, fault.rank_b.0), (Reason::Mismatch, 12, 14));
    let (one, other) = fault.signatures.unwrap();
    assert_eq!((one.collective, other.collective), (Collective::Allreduce, Collective::Bcast));
}

#[test]
fn who_has_left_is_missed_only_for_what_it_has_not_given() {
    let mut members = Members::new(shapes(2)[0].clone(), 2);
    let draw = Draw { collective: Collective::Allreduce, count: 3, root: 0, in_place: false };
    let gone = members.post(0, draw, 0);
    let (running, bell) = &mut members.all[0];
    running.leave(bell);
    assert_eq!(running.end().count(), 1);
    drop(gone);
    let first = members.post(1, draw, 0);
    assert_eq!(first.completion.outcome(), Some(Ok(())), "what it gave is there");
    assert_eq!(first.output, first.expected.unwrap());
    let _second = members.post(1, draw, 1);
    assert_eq!(members.go_on(1), Err(Reason::MemberLeft));
}

#[test]
fn nobody_waits_for_room_that_one_holds_up_who_has_left() {
    let mut members = Members::new(shapes(3)[0].clone(), 3);
    let bcast = Draw { collective: Collective::Bcast, count: 1, root: 0, in_place: false };
    let (running, bell) = &mut members.all[2];
    running.leave(bell);
    let kept: Vec<Posted> = (0..5).map(|turn| members.post(0, bcast, turn)).collect();
    assert!(kept[3].completion.is_done() && !kept[4].completion.is_done());
    let (running, bell) = &mut members.all[0];
    let fault = running.advance(bell, &mut Alone).unwrap_err().fault;
    assert_eq!((fault.reason, fault.rank_a.0, fault.rank_b.0), (Reason::MemberLeft, 14, 10));
}

#[test]
fn a_sleeper_is_woken_by_what_it_waits_for() {
    let mut members = Members::new(shapes(3)[0].clone(), 3);
    let draw = Draw { collective: Collective::Allreduce, count: 3, root: 0, in_place: false };
    let rung = |members: &Members, member: usize| is_rung(&members.all[member].1);
    let one = members.post(0, draw, 0);
    assert!(!members.all[0].0.fall_asleep(), "nothing is there");
    let _two = members.post(1, draw, 0);
    assert!(!rung(&members, 0), "one is still missing");
    let three = members.post(2, draw, 0);
    assert!(rung(&members, 0));
    assert!(three.completion.is_done() && !one.completion.is_done());
    assert!(members.all[0].0.fall_asleep(), "it is there: no sleep");
    members.all[0].0.wake_up();
    members.go_on(0).unwrap();
    assert!(one.completion.is_done());
}

#[test]
fn who_sleeps_is_woken_for_what_another_thread_has_looked_for() {
    let mut members = Members::new(shapes(2)[0].clone(), 2);
    let draw = Draw { collective: Collective::Allreduce, count: 3, root: 0, in_place: false };
    let mut sleepers = Sleepers::default();
    let first = members.post(0, draw, 0);
    assert!(!sleepers.fall_asleep(std::iter::once(&members.all[0].0)));
    // Another thread posts the second one, looks, and takes what the bell is rung for.
    let second = members.post(0, draw, 1);
    let _ = members.post(1, draw, 0);
    assert!(is_rung(&members.all[0].1));
    members.all[0].1.clear(|_, _| {});
    members.go_on(0).unwrap();
    assert!(first.completion.is_done() && !second.completion.is_done());
    assert!(!sleepers.look_for(std::iter::once(&members.all[0].0)));
    let _ = members.post(1, draw, 1);
    assert!(is_rung(&members.all[0].1), "for the thread that sleeps on");
    assert!(sleepers.look_for(std::iter::once(&members.all[0].0)), "it is there");
    sleepers.wake_up(std::iter::once(&members.all[0].0));
    members.go_on(0).unwrap();
    assert!(second.completion.is_done());
    assert!(!sleepers.look_for(std::iter::once(&members.all[0].0)), "nobody sleeps");
}

#[test]
fn a_member_that_waits_knows_for_which_ranks_and_at_which_operation() {
    let mut members = Members::new(shapes(3)[0].clone(), 3);
    let draw = Draw { collective: Collective::Allreduce, count: 3, root: 0, in_place: false };
    let late = |members: &Members, member: usize| {
        let standstill = members.all[member].0.standstill(Nanos(0))?;
        Some((standstill.operation, standstill.late.to_string()))
    };
    let mut kept = vec![members.post(0, draw, 0)];
    assert_eq!(late(&members, 0), Some((1, "12-14/2".into())), "members 1 and 2 are ranks 12 and 14");
    kept.push(members.post(2, draw, 0));
    assert_eq!(late(&members, 0), Some((1, "12".into())));
    assert_eq!(late(&members, 1), None, "it has nothing under way");
    kept.push(members.post(1, draw, 0));
    (0..3).for_each(|member| members.go_on(member).unwrap());
    assert_eq!(late(&members, 0), None);
    // The root of a bcast waits only for room, which a member holds up that has not taken.
    let bcast = Draw { collective: Collective::Bcast, count: 1, ..draw };
    for turn in 0..5 {
        kept.push(members.post(0, bcast, turn));
        kept.push(members.post(1, bcast, turn));
    }
    assert_eq!(late(&members, 0), Some((6, "14".into())), "four of these had room");
    assert_eq!(late(&members, 1), Some((6, "10".into())), "the root has not given the last");
}

/// Three members, of which the third has given to an allreduce and claimed a portion of it, and the
/// two others have folded what is left; and how the operation is cut.
fn with_one_that_folds() -> (Members, Vec<Posted>, Cut) {
    let (first, memory) = Board::create(3).unwrap();
    let [second, third, by_hand] = [1, 2, 2].map(|me| Board::open(&memory, 3, me).unwrap());
    let bells: Vec<Bell> = (0..3).map(|_| Bell::new().unwrap()).collect();
    let names: Vec<_> = bells.iter().map(|bell| BellAddress::of(bell.name()).unwrap()).collect();
    let ranks = RankList::from_ranks([10, 12, 14]);
    let running = |board| Running::new(board, shapes(3)[0].clone(), ranks.clone(), names.clone(), true);
    let all = [first, second, third].map(running).into_iter().zip(bells).collect();
    let mut members = Members { all, shape: shapes(3)[0].clone() };
    let draw = Draw { collective: Collective::Allreduce, count: 8192, root: 0, in_place: false };
    let signature = draw.signature();
    let view = View { members: 3, me: 2, root: None, beyond: None };
    let cut = Cut::new(signature, view, by_hand.piece_len());
    let given = vector(&signature, 3, 2, 0);
    // SAFETY: there is room, the piece is shown next, and the vector is that long.
    unsafe { by_hand.put(0, given.len(), 0, given.as_ptr(), given.len()) };
    by_hand.show(0, cut.words(), 0);
    by_hand.begin_folding(0);
    assert_eq!(by_hand.claim(0, cut.portions(0)), Some(0));
    let kept: Vec<Posted> = (0..2).map(|member| members.post_to(member, 3, draw, 0)).collect();
    (0..2).for_each(|member| members.go_on(member).unwrap());
    (members, kept, cut)
}

#[test]
fn a_member_that_stops_while_it_folds_is_waited_for_by_name() {
    let (members, kept, _) = with_one_that_folds();
    for (posted, (running, _)) in kept.iter().zip(&members.all) {
        assert!(!posted.completion.is_done());
        let standstill = running.standstill(Nanos(0)).unwrap();
        assert_eq!((standstill.operation, standstill.late.to_string()), (1, "14".into()));
    }
}

#[test]
fn who_folds_the_last_portion_wakes_those_that_wait_for_it() {
    let (mut members, kept, cut) = with_one_that_folds();
    assert!(!members.all[0].0.fall_asleep(), "the third still folds");
    let (third, bell) = &mut members.all[2];
    third.fold_portion((0, 0, 0), &cut);
    third.advance(bell, &mut Alone).unwrap();
    assert!(is_rung(&members.all[0].1) && !is_rung(&members.all[1].1), "the second is awake");
    members.all[0].0.wake_up();
    members.go_on(0).unwrap();
    assert!(kept[0].completion.is_done());
}

/// Each member does what it does in a call that waits: a short operation at once, if it can. The
/// last one finds what all others have given.
#[test]
fn an_operation_done_at_once_is_that_of_all_members_however_many_there_are() {
    for (size, count) in [(3, 512), (8, 511), (8, 512), (16, 300), (33, 128), (33, 512)] {
        let mut members = Members::new(shapes(size as usize).swap_remove(0), size as usize);
        let (mut stare, mut patience) =
            (Stare::default(), Patience::new(Yields { span: Duration::ZERO, count: 1, turn: TURN }));
        let mut clock = Clock::start();
        for (turn, collective) in
            [Collective::Allreduce, Collective::Reduce, Collective::Allreduce].into_iter().enumerate()
        {
            let draw = Draw { collective, count, root: size - 1, in_place: false };
            let mut all: Vec<Posted> = Vec::new();
            for member in 0..size {
                let (posted, mut memory, signature) = prepare((member, size), draw, turn as u64, &members.shape);
                let (running, bell) = &mut members.all[member as usize];
                let first_wait = &mut FirstWait { stare: &mut stare, patience: &mut patience, clock: &mut clock };
                match running.run_short(signature, &mut memory, bell, first_wait) {
                    Ok(()) => posted.completion.finish(Ok(())),
                    Err(true) => running.post_given(signature, memory, posted.completion.clone()),
                    Err(false) => running.post(signature, memory, posted.completion.clone()),
                }
                all.push(posted);
            }
            while all.iter().any(|posted| posted.completion.outcome().is_none()) {
                (0..size).for_each(|member| members.go_on(member).unwrap());
            }
            for (member, posted) in all.iter().enumerate().filter(|(_, posted)| posted.expected.is_some()) {
                let expected = posted.expected.as_deref().unwrap();
                assert!(posted.output == expected, "{size} members, {count} elements, {collective:?}: member {member}");
            }
        }
    }
}
