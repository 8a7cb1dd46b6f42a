//! A study: some systems measure some cells on one fabric, round by round.

use std::time::Duration;

use rustix::process::Signal;

use crate::cell::Cell;
use crate::counters::syscalls::Calls;
use crate::counters::{Observed, Reading, processes};
use crate::launch::{Launch, Silence};
use crate::line::{Event, Line, WorkerRow};
use crate::network::{Map, Network};
use crate::pace::{Again, Pace};
use crate::schedule;
use crate::system::{Job, System};
use crate::testbed::Testbed;

/// The shape of a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Hosts in all.
    pub hosts: u16,
    /// Hosts below one leaf.
    pub leaf_ports: u16,
    /// Rate of a host's link, Mbit/s.
    pub rate_mbit: u32,
    /// Links of a host, each to switches of its own.
    pub rails: u8,
    /// Rate of a leaf's trunk in host links; `None`: as many as the leaf has hosts, so that nothing
    /// is blocked.
    pub uplink: Option<u16>,
    /// Whether each host and switch keeps to one core. Where there are very many hosts they do not,
    /// because the scheduler then distributes the cores better.
    pub pinned: bool,
    /// Whether all links go by UCX.
    pub ucx: bool,
}

/// One system's part of a study.
#[derive(Clone, Debug)]
pub struct Part {
    /// The system.
    pub system: System,
    /// What it measures, in this order.
    pub cells: Vec<Cell>,
    /// How many rounds it has.
    pub rounds: u32,
}

/// The study.
#[derive(Clone, Debug)]
pub struct Study {
    /// What `--only` and rows call it.
    pub name: &'static str,
    /// The fabric it needs.
    pub shape: Shape,
    /// Ranks, one per host until hosts run out.
    pub ranks: u32,
    /// The order in which they fill the hosts.
    pub map: Map,
    /// The systems that take part.
    pub parts: Vec<Part>,
    /// Whether links and nodes are observed around every cell.
    pub observes: bool,
    /// Whether each system has one more launch, in which only its system calls are counted:
    /// counting costs the processes time, so it must not go on while they are timed.
    pub counts_calls: bool,
    /// Time for the timed operations of one cell.
    pub budget: Duration,
    /// Fewest operations of one cell.
    pub min_iterations: u32,
}

/// How one cell of one launch went.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// It was measured.
    Row(Box<(WorkerRow, Option<Observed>)>),
    /// The system has no such collective.
    Unsupported(String),
    /// It gave a wrong result, ended early, or could not be started.
    Failed(String),
    /// Nothing came within the time limit.
    Timeout(Duration),
}

/// One cell, one system, one round.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The system's name.
    pub system: String,
    /// What was measured.
    pub cell: Cell,
    /// The round in which it was measured.
    pub round: u32,
    /// The purpose of the launch.
    pub purpose: Purpose,
    /// How it went.
    pub outcome: Outcome,
    /// How much slower than at its best the machine was at that time.
    pub slowdown: f64,
}

/// What a launch is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It measures times, and what can be read without a cost.
    Times,
    /// It counts system calls only.
    Calls,
}

impl Study {
    /// Measures everything; `progress` is called at each launch.
    pub fn run(&self, testbed: Testbed<'_>, pace: &mut Pace, progress: &mut dyn FnMut(&str)) -> Vec<Measurement> {
        let mut all = Vec::new();
        let rounds: Vec<u32> = self.parts.iter().map(|part| part.rounds).collect();
        let timed = schedule::order(&rounds).into_iter().map(|(round, at)| (round, at, Purpose::Times));
        let counted = (0..self.parts.len()).filter(|_| self.counts_calls).map(|at| (rounds[at], at, Purpose::Calls));
        for (round, at, purpose) in timed.chain(counted) {
            let Part { system, cells, .. } = &self.parts[at];
            let cells: Vec<Cell> = cells.iter().copied().filter(|cell| system.has(cell)).collect();
            if cells.is_empty() {
                continue;
            }
            let missing = system.missing(testbed.programs);
            let is_left_out = missing.is_some();
            let what = match purpose {
                Purpose::Times => format!("round {}", round + 1),
                Purpose::Calls => "system calls of".to_owned(),
            };
            progress(&format!("{}: {what} {}", self.name, system.name));
            let (outcomes, slowdown) = match missing {
                // System calls are counted once; that is enough.
                Some(_) if round > 0 => continue,
                Some(what) => {
                    progress(&format!("{}: {} is left out: {what}", self.name, system.name));
                    (vec![Outcome::Failed(what); cells.len()], 1.0)
                }
                None if purpose == Purpose::Calls => (self.launch(system, &cells, (round, purpose), testbed), 1.0),
                None => pace.steadily(|| {
                    let outcomes = self.launch(system, &cells, (round, purpose), testbed);
                    let is_lost = |one: &Outcome| matches!(one, Outcome::Failed(_) | Outcome::Timeout(_));
                    let again = if outcomes.iter().any(is_lost) { Again::Never } else { Again::Allowed };
                    (outcomes, again)
                }),
            };
            for (cell, outcome) in cells.into_iter().zip(outcomes) {
                if let Outcome::Failed(why) = &outcome
                    && !is_left_out
                {
                    progress(&format!("{}: {} {cell} failed: {why}", self.name, system.name));
                }
                if let Outcome::Timeout(limit) = &outcome {
                    progress(&format!("{}: {} {cell} gave no result in {} s", self.name, system.name, limit.as_secs()));
                }
                all.push(Measurement { system: system.name.clone(), cell, round, purpose, outcome, slowdown });
            }
        }
        all
    }

