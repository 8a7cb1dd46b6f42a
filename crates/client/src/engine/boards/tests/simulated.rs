//! Groups that go on step by step: a seed draws hosts, a program, who is refused the board of its
//! host, and who is slow, sleeps, stops, leaves, dies or calls something else. A member that sleeps
//! goes on only when its bell has rung or the network has brought it something, so a ring too few
//! is a group that stands still.
//!
//! ```text
//!            advance, nothing to do                 looks once more: there is something
//!   awake ---------------------------> drowsy ------------------------------------------> awake
//!                                        | nothing: asleep ---- bell or network ---------> awake
//! ```
//! What a member does between two states is what its process does at a time, and others go on in
//! between.

use trib_wire::{NodeId, Rank};

use super::super::{Plan, Reach};
use super::founded::{Refusal, fits, found};
use super::numbers::Draws;
use super::wide::{Line, Wide, spans};
use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Awake,
    Drowsy,
    Asleep,
    /// It does nothing until all others wait.
    Stopped,
    /// It has left the group or died.
    Gone,
}

/// What goes wrong, at one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    Nothing,
    Stops,
    Leaves,
    Dies,
    /// It calls something else as its operation with this number.
    Differs(usize),
}

struct Simulation {
    draws: Draws,
    group: Wide,
    program: Vec<Draw>,
    states: Vec<State>,
    posted: Vec<Vec<Posted>>,
    harm: (Harm, usize),
    /// What the tree tells all members.
    cause: Option<Fault>,
    /// How often the next heartbeat may wake those that sleep: only where one has called something
    /// else, because it rings for those who wait for what it has called.
    heartbeats: usize,
}

impl Simulation {
    /// A group whose members have come to their boards; `None` if one was refused its own, and all
    /// go over the tree.
    fn new(seed: u64) -> Option<Simulation> {
        let mut draws = Draws(seed);
        let sizes: Vec<usize> = (0..1 + draws.below(3)).map(|_| 1 + draws.below(3)).collect();
        let group = match sizes[..] {
            [_] => alone(2 + draws.below(4), &mut draws)?,
            _ if sizes.iter().all(|size| *size == 1) => alone(2, &mut draws)?,
            _ => apart(&sizes, &mut draws)?,
        };
        let size = group.members.len();
        // A root that waits for nobody gets as far ahead of the others as the board lets it.
        let streams = draws.one_in(3).then(|| draws.below(size) as u32);
        let mut draw = |_| {
            let collective = match streams {
                Some(_) if !draws.one_in(5) => Collective::Bcast,
                _ => Collective::ALL[draws.below(Collective::ALL.len())],
            };
            // Blocks are short, or take turns between hosts.
            let (least, most) = match collective {
                Collective::Allgather | Collective::ReduceScatter => [(0, 57), (TURN_FROM, 9000)][draws.below(2)],
                _ => (0, [1, 20, 900, 60_000][draws.below(4)]),
            };
            let root = streams.unwrap_or(draws.below(size) as u32);
            Draw { collective, count: (least + draws.below(most)) as u64, root, in_place: draws.one_in(3) }
        };
        let program: Vec<Draw> = (0..12).map(&mut draw).collect();
        let harms = [Harm::Nothing, Harm::Stops, Harm::Leaves, Harm::Dies, Harm::Differs(draws.below(program.len()))];
        let harm = (harms[draws.below(harms.len())], draws.below(size));
        let states = vec![State::Awake; size];
        let posted = (0..size).map(|_| Vec::new()).collect();
        let heartbeats = if matches!(harm.0, Harm::Differs(_)) { 3 } else { 0 };
        Some(Simulation { draws, group, program, states, posted, harm, cause: None, heartbeats })
    }

