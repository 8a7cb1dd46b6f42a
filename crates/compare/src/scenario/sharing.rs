//! Several jobs at once: how much of the link each gets while all of them want it.
//!
//! All jobs run the same number of operations from the same moment on. A job's rate is that of its
//! median call: the job that gets less finishes last and has the link to itself in the end, which a
//! mean would hide.

use std::time::Duration;

use trib_wire::Collective::Allreduce;

use super::MIB;
use crate::cell::{Cell, Mode};
use crate::launch::{Launch, Silence};
use crate::line::{Event, Line};
use crate::network::Map;
use crate::pace::{Again, Pace};
use crate::result::ResultRow;
use crate::statistics::median;
use crate::study::{Shape, Study, stop_a_rank};
use crate::system::{Job, System};
use crate::testbed::Testbed;

/// What `--only` and rows call it.
pub const NAME: &str = "jobs";

/// The scenario.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The fabric.
    pub shape: Shape,
    /// How many rounds are measured.
    pub rounds: u32,
    /// Operations of each job in each round.
    pub operations: u32,
}

/// What else runs while two jobs are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beside {
    /// Nothing.
    Nobody,
    /// A job that streams too, one rank of which is stopped.
    Stopped,
}

impl Sharing {
    pub(super) fn new(shape: Shape, quick: bool) -> Sharing {
        let (rounds, operations) = if quick { (5, 40) } else { (5, 80) };
        Sharing { shape, rounds, operations }
    }

    /// Measures; one row per case and job.
    pub fn run(&self, testbed: Testbed<'_>, pace: &mut Pace, progress: &mut dyn FnMut(&str)) -> Vec<ResultRow> {
        let study = Study { name: NAME, ..super::plain(NAME, self.shape, Vec::new()) };
        let equal = Cell::sustained(Allreduce, MIB).times(self.operations);
        // Each of its rounds has eight operations, and it gets more than half of the link at worst.
        // With this many it outlasts the other job.
        let greedy = Cell { mode: Mode::Flight, ..equal.times(self.operations / 2) };
        let always = Cell { mode: Mode::Flight, ..equal.times((self.operations / 4).max(1)) };
        let cases: [(&str, Beside, [Runner; 2]); 4] = [
            ("two", Beside::Nobody, [Runner::plain(equal), Runner::plain(equal)]),
            ("stopped-third", Beside::Stopped, [Runner::plain(equal), Runner::plain(equal)]),
            ("four-groups", Beside::Nobody, [Runner::plain(always), Runner { cell: always, groups: 4 }]),
            ("greedy", Beside::Nobody, [Runner::plain(equal), Runner { cell: greedy, groups: 4 }]),
        ];
        let mut rows = Vec::new();
        for (case, beside, runners) in cases {
            let mut latencies: [Vec<f64>; 2] = Default::default();
            let mut slowdowns = Vec::new();
            let mut failure = None;
            for round in 0..self.rounds {
                progress(&format!("{NAME}: round {} {case}", round + 1));
                let (outcome, slowdown) = pace.steadily(|| {
                    let outcome = self.together(&study, beside, &runners, round, testbed);
                    let again = if outcome.is_ok() { Again::Allowed } else { Again::Never };
                    (outcome, again)
                });
                slowdowns.push(slowdown);
                match outcome {
                    Ok(calls) => calls.into_iter().zip(&mut latencies).for_each(|(call, all)| all.push(call)),
                    Err(why) => failure = Some(why),
                }
            }
            for (at, (runner, latencies)) in runners.iter().zip(&latencies).enumerate() {
                let name = format!("tributary-{case}-{}", ["a", "b"][at]);
                let mut row = ResultRow::new(&study, &name, &runner.cell);
                row.set_latencies(latencies);
                row.slowdown = median(&slowdowns);
                row.failures = self.rounds as usize - latencies.len();
                if let Some(why) = &failure {
                    let some = if latencies.is_empty() { "failed" } else { "ok, but not in all rounds" };
                    row.status = format!("{some}: {why}");
                }
                rows.push(row);
            }
        }
        rows
    }

    /// One round: the median call of each job, microseconds.
    fn together(
        &self,
        study: &Study,
        beside: Beside,
        runners: &[Runner; 2],
        round: u32,
        testbed: Testbed<'_>,
    ) -> Result<Vec<f64>, String> {
        let Testbed { network, programs, limits } = testbed;
        let start = |name: &str, runner: &Runner| {
            let mut arguments = study.arguments(&[runner.cell], true);
            arguments.extend(["--groups".to_owned(), runner.groups.to_string()]);
            let token = format!("{}-{NAME}-{name}-{round}", std::process::id());
            let job = Job { ranks: study.ranks, map: Map::ByLeaf, arguments, token };
            let commands = System::tributary().commands(network, programs, &job)?;
            let mut launch = Launch::start(commands, &job.token).map_err(|cause| format!("cannot start: {cause}"))?;
            arrive(&mut launch, Event::Ready, limits.start)?;
            Ok::<_, String>(launch)
        };
        let third = match beside {
            Beside::Nobody => None,
            Beside::Stopped => {
                let many = Runner::plain(Cell::sustained(Allreduce, MIB).times(10_000));
                let mut third = start("third", &many)?;
                third.open_gate().map_err(|cause| cause.to_string())?;
                std::thread::sleep(Duration::from_millis(300));
                if !stop_a_rank(&third) {
                    return Err("the third job has no rank to stop".to_owned());
                }
                Some(third)
            }
        };
        let mut launches = vec![start("a", &runners[0])?, start("b", &runners[1])?];
        for launch in &mut launches {
            launch.open_gate().map_err(|cause| cause.to_string())?;
        }
        let mut calls = Vec::new();
        for launch in &mut launches {
            arrive(launch, Event::Done, limits.cell * 2)?;
            launch.open_gate().map_err(|cause| cause.to_string())?;
        }
        for launch in &mut launches {
            match launch.next(limits.cell) {
                Ok(Line::Row(row)) if row.wrong == 0 => calls.push(row.latencies_us.median),
                Ok(Line::Row(row)) => return Err(format!("wrong result: {} elements or bytes", row.wrong)),
                Ok(other) => return Err(format!("unexpected: {other:?}")),
                Err(silence) => return Err(told(silence)),
            }
        }
        for launch in &mut launches {
            launch.wait(Duration::from_secs(2));
        }
        drop(third);
        Ok(calls)
    }
}

/// One of two jobs.
#[derive(Clone, Copy, Debug)]
struct Runner {
    cell: Cell,
    /// Groups over which operations in flight are spread.
    groups: u32,
}

impl Runner {
    fn plain(cell: Cell) -> Runner {
        Runner { cell, groups: 1 }
    }
}

/// Waits until the launch says that it has reached this gate.
fn arrive(launch: &mut Launch, event: Event, limit: Duration) -> Result<(), String> {
    match launch.next(limit) {
        Ok(Line::Gate { event: at }) if at == event => Ok(()),
        Ok(other) => Err(format!("unexpected: {other:?}")),
        Err(silence) => Err(told(silence)),
    }
}

fn told(silence: Silence) -> String {
    match silence {
        Silence::Timeout => "nothing came within the time limit".to_owned(),
        Silence::Ended(why) => why,
    }
}
