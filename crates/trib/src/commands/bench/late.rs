//! The cost of waiting for a rank that comes late. It must be next to nothing, and the wait must
//! not fail.

use std::time::{Duration, Instant};

use serde_json::json;
use trib_client::{Context, DataType, Group, ReduceOp};

use super::measure::reduce_f64;
use crate::failure::Failure;

/// The last rank sleeps for `span` and then joins an allreduce in which the others have waited.
pub(super) fn run(context: &Context, group: &Group, span: Duration, json: bool) -> Result<(), Failure> {
    let is_late = group.rank() + 1 == group.size() && group.size() > 1;
    group.barrier().map_err(Failure::operation)?;
    if is_late {
        std::thread::sleep(span);
    }
    let sent = || context.counters().map(|counters| counters.datagrams_sent as f64).map_err(Failure::operation);
    let (sent_before, busy_before, start) = (sent()?, processor_time(), Instant::now());
    let mut ones = 1i32.to_le_bytes();
    group.allreduce(None, &mut ones, DataType::I32, ReduceOp::Sum).map_err(Failure::operation)?;
    let waited = start.elapsed().as_secs_f64();
    let own = if is_late {
        [0.0; 3]
    } else {
        [(sent()? - sent_before) / waited, 100.0 * (processor_time() - busy_before).as_secs_f64() / waited, waited]
    };
    if i32::from_le_bytes(ones) != group.size() as i32 {
        return Err(Failure::Operation(format!("wrong result: {} ranks counted", i32::from_le_bytes(ones))));
    }
    let [packets, percent, longest] = reduce_f64(group, own, ReduceOp::Max)?;
    if group.rank() == 0 {
        if json {
            let ranks = group.size();
            say!(
                "{:#}",
                json!({ "ranks": ranks, "waited_s": longest, "packets_per_s": packets, "cpu_percent": percent })
            )?;
        } else {
            say!(
                "# rank {} came {:.1} s late; of the ranks that waited, the most",
                group.size() - 1,
                span.as_secs_f64()
            )?;
            say!("{:>14} {:>14} {:>14}", "waited [s]", "packets/s", "CPU [%]")?;
            say!("{longest:>14.2} {packets:>14.2} {percent:>14.3}")?;
        }
    }
    Ok(())
}

/// The processor time of all threads of this process so far, user and system.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