    /// The arguments that every measuring program reads.
    pub(crate) fn arguments(&self, cells: &[Cell], gated: bool) -> Vec<String> {
        let list: Vec<String> = cells.iter().map(Cell::to_string).collect();
        let mut arguments = vec![
            "--cells".to_owned(),
            list.join(","),
            "--budget".to_owned(),
            self.budget.as_secs_f64().to_string(),
            "--min-iterations".to_owned(),
            self.min_iterations.to_string(),
        ];
        arguments.extend(gated.then(|| "--gate".to_owned()));
        arguments
    }

    fn launch(
        &self,
        system: &System,
        cells: &[Cell],
        (round, purpose): (u32, Purpose),
        testbed: Testbed<'_>,
    ) -> Vec<Outcome> {
        let token = format!("{}-{}-{}-{round}", std::process::id(), self.name, system.name);
        let arguments = self.arguments(cells, self.observes || purpose == Purpose::Calls);
        let job = Job { ranks: self.ranks, map: self.map, arguments, token };
        let mut outcomes = Vec::with_capacity(cells.len());
        let Testbed { network, programs, limits } = testbed;
        let commands = system.commands(network, programs, &job);
        match commands.and_then(|commands| Launch::start(commands, &job.token).map_err(|cause| cause.to_string())) {
            Ok(mut launch) => {
                for at in 0..cells.len() {
                    let limit = limits.cell + self.budget * 4 + if at == 0 { limits.start } else { Duration::ZERO };
                    let outcome = one_cell(&mut launch, network, purpose, limit);
                    let is_end = matches!(outcome, Outcome::Failed(_) | Outcome::Timeout(_));
                    outcomes.push(outcome);
                    if is_end {
                        break;
                    }
                }
                // Even a peer that hangs after its last result has given all of its results.
                launch.wait(END_GRACE);
            }
            Err(cause) => outcomes.push(Outcome::Failed(format!("cannot start: {cause}"))),
        }
        let rest = match outcomes.last() {
            Some(Outcome::Timeout(limit)) => Outcome::Timeout(*limit),
            Some(Outcome::Failed(why)) => Outcome::Failed(why.clone()),
            _ => Outcome::Failed("no result".to_owned()),
        };
        outcomes.resize(cells.len(), rest);
        outcomes
    }
}

/// The next cell of a launch, with what was counted between its gates.
fn one_cell(launch: &mut Launch, network: &dyn Network, purpose: Purpose, limit: Duration) -> Outcome {
    let mut before: Option<(Reading, Option<Calls>, Option<Calls>)> = None;
    let mut ranks = Vec::new();
    let mut observed = None;
    loop {
        match launch.next(limit) {
            Ok(Line::Gate { event: Event::Ready }) => {
                let calls_of = |pids: &[u32]| if purpose == Purpose::Calls { Calls::of(pids) } else { None };
                let daemons: Vec<u32> = network.daemons().into_iter().map(|(_, pid)| pid).collect();
                ranks = processes::workers(&launch.processes());
                before = Some((Reading::take(network, &ranks), calls_of(&daemons), calls_of(&ranks)));
            }
            Ok(Line::Gate { event: Event::Done }) => {
                if let Some((before, of_nodes, of_ranks)) = before.take() {
                    let mut seen = Reading::take(network, &ranks).since(&before);
                    seen.node_calls = of_nodes.map(|mut calls| calls.count());
                    seen.rank_calls = of_ranks.map(|mut calls| calls.count());
                    observed = Some(seen);
                }
            }
            Ok(Line::Unsupported { unsupported }) => return Outcome::Unsupported(unsupported),
            Ok(Line::Row(row)) if row.wrong > 0 => {
                return Outcome::Failed(format!("wrong result: {} elements or bytes differ", row.wrong));
            }
            Ok(Line::Row(row)) => return Outcome::Row(Box::new((row, observed))),
            Err(Silence::Timeout) => return Outcome::Timeout(limit),
            Err(Silence::Ended(why)) => return Outcome::Failed(why),
        }
        // A failed write means that the process is gone, which the next reading tells better.
        let _ = launch.open_gate();
    }
}

/// Stops the measuring process of one rank of a launch, for as long as the launch lives.
pub(crate) fn stop_a_rank(launch: &Launch) -> bool {
    let ranks = processes::workers(&launch.processes());
    let Some(last) = ranks.last() else { return false };
    processes::signal(*last, Signal::STOP);
    true
}

/// How long a launch may take to end after its last result.
const END_GRACE: Duration = Duration::from_secs(2);
