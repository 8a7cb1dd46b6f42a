//! Joining over the caller's own exchange.
//!
//! Every rank takes part in every step, whatever went wrong for it before: a rank that left early would hang the others.
//! Errors travel in the records, rank 0 decides, and all ranks return the same words.
//!
//! ```text
//! record, gathered     code i32 | length u16 | text (a value when the code is 0, else an error), padded to 512 bytes
//! verdict, broadcast   code i32 | 0 u32 | length u64, then as many bytes
//! ```

use std::time::Duration;

use trib_wire::control::job::JobTicket;
use trib_wire::control::request::{JobRequest, Request};

use super::{Deadline, manager, place};
use crate::context::Context;
use crate::error::Error;
use crate::params::{HOST_MAX, OutOfBand, Params};

/// Joins the job.
pub(super) fn join(params: &Params, oob: Box<dyn OutOfBand>) -> Result<Context, Error> {
    let mut exchange = Exchange { oob, rank: params.rank, size: params.size };
    let limit = params.time_limit();
    let wait = params.queue_limit();
    let deadline = Deadline::after(limit.clone().unwrap_or_default());
    let own = limit.and(wait.clone()).and_then(|_| params.host_name());
    let wait = wait.unwrap_or_default();

    let mut held = None;
    let granted = exchange.gather(&own)?.and_then(|hosts| {
        let (name, user) = (manager::program_name(), manager::user_name());
        let request = JobRequest { hosts, ask: params.quota()?, name, user, wait_ms: manager::wait_ms(wait) };
        let (hold, ticket) = manager::ask(params, &Request::RequestJob(request), deadline, wait)?;
        held = Some(hold);
        serde_json::to_vec(&ticket).map_err(|cause| Error::broken(&format!("a ticket cannot be written: {cause}")))
    });
    let joined = share(params, &mut exchange, granted, deadline, wait);
    match (joined, held) {
        (Ok(mut context), Some(hold)) => {
            context.hold(hold);
            Ok(context)
        }
        (Err(error), Some(hold)) => {
            hold.give_up(error.to_string());
            Err(error)
        }
        (joined, None) => joined,
    }
}

/// Brings rank 0's ticket to all, and the verdict on what each made of it.
fn share(
    params: &Params,
    exchange: &mut Exchange,
    granted: Result<Vec<u8>, Error>,
    deadline: Deadline,
    wait: Duration,
) -> Result<Context, Error> {
    let ticket = exchange.bcast(granted)??;
    let deadline = deadline.after_waiting(wait);
    let taken = serde_json::from_slice::<JobTicket>(&ticket)
        .map_err(|cause| Error::Manager(format!("the ticket that rank 0 passed on cannot be read: {cause}")))
        .and_then(|ticket| place::take(params, &ticket, deadline));
    let outcome = taken.as_ref().map(|_| String::new()).map_err(Clone::clone);
    let verdict = exchange.gather(&outcome)?.map(|_| Vec::new());
    exchange.bcast(verdict)??;
    taken
}

/// The caller's exchange with outcomes instead of bytes.
struct Exchange {
    oob: Box<dyn OutOfBand>,
    rank: u32,
    size: u32,
}

impl Exchange {
    /// Brings the outcomes of all ranks to rank 0: all values, or the first error with its rank. Elsewhere it gives an error
    /// that nobody sees, because rank 0's verdict follows.
    fn gather(&mut self, own: &Result<String, Error>) -> Result<Result<Vec<String>, Error>, Error> {
        let record = to_record(own);
        let mut all = if self.rank == 0 { vec![0; RECORD_LEN * self.size as usize] } else { Vec::new() };
        let target = (self.rank == 0).then_some(&mut all[..]);
        self.oob.gather(&record, target).map_err(|code| failed("gather", code))?;
        if self.rank != 0 {
            return Ok(Err(Error::broken("the verdict is rank 0's")));
        }
        let outcomes = all.chunks_exact(RECORD_LEN).enumerate().map(|(rank, record)| {
            from_record(record).map_err(|error| error.with_text(format!("rank {rank}: {error}")))
        });
        Ok(outcomes.collect())
    }

