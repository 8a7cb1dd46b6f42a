//! Timing one size on all ranks.
//!
//! An iteration lasts as long as on its slowest rank. A barrier before each lets the ranks start
//! together, as the OSU benchmarks do. All ranks take part in every step of the measurement itself,
//! which goes through the tree as well.

use std::time::{Duration, Instant};

use trib_client::{Collective, Context, DataType, Group, ReduceOp};

use super::work::Work;
use crate::failure::Failure;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) iterations: Option<u32>,
    /// The time for the operations of one size.
    pub(super) budget: Duration,
}

/// The result for one size, the same on all ranks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Row {
    pub(super) collective: Collective,
    pub(super) bytes: u64,
    pub(super) iterations: u32,
    /// Latencies in microseconds.
    pub(super) average: f64,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Whether the operations were streamed.
    pub(super) streamed: bool,
}

impl Row {
    /// The bytes of the vector per average time, in MB/s (10^6 bytes).
    pub(super) fn bandwidth(&self) -> f64 {
        if self.average > 0.0 { self.bytes as f64 / self.average } else { 0.0 }
    }
}

/// Measures one size.
pub(super) fn measure(context: &Context, group: &Group, mut work: Work, plan: &Plan) -> Result<Row, Failure> {
    let streamed = || context.counters().map(|counters| counters.operations_sat).map_err(Failure::operation);
    let before = streamed()?;
    let mut warm = Vec::new();
    for iteration in 0..WARM_UP {
        group.barrier().map_err(Failure::operation)?;
        warm.push(once(group, &mut work, iteration)?);
    }
    let streamed = streamed()? > before;
    let iterations = match plan.iterations {
        Some(count) => count,
        None => {
            let [slowest] = reduce_f64(group, [warm[warm.len() - 1]], ReduceOp::Max)?;
            (plan.budget.as_secs_f64() * 1e6 / slowest.max(1.0)).clamp(ITERATIONS_MIN, ITERATIONS_MAX) as u32
        }
    };
    let mut latencies = Vec::with_capacity(iterations as usize);
    for iteration in 0..u64::from(iterations) {
        work.prepare(iteration);
        group.barrier().map_err(Failure::operation)?;
        latencies.push(once(group, &mut work, iteration)?);
    }
    let mut bytes: Vec<u8> = latencies.iter().flat_map(|micros| micros.to_le_bytes()).collect();
    group.allreduce(None, &mut bytes, DataType::F64, ReduceOp::Max).map_err(Failure::operation)?;
    let mut slowest: Vec<f64> =
        bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap_or_default())).collect();
    slowest.sort_by(f64::total_cmp);
    Ok(Row {
        collective: work.collective,
        bytes: work.bytes,
        iterations,
        average: slowest.iter().sum::<f64>() / slowest.len() as f64,
        median: slowest[slowest.len() / 2],
        min: slowest[0],
        max: slowest[slowest.len() - 1],
        streamed,
    })
}

/// Does one operation with its check; returns its time in microseconds.
fn once(group: &Group, work: &mut Work, iteration: u64) -> Result<f64, Failure> {
    work.prepare(iteration);
    let start = Instant::now();
    let outcome = work.run(group, iteration);
    let elapsed = start.elapsed();
    outcome.map_err(Failure::operation)?;
    work.check(iteration).map_err(|wrong| {
        let (collective, bytes, rank) = (work.collective, work.bytes, group.rank());
        Failure::Operation(format!(
            "wrong result: {collective} of {bytes} bytes, rank {rank}, iteration {iteration}: {} bytes differ, the first is \
             byte {}",
            wrong.bytes, wrong.byte
        ))
    })?;
    Ok(elapsed.as_secs_f64() * 1e6)
}

/// Reduces numbers over all ranks.
pub(super) fn reduce_f64<const N: usize>(group: &Group, own: [f64; N], op: ReduceOp) -> Result<[f64; N], Failure> {
    let mut bytes: Vec<u8> = own.iter().flat_map(|value| value.to_le_bytes()).collect();
    group.allreduce(None, &mut bytes, DataType::F64, op).map_err(Failure::operation)?;
    let mut result = [0.0; N];
    for (value, bytes) in result.iter_mut().zip(bytes.chunks_exact(8)) {
        *value = f64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    Ok(result)
}

const WARM_UP: u64 = 2;
const ITERATIONS_MIN: f64 = 3.0;
const ITERATIONS_MAX: f64 = 1000.0;