    /// Runs to the end, when every operation is over at each member that is there.
    fn run(&mut self) {
        let size = self.states.len();
        let slow = self.draws.below(size);
        let harmed_at = self.draws.below(60);
        for step in 0.. {
            assert!(step < 100_000, "it does not end");
            if step == harmed_at {
                self.harm();
            }
            let mut due: Vec<usize> = (0..size).filter(|member| self.is_due(*member)).collect();
            if due.len() > 1 && !self.draws.one_in(8) {
                due.retain(|member| *member != slow);
            }
            let carries = self.cause.is_none() && self.draws.one_in(4) && self.group.network.borrow_mut().carry();
            match due.len() {
                _ if self.cause.is_some() => return self.finish(),
                0 if carries || self.group.network.borrow_mut().carry() => {}
                0 if self.is_over() => return,
                0 => self.stands_still(),
                count => {
                    let member = due[self.draws.below(count)];
                    self.go_on(member);
                }
            }
        }
    }

    /// Every member that is there has done the whole program.
    fn is_over(&self) -> bool {
        let is_over = |(state, posted): (&State, &Vec<Posted>)| {
            let is_done = posted.len() == self.program.len() && posted.iter().all(|own| own.completion.is_done());
            *state == State::Gone || is_done
        };
        self.states.iter().zip(&self.posted).all(is_over)
    }

    fn is_due(&self, member: usize) -> bool {
        let (running, bell, _) = &self.group.members[member];
        match self.states[member] {
            State::Awake => self.posted[member].len() < self.program.len() || running.is_busy(),
            State::Drowsy => true,
            State::Asleep => has_rung(bell) || running.flight().is_some_and(|flight| flight.is_done()),
            State::Stopped | State::Gone => false,
        }
    }

    fn harm(&mut self) {
        let (harm, member) = self.harm;
        let (running, bell, _) = &mut self.group.members[member];
        match harm {
            Harm::Nothing | Harm::Differs(_) => return,
            Harm::Stops => self.states[member] = State::Stopped,
            Harm::Dies => self.states[member] = State::Gone,
            Harm::Leaves => {
                self.states[member] = State::Gone;
                running.leave(bell);
                running.end().for_each(drop);
            }
        }
        if harm != Harm::Stops && self.heads().contains(&member) {
            self.group.network.borrow_mut().cut();
        }
    }

    /// The first member of each host.
    fn heads(&self) -> Vec<usize> {
        let hosts = self.group.members.iter().map(|(.., line)| line.host).max().map_or(0, |last| last + 1);
        (0..hosts).filter_map(|host| self.group.members.iter().position(|(.., line)| line.host == host)).collect()
    }

    /// Nobody goes on by itself. That may be because one has stopped, which the others name; or has
    /// died, which the tree finds out.
    fn stands_still(&mut self) {
        let (harm, member) = self.harm;
        match (harm, self.states[member]) {
            (Harm::Stops, State::Stopped) => {
                let is_named = |(running, ..): &(Running, Bell, Line)| {
                    let late = running.standstill(Nanos(0)).map(|standstill| standstill.late);
                    late.is_some_and(|late| late.iter().any(|rank| rank == self.rank(member)))
                };
                let waits = |(at, (running, ..)): (usize, &(Running, Bell, Line))| at != member && running.is_busy();
                let is_alone = self.heads().len() == 1;
                if is_alone && self.group.members.iter().enumerate().any(waits) {
                    let is_told = self.group.members.iter().any(is_named);
                    assert!(is_told, "nobody names member {member}, who has stopped");
                }
                self.states[member] = State::Awake;
            }
            (Harm::Dies, State::Gone) => {
                self.cause = Some(self.fault(Reason::MemberDead, member));
            }
            (Harm::Differs(_), _) if self.heartbeats > 0 => {
                self.heartbeats -= 1;
                for (state, (running, ..)) in self.states.iter_mut().zip(&self.group.members) {
                    if *state == State::Asleep {
                        running.wake_up();
                        *state = State::Awake;
                    }
                }
            }
            // Members on other hosts hear of a head from the group of the heads.
            (Harm::Leaves, State::Gone) if self.heads().contains(&member) => {
                self.cause = Some(self.fault(Reason::MemberLeft, member));
            }
            _ => panic!("members wait for ever: {:?}, {:?}", self.states, self.harm),
        }
    }

    /// What the tree tells of a member.
    fn fault(&self, reason: Reason, member: usize) -> Fault {
        let rank = self.rank(member);
        Fault { reason, node: NodeId(0), rank_a: rank, rank_b: rank, signatures: None }
    }

