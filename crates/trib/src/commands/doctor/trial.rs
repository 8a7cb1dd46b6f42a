//! A job of one rank, which tests the way from this host to its aggregation node.
//!
//! One rank is a whole job: it is admitted, its tree is installed, its contribution goes to the
//! node and the result comes back. The vector of the first operation makes datagrams as full as the
//! topology's MTU allows, so that a path on which such datagrams vanish shows here instead of in a
//! program that hangs.

use std::time::{Duration, Instant};

use trib_client::{Context, DataType, Error, Group, Input, Params, RankList, ReduceOp, operation};

use super::check::Report;
use super::strain::{Strain, advice};
use crate::exchange::Exchange;

/// Runs the job. `unread` asks how many datagrams the fabric's nodes have dropped unread.
pub(super) fn run(
    manager: Option<String>,
    host: Option<String>,
    limit: Duration,
    unread: impl Fn() -> u64,
    report: &mut Report,
) {
    let patience = Some(limit + VERDICT);
    let oob = Exchange::among(1).pop().map(|alone| Box::new(alone) as _);
    // A job script's TRIB_WAIT_MS is for its programs.
    let params = Params { manager, host, oob, timeout: patience, wait: Some(Duration::ZERO), ..Params::new(0, 1) };
    let start = Instant::now();
    let (context, group) = match join(params, limit) {
        Ok(both) => both,
        // Jobs that run are no fault of this host, of which this says nothing.
        Err(error) if is_busy(&error) => return report.warn("trial job", format!("busy: {error}"), BUSY),
        // The error itself names the remedy, as a program would see it.
        Err(error) => return report.fail("trial job", error, None),
    };
    report.good("trial job", format!("admitted and connected in {} ms", start.elapsed().as_millis()));
    for (name, bytes, remedy) in WAYS {
        let (start, before) = (Instant::now(), Strain::now(unread()));
        let outcome = allreduce(&group, bytes, limit);
        let took = start.elapsed();
        let counters = context.counters().unwrap_or_default();
        let (asked, resent) = (counters.probes, counters.retransmissions);
        if outcome.is_ok() && asked + resent == 0 {
            report.good(name, format!("{bytes} bytes there and back in {} us", took.as_micros()));
            continue;
        }
        let strain = Strain::now(unread()).since(&before);
        let millis = took.as_millis();
        match outcome {
            // This host asked for missing results, and no datagram had been lost.
            Ok(()) if resent == 0 && strain.is_empty() => {
                report.good(name, format!("{bytes} bytes there and back in {millis} ms, nothing lost, {asked} late"))
            }
            Ok(()) if resent == 0 => {
                let found = format!("{bytes} bytes took {millis} ms; {asked} datagrams were late, none was lost");
                report.warn(name, found, advice(&strain, SLOW));
            }
            Ok(()) => {
                let found = format!("{bytes} bytes took {millis} ms and {resent} repetitions");
                report.warn(name, found, advice(&strain, remedy));
            }
            Err(Error::Timeout(_)) => {
                let found = format!("{bytes} bytes did not come back within {} ms", limit.as_millis());
                return report.fail(name, found, Some(advice(&strain, remedy)));
            }
            Err(error) => return report.fail(name, error, Some(advice(&strain, remedy))),
        }
    }
}

fn join(params: Params, limit: Duration) -> Result<(Context, Group), Error> {
    let context = Context::join(params)?;
    let (group, ready) = context.start_group(RankList::world(1), 0)?;
    ready.wait(Some(limit))?;
    Ok((context, group))
}

/// Whether others have what the trial needs. Of what can never be had the manager does not say that
/// it comes back, and then no job of this host runs.
fn is_busy(error: &Error) -> bool {
    matches!(error, Error::Quota(text) if WAITS_HELP.iter().any(|words| text.contains(words)))
}

/// Reduces a vector of ones over the one rank, which must get it back.
fn allreduce(group: &Group, bytes: usize, limit: Duration) -> Result<(), Error> {
    let input = vec![1u8; bytes];
    let mut output = vec![0u8; bytes];
    let signature = operation::allreduce(bytes as u64, DataType::U8, ReduceOp::Sum);
    // SAFETY: both buffers have the vector's length, and they stay where they are until the
    // operation is over, or for good.
    let request = unsafe { group.start(signature, Input::At(input.as_ptr()), output.as_mut_ptr()) }?;
    let outcome = request.wait(Some(limit));
    if !request.is_done() {
        // The operation still uses both. This process ends soon.
        std::mem::forget((input, output));
        return outcome;
    }
    outcome?;
    if output == input { Ok(()) } else { Err(Error::Internal("the result is not the contribution".into())) }
}

/// The manager waits five seconds for a node before it refuses the job and names the node.
const VERDICT: Duration = Duration::from_secs(6);

/// What the manager offers whose job lacks what other jobs have: the quota of a tenant or a node,
/// or the number of jobs.
const WAITS_HELP: [&str; 2] = ["wait for it with TRIB_WAIT_MS", "wait until one ends"];

/// What to do about that.
const BUSY: &str = "others have what the trial job needs, so that it did not run and this host's way to its aggregation \
                    node was not tried: run `trib doctor` again when one of their jobs has ended";

/// If nothing is lost, the node answers slowly.
const SLOW: &str = "look at the load of the machine that this host's aggregation node runs on";

/// The two paths, the bytes that each carries, and what to do if it does not. 16 KiB is the longest
/// vector that travels by datagram by default.
const WAYS: [(&str, usize, &str); 2] = [
    (
        "datagrams",
        16 << 10,
        "datagrams get lost between this host and its aggregation node: set `mtu` in the topology to what every link on the \
         way carries, let UDP pass the firewalls in both directions, and look for drops in `trib status`",
    ),
    (
        "stream",
        4 << 20,
        "the connection to this host's aggregation node stops under load: let TCP to its port pass, with ICMP, so that path \
         MTU discovery works",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_back_is_busy() {
        let quota = |text: &str| is_busy(&Error::Quota(text.into()));
        assert!(quota(
            "tenant bio may have 2, job 7 has 1; let one end, or wait for it with TRIB_WAIT_MS (so for 3 s)"
        ));
        assert!(quota("4096 jobs are running, the most a manager admits: wait until one ends"));
        assert!(!quota("takes 1 job in the fabric, tenant bio may have at most 0: let one end, or raise the amount"));
        assert!(!quota("the job asks for streams = 9, this fabric gives at most 8: ask for less"));
        assert!(!quota("cannot write the manager's state in /var/lib/jobs: no space: free space there"));
        assert!(!is_busy(&Error::Manager("wait until one ends".into())));
    }
}