    /// Rank 0's outcome, everywhere.
    fn bcast(&mut self, outcome: Result<Vec<u8>, Error>) -> Result<Result<Vec<u8>, Error>, Error> {
        let (code, mut bytes) = match outcome {
            _ if self.rank != 0 => (0, Vec::new()),
            Ok(bytes) => (0, bytes),
            Err(error) => (error.code(), error.to_string().into_bytes()),
        };
        let mut head = [0; HEAD_LEN];
        head[..4].copy_from_slice(&i32::to_le_bytes(code));
        head[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.oob.bcast(&mut head).map_err(|code| failed("bcast", code))?;
        let (code, len) = read_head(&head);
        if len > VERDICT_MAX {
            return Err(Error::OutOfBand(format!("the out-of-band bcast brought a length of {len} bytes")));
        }
        bytes.resize(len as usize, 0);
        if !bytes.is_empty() {
            self.oob.bcast(&mut bytes).map_err(|code| failed("bcast", code))?;
        }
        if code == 0 {
            return Ok(Ok(bytes));
        }
        Ok(Err(Error::from_code(code, String::from_utf8_lossy(&bytes).into_owned())))
    }
}

fn failed(what: &str, code: i32) -> Error {
    Error::OutOfBand(format!("the caller's out-of-band {what} failed with {code}"))
}

fn to_record(outcome: &Result<String, Error>) -> [u8; RECORD_LEN] {
    let (code, text) = match outcome {
        Ok(value) => (0, value.clone()),
        Err(error) => (error.code(), error.to_string()),
    };
    let fits = |len: &usize| text.is_char_boundary(*len);
    let len = (0..=text.len().min(TEXT_MAX)).rev().find(fits).unwrap_or(0);
    let mut record = [0; RECORD_LEN];
    record[..4].copy_from_slice(&code.to_le_bytes());
    record[4..TEXT_AT].copy_from_slice(&(len as u16).to_le_bytes());
    record[TEXT_AT..TEXT_AT + len].copy_from_slice(&text.as_bytes()[..len]);
    record
}

fn from_record(record: &[u8]) -> Result<String, Error> {
    let unreadable =
        || Error::OutOfBand("the out-of-band gather brought a record that this library did not write".into());
    let (code, rest) = record.split_first_chunk().ok_or_else(unreadable)?;
    let (len, text) = rest.split_first_chunk().ok_or_else(unreadable)?;
    let text = text.get(..usize::from(u16::from_le_bytes(*len))).ok_or_else(unreadable)?;
    let text = core::str::from_utf8(text).map_err(|_| unreadable())?.to_owned();
    match i32::from_le_bytes(*code) {
        0 => Ok(text),
        code => Err(Error::from_code(code, text)),
    }
}

fn read_head(head: &[u8; HEAD_LEN]) -> (i32, u64) {
    let mut code = [0; 4];
    let mut len = [0; 8];
    code.copy_from_slice(&head[..4]);
    len.copy_from_slice(&head[8..]);
    (i32::from_le_bytes(code), u64::from_le_bytes(len))
}

const RECORD_LEN: usize = 512;
const TEXT_AT: usize = 6;
const TEXT_MAX: usize = RECORD_LEN - TEXT_AT;
const HEAD_LEN: usize = 16;
/// Longest ticket: about a hundred bytes for each of the most ranks that a job may have.
const VERDICT_MAX: u64 = 128 << 20;
const _: () = assert!(HOST_MAX <= TEXT_MAX);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    type Bytes = Vec<u8>;

    /// An exchange between threads.
    struct Threads {
        up: Vec<Receiver<Bytes>>,
        down: Vec<Sender<Bytes>>,
        own: Option<(Sender<Bytes>, Receiver<Bytes>)>,
    }

    impl OutOfBand for Threads {
        fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32> {
            match (&self.own, all) {
                (Some((up, _)), None) => up.send(mine.to_vec()).map_err(|_| 1),
                (None, Some(all)) => {
                    let (first, rest) = all.split_at_mut(mine.len());
                    first.copy_from_slice(mine);
                    for (place, from) in rest.chunks_exact_mut(mine.len()).zip(&self.up) {
                        place.copy_from_slice(&from.recv().map_err(|_| 2)?);
                    }
                    Ok(())
                }
                _ => Err(3),
            }
        }

        fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32> {
            if let Some((_, down)) = &self.own {
                bytes.copy_from_slice(&down.recv().map_err(|_| 4)?);
            }
            self.down.iter().try_for_each(|to| to.send(bytes.to_vec()).map_err(|_| 5))
        }
    }

    /// Runs `rank` on one thread per rank; gives what each returned.
    fn on_all<T: Send>(size: u32, rank: impl Fn(&mut Exchange) -> T + Sync) -> Vec<T> {
        let mut root = Threads { up: Vec::new(), down: Vec::new(), own: None };
        let mut ends = Vec::new();
        for _ in 1..size {
            let (up, from_rank) = channel();
            let (to_rank, down) = channel();
            root.up.push(from_rank);
            root.down.push(to_rank);
            ends.push(Threads { up: Vec::new(), down: Vec::new(), own: Some((up, down)) });
        }
        ends.insert(0, root);
        let work = &rank;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..size)
                .zip(ends)
                .map(|(rank, end)| scope.spawn(move || work(&mut Exchange { oob: Box::new(end), rank, size })))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn one_ranks_error_is_everybodys_verdict_word_for_word() {
        let verdicts = on_all(4, |exchange| {
            let own = match exchange.rank {
                2 => Err(Error::Node("node an1 is not there".into())),
                rank => Ok(format!("host{rank}")),
            };
            let all = exchange.gather(&own).unwrap();
            exchange.bcast(all.map(|_| Vec::new())).unwrap()
        });
        assert_eq!(verdicts, vec![Err(Error::Node("rank 2: node an1 is not there".into())); 4]);
    }

    #[test]
    fn values_arrive_in_rank_order_and_verdicts_whole() {
        let long = vec![7u8; 100_000];
        let verdicts = on_all(3, |exchange| {
            let all = exchange.gather(&Ok(format!("host{}", exchange.rank))).unwrap();
            if exchange.rank == 0 {
                assert_eq!(all.clone().unwrap(), ["host0", "host1", "host2"]);
            }
            exchange.bcast(all.map(|_| long.clone())).unwrap()
        });
        assert_eq!(verdicts, vec![Ok(long); 3]);
    }

    #[test]
    fn long_texts_are_cut_and_foreign_records_refused() {
        let record = to_record(&Err(Error::Peer("ä".repeat(400))));
        assert_eq!(from_record(&record), Err(Error::Peer("ä".repeat(253))));
        assert!(matches!(from_record(&[0xff; RECORD_LEN]), Err(Error::OutOfBand(_))));
        assert!(matches!(from_record(&[0; 3]), Err(Error::OutOfBand(_))));
    }
}