    fn rank(&self, member: usize) -> Rank {
        if self.heads().len() == 1 { Rank(10 + 2 * member as u32) } else { Rank(member as u32) }
    }

    fn go_on(&mut self, member: usize) {
        let is_free = self.posted[member].iter().all(|own| own.completion.is_done());
        let posts = self.posted[member].len() < self.program.len() && (is_free || self.draws.one_in(4));
        if self.states[member] == State::Awake && posts {
            return self.post(member);
        }
        let (running, bell, line) = &mut self.group.members[member];
        self.states[member] = match self.states[member] {
            State::Awake => match running.advance(bell, line) {
                Err(broken) => {
                    self.cause = Some(broken.fault);
                    State::Awake
                }
                Ok(_) if running.is_busy() => State::Drowsy,
                Ok(_) => {
                    running.wake_up();
                    State::Awake
                }
            },
            State::Drowsy if !running.fall_asleep() => State::Asleep,
            _ => {
                bell.clear(|_, _| {});
                running.wake_up();
                State::Awake
            }
        };
    }

    /// Posts the next operation, or does it at once if it can.
    fn post(&mut self, member: usize) {
        let turn = self.posted[member].len();
        let mut draw = self.program[turn];
        if self.harm == (Harm::Differs(turn), member) {
            draw.count += 1;
            draw.collective = Collective::Allreduce;
        }
        let size = self.states.len() as u32;
        let (posted, mut memory, signature) = prepare((member as u32, size), draw, turn as u64, &self.group.shape);
        let (running, bell, _) = &mut self.group.members[member];
        let (mut stare, mut patience) =
            (Stare::default(), Patience::new(Yields { span: Duration::ZERO, count: 1, turn: TURN }));
        let mut clock = Clock::start();
        let first_wait = &mut FirstWait { stare: &mut stare, patience: &mut patience, clock: &mut clock };
        match running.run_short(signature, &mut memory, bell, first_wait) {
            Ok(()) => posted.completion.finish(Ok(())),
            Err(true) => running.post_given(signature, memory, posted.completion.clone()),
            Err(false) => running.post(signature, memory, posted.completion.clone()),
        }
        self.posted[member].push(posted);
    }

    /// The tree has told all members why the group does not go on. What was on its way comes, and
    /// the rest ends with the error.
    fn finish(&mut self) {
        let size = self.states.len();
        for _ in 0..8 {
            for member in self.draws.shuffled(size) {
                let (running, bell, line) = &mut self.group.members[member];
                if self.states[member] != State::Gone {
                    running.finish_up(bell, line);
                }
            }
        }
        for (member, (running, ..)) in self.group.members.iter_mut().enumerate() {
            if self.states[member] != State::Gone {
                running.end().for_each(|completion| completion.finish(Err(Error::broken("the group is over"))));
            }
        }
    }

    /// Results are right where there are some, and what all members wait for is over at all of them
    /// or, but for an error, at none.
    fn check(&self) {
        let heads = self.heads();
        let has_head = |member: &usize| self.states[heads[self.group.members[*member].2.host]] != State::Gone;
        let there: Vec<usize> =
            (0..self.states.len()).filter(|member| self.states[*member] != State::Gone).filter(has_head).collect();
        let is_done = |member: usize, number: usize| {
            self.posted[member]
                .get(number)
                .and_then(|own| own.completion.outcome())
                .is_some_and(|outcome| outcome.is_ok())
        };
        for (number, draw) in self.program.iter().enumerate() {
            for (member, own) in
                self.posted.iter().enumerate().filter_map(|(member, own)| Some((member, own.get(number)?)))
            {
                let expected = own.expected.as_ref().filter(|_| is_done(member, number));
                let is_right = expected.is_none_or(|expected| own.output[..expected.len()] == expected[..]);
                assert!(is_right, "member {member}, operation {number}: {draw:?}");
            }
            let waits_for_all = match draw.collective {
                Collective::Barrier | Collective::Allreduce => true,
                // In its own turn a member waits for nobody.
                Collective::Allgather => heads.len() == 1 || draw.count < TURN_FROM as u64,
                _ => false,
            };
            if waits_for_all {
                // What one calls behind an operation that nobody else has called ends with that.
                let is_odd =
                    |member: &&usize| matches!(self.harm, (Harm::Differs(odd), at) if at == **member && odd <= number);
                let even: Vec<&usize> = there.iter().filter(|member| !is_odd(member)).collect();
                let done = even.iter().filter(|member| is_done(***member, number)).count();
                assert!(done == 0 || done == even.len(), "operation {number} is over at {done} of {even:?}: {draw:?}");
            }
        }
        if matches!(self.harm.0, Harm::Nothing | Harm::Stops) {
            assert!(self.cause.is_none() && self.is_over(), "nothing was wrong: {:?}", self.cause);
        }
        if let Some(cause) = self.cause {
            let reason = match self.harm.0 {
                Harm::Leaves => Reason::MemberLeft,
                Harm::Dies => Reason::MemberDead,
                _ => Reason::Mismatch,
            };
            assert_eq!(cause.reason, reason);
        }
    }
}

