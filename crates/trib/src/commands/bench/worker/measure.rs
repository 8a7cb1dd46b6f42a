//! Measuring one cell on all ranks.

use std::time::{Duration, Instant};

use trib_client::{Context, DataType, Group, ReduceOp};
use trib_compare::{Cell, Latencies, Mode, WorkerRow};

use super::super::measure::reduce_f64;
use super::super::work::Work;
use super::gate::Gate;
use super::usage::Usage;
use crate::failure::Failure;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) budget: Duration,
    pub(super) min_iterations: u32,
    pub(super) gate: Gate,
}

/// Measures a cell; all ranks return the same row.
pub(super) fn measure(
    context: &Context,
    groups: &[Group],
    cell: &Cell,
    dtype: DataType,
    op: ReduceOp,
    plan: &Plan,
) -> Result<WorkerRow, Failure> {
    let group = &groups[0];
    let mut flight = Flight::new(groups, cell, dtype, op);
    let streamed = || context.counters().map(|counters| counters.operations_sat).map_err(Failure::operation);
    flight.run(0)?;
    let mut wrong = flight.wrong(0);
    let before = streamed()?;
    let iterations = choose(group, cell, &mut flight, plan)?;
    plan.gate.pass(group, "ready")?;
    // This uses up the token buckets of idle links, which would let the first bytes through
    // unshaped.
    flight.run(1)?;
    let is_streamed = streamed()? > before;
    group.barrier().map_err(Failure::operation)?;

    let used = Usage::now();
    let mut times = Vec::with_capacity(iterations as usize);
    let start = Instant::now();
    let mut last = start;
    for iteration in 0..u64::from(iterations) {
        if cell.mode == Mode::Single {
            std::thread::sleep(PAUSE);
            group.barrier().map_err(Failure::operation)?;
            last = Instant::now();
        }
        flight.run(iteration)?;
        let end = Instant::now();
        times.push((end - last).as_secs_f64() * 1e6);
        last = end;
    }
    let elapsed = match cell.mode {
        Mode::Single => times.iter().sum::<f64>() / 1e6,
        Mode::Sustained | Mode::Flight => (last - start).as_secs_f64(),
    };
    let after = Usage::now();

    // A rank that checks its result takes processor time from those that still wait for theirs, so
    // all wait for the last.
    group.barrier().map_err(Failure::operation)?;
    plan.gate.pass(group, "done")?;
    wrong += flight.wrong(u64::from(iterations) - 1);
    let latencies_us = summarize(group, times, cell.mode)?;
    let [cpu_ns, context_switches, wrong] =
        reduce_f64(group, [after.cpu_ns - used.cpu_ns, after.switches - used.switches, wrong as f64], ReduceOp::Sum)?;
    let [seconds] = reduce_f64(group, [elapsed], ReduceOp::Max)?;
    Ok(WorkerRow {
        collective: cell.collective.name().to_owned(),
        bytes: flight.works[0].bytes,
        asked_bytes: cell.bytes,
        mode: cell.mode,
        iterations: u64::from(iterations),
        operations: u64::from(iterations) + 1,
        seconds,
        latencies_us,
        cpu_ns,
        context_switches,
        wrong: wrong as u64,
        path: Some(if is_streamed { "sat" } else { "llt" }.to_owned()),
    })
}

/// The operation of a cell, or the eight that are in flight together.
struct Flight<'a> {
    groups: &'a [Group],
    works: Vec<Work>,
}

impl Flight<'_> {
    fn new<'a>(groups: &'a [Group], cell: &Cell, dtype: DataType, op: ReduceOp) -> Flight<'a> {
        let (rank, ranks) = (groups[0].rank(), groups[0].size());
        let make = |_| Work::new(cell.collective, dtype, op, cell.bytes, rank, ranks);
        Flight { groups, works: (0..cell.mode.in_flight()).map(make).collect() }
    }

    fn run(&mut self, iteration: u64) -> Result<(), Failure> {
        if let [work] = &mut self.works[..] {
            work.prepare(iteration);
            return work.run(&self.groups[0], iteration).map_err(Failure::operation);
        }
        let mut requests = Vec::with_capacity(self.works.len());
        for (work, group) in self.works.iter_mut().zip(self.groups.iter().cycle()) {
            work.prepare(iteration);
            // SAFETY: all requests are waited for before the works are touched again, and a failed
            // post ends the process.
            requests.push(unsafe { work.start(group, iteration) }.map_err(Failure::operation)?);
        }
        requests.iter().try_for_each(|request| request.wait(None)).map_err(Failure::operation)
    }

    /// The number of wrong bytes in the results of `iteration`, which ran last.
    fn wrong(&self, iteration: u64) -> usize {
        self.works.iter().filter_map(|work| work.check(iteration).err()).map(|wrong| wrong.bytes).sum()
    }
}

/// How many iterations fit: the budget over the time of a warm-up operation, or of a batch of them
/// if one alone is too short to measure.
fn choose(group: &Group, cell: &Cell, flight: &mut Flight, plan: &Plan) -> Result<u32, Failure> {
    if let Some(iterations) = cell.iterations {
        return Ok(iterations.clamp(1, MOST_ITERATIONS));
    }
    let mut slowest = |operations: u32| -> Result<f64, Failure> {
        let start = Instant::now();
        for iteration in 0..u64::from(operations) {
            flight.run(iteration + 1)?;
        }
        let [slowest] = reduce_f64(group, [start.elapsed().as_secs_f64() / f64::from(operations)], ReduceOp::Max)?;
        Ok(slowest)
    };
    let budget = plan.budget.as_secs_f64();
    let mut each = slowest(1)?;
    if each * 10.0 * f64::from(WARM_UP_BATCH) < budget {
        each = slowest(WARM_UP_BATCH)?;
    }
    if cell.mode == Mode::Single {
        each += PAUSE.as_secs_f64();
    }
    let fit = budget / each.max(1e-7);
    Ok((fit as u32).clamp(plan.min_iterations, MOST_ITERATIONS))
}

/// The times of the calls, in microseconds. In sustained mode a call lasts from one completion to
/// the next on one rank; the median is the mean over the ranks' medians, the tail that of the worst
/// rank. In single mode a call lasts as long as on its slowest rank.
fn summarize(group: &Group, mut times: Vec<f64>, mode: Mode) -> Result<Latencies, Failure> {
    if mode == Mode::Single {
        let mut bytes: Vec<u8> = times.iter().flat_map(|micros| micros.to_le_bytes()).collect();
        group.allreduce(None, &mut bytes, DataType::F64, ReduceOp::Max).map_err(Failure::operation)?;
        times = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap_or_default())).collect();
    }
    times.sort_by(f64::total_cmp);
    let count = times.len();
    let [median] = reduce_f64(group, [times[count / 2]], ReduceOp::Sum)?;
    let [p99, max] = reduce_f64(group, [times[count * 99 / 100], times[count - 1]], ReduceOp::Max)?;
    let [min] = reduce_f64(group, [times[0]], ReduceOp::Min)?;
    Ok(Latencies { median: median / f64::from(group.size()), p99, min, max })
}

/// A pause after which every idle token bucket is full again.
const PAUSE: Duration = Duration::from_millis(5);
const WARM_UP_BATCH: u32 = 20;
const MOST_ITERATIONS: u32 = super::MOST_ITERATIONS as u32;