/// So many elements of a block make blocks take turns between hosts.
const TURN_FROM: usize = 2048;

/// A group of one host, if its members come to a board.
fn alone(size: usize, draws: &mut Draws) -> Option<Wide> {
    let mut shapes = shapes(size);
    let shape = shapes.swap_remove(draws.below(shapes.len()));
    let plans = (0..size).map(|_| Plan { reach: Reach::Host(shape.clone()) }).collect();
    let ranks = RankList::from_ranks((0..size as u32).map(|member| 10 + 2 * member));
    let refused = refusal(size, draws).filter(|(refusal, member)| fits(*refusal, None, *member));
    Some(Wide::alone(found(plans, &ranks, refused, draws)?, shape))
}

/// A group of several hosts, if its members come to their boards.
fn apart(sizes: &[usize], draws: &mut Draws) -> Option<Wide> {
    let spans = spans(sizes, &draws.shuffled(sizes.iter().sum()));
    let plans = spans.iter().map(|span| Plan { reach: Reach::Hosts(Box::new(span.clone())) }).collect();
    let ranks = RankList::world(spans.len() as u32);
    let refused =
        refusal(spans.len(), draws).filter(|(refusal, member)| fits(*refusal, Some(&spans[*member]), *member));
    Some(Wide::of(&spans, found(plans, &ranks, refused, draws)?))
}

/// Who may not attach, and why.
fn refusal(size: usize, draws: &mut Draws) -> Option<(Refusal, usize)> {
    draws.one_in(3).then(|| (Refusal::ALL[draws.below(Refusal::ALL.len())], draws.below(size)))
}

#[test]
fn members_that_sleep_stop_leave_and_die_wait_for_nobody_for_ever_and_have_the_bits_of_the_tree() {
    let (mut harms, mut refused) = ([0; 5], 0);
    for seed in 0..SEEDS {
        let run = || {
            let mut simulation = Simulation::new(seed)?;
            let run = std::panic::AssertUnwindSafe(|| {
                simulation.run();
                simulation.check();
            });
            if let Err(cause) = std::panic::catch_unwind(run) {
                eprintln!("{:?}, {:?}", simulation.harm, simulation.program);
                std::panic::resume_unwind(cause);
            }
            Some(simulation)
        };
        let simulation = std::panic::catch_unwind(run).unwrap_or_else(|cause| {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(cause)
        });
        let Some(simulation) = simulation else {
            refused += 1;
            continue;
        };
        harms[match simulation.harm.0 {
            Harm::Nothing => 0,
            Harm::Stops => 1,
            Harm::Leaves => 2,
            Harm::Dies => 3,
            Harm::Differs(_) => 4,
        }] += usize::from(simulation.cause.is_some() || matches!(simulation.harm.0, Harm::Nothing | Harm::Stops));
    }
    assert!(harms.iter().all(|count| *count > SEEDS as usize / 20), "all of it happens: {harms:?}");
    assert!(refused > SEEDS as usize / 10, "members are refused: {refused}");
}

const SEEDS: u64 = 500;
