//! One verdict for all ranks, over the caller's own exchange.
//!
//! Every rank takes part in every step, whatever went wrong for it before: if a rank left early,
//! the others would wait for it for ever. Errors travel in the records, rank 0 decides, and all
//! ranks return the same text.
//!
//! ```text
//! record, gathered     rank u32 | size u32 | code i32 | length u16 | content | 0 ... | "TRIB"
//!                      512 bytes; the content is the value if the code is 0, else the error's text
//! verdict, broadcast   code i32 | rank u32 | length u64, then as many bytes
//! ```
//!
//! The caller's exchange has its own idea of which process is which rank. So a process that was
//! told a wrong rank or size still has a position in the exchange, sends its record from there, and
//! the record says what is wrong. Rank and size stand in every record, so that ranks with plausible
//! numbers that do not fit together are found as well.
//!
//! Until all ranks have been found to agree on the size, no message is longer than [`SHORT`],
//! because an exchange may cut longer ones according to the size.

use crate::OutOfBand;
use crate::error::Error;

/// The caller's exchange, with outcomes instead of bytes.
pub struct Agreement {
    oob: Box<dyn OutOfBand>,
    rank: u32,
    size: u32,
    /// The largest number of ranks that can take part in the exchange; it counts if `size` is
    /// wrong.
    size_max: u32,
    /// What is wrong with a process that does not know its rank. The process keeps it because the
    /// exchange may take it for rank 0.
    objection: Option<Error>,
}

impl Agreement {
    /// An agreement for a process that was told that it is `rank` of `size`. Both may be wrong. No
    /// more than `size_max` ranks take part.
    pub fn new(oob: Box<dyn OutOfBand>, rank: u32, size: u32, size_max: u32) -> Agreement {
        Agreement { oob, rank, size, size_max, objection: None }
    }

    /// Gathers the outcomes of all ranks at rank 0, which gets all values, or the first error with
    /// its rank. The other ranks get an error that is never shown, because rank 0's verdict
    /// follows. The outer error is a failure of the exchange, which must then not be used again.
    pub fn gather(&mut self, own: Result<&[u8], Error>) -> Result<Result<Vec<Vec<u8>>, Error>, Error> {
        let knows_itself = self.check().is_ok();
        let own = own.and_then(|value| self.check().map(|()| value));
        let record = self.record(&own);
        // The exchange may bring all records to a process that does not know its rank, so such a
        // process makes room for them.
        let ranks = if knows_itself && self.rank != 0 { 0 } else { self.room() };
        let mut all = vec![0; RECORD_LEN * ranks as usize];
        let target = (!all.is_empty()).then_some(&mut all[..]);
        self.oob.gather(&record, target).map_err(|code| failed("gather", code))?;
        if let (false, Err(error)) = (knows_itself, own) {
            let objection = error.with_text(format!("rank 0: {error}"));
            self.objection = Some(objection.clone());
            return Ok(Err(objection));
        }
        if self.rank != 0 {
            return Ok(Err(Error::broken("the verdict is rank 0's")));
        }
        let outcomes = all.chunks_exact(RECORD_LEN).zip(0..).map(|(record, rank)| {
            self.outcome(record, rank).map_err(|error| error.with_text(format!("rank {rank}: {error}")))
        });
        Ok(outcomes.collect())
    }

    /// Brings rank 0's outcome to all ranks. The outer error is a failure of the exchange, which
    /// must then not be used again.
    pub fn bcast(&mut self, outcome: Result<Vec<u8>, Error>) -> Result<Result<Vec<u8>, Error>, Error> {
        let outcome = if self.rank == 0 { outcome } else { Err(self.misplaced()) };
        let (code, mut bytes) = match outcome {
            Ok(bytes) => (0, bytes),
            Err(error) => (error.code(), error.to_string().into_bytes()),
        };
        let mut head = [0; HEAD_LEN];
        head[..4].copy_from_slice(&i32::to_le_bytes(code));
        head[4..8].copy_from_slice(&self.rank.to_le_bytes());
        head[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.oob.bcast(&mut head).map_err(|code| failed("bcast", code))?;
        let (code, len) = read_head(&head);
        if code > 0 || len > VERDICT_MAX {
            return Err(Error::OutOfBand(format!(
                "the out-of-band bcast brought bytes that rank 0 did not send: a verdict {code} of {len} bytes"
            )));
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

    /// Checks that rank and size are possible.
    fn check(&self) -> Result<(), Error> {
        let Agreement { rank, size, size_max, .. } = *self;
        if size == 0 || size > size_max || rank >= size {
            return Err(Error::Invalid(format!("it was told that it is rank {rank} of {size}")));
        }
        Ok(())
    }

    /// The number of ranks for whose records a gather needs room. Zeroed memory that is never
    /// written to costs nothing.
    fn room(&self) -> u32 {
        if (1..=self.size_max).contains(&self.size) { self.size } else { self.size_max }
    }

    /// The error that all ranks read if the exchange takes this process for rank 0, and that this
    /// process reads itself if the exchange brings nothing.
    fn misplaced(&self) -> Error {
        let rank = self.rank;
        self.objection.clone().unwrap_or_else(|| Error::OutOfBand(format!(
            "the out-of-band bcast gave the bytes of a process that was told that it is rank {rank}, not rank 0's: either that number \
             is wrong, or the bcast brings nothing"
        )))
    }

    fn record(&self, outcome: &Result<&[u8], Error>) -> [u8; RECORD_LEN] {
        let words = outcome.as_ref().err().map(Error::to_string).unwrap_or_default();
        let (code, content) = match outcome {
            Ok(value) => (0, *value),
            Err(error) => (error.code(), words.as_bytes()),
        };
        let is_whole = |len: &usize| code == 0 || words.is_char_boundary(*len);
        let len = (0..=content.len().min(CONTENT_MAX)).rev().find(is_whole).unwrap_or(0);
        let mut record = [0; RECORD_LEN];
        record[..4].copy_from_slice(&self.rank.to_le_bytes());
        record[4..8].copy_from_slice(&self.size.to_le_bytes());
        record[8..12].copy_from_slice(&code.to_le_bytes());
        record[12..CONTENT_AT].copy_from_slice(&(len as u16).to_le_bytes());
        record[CONTENT_AT..CONTENT_AT + len].copy_from_slice(&content[..len]);
        record[RECORD_LEN - END.len()..].copy_from_slice(END);
        record
    }

    /// What the record at this position says.
    fn outcome(&self, record: &[u8], position: u32) -> Result<Vec<u8>, Error> {
        let Record { rank, size, code, content } = read_record(record).ok_or_else(|| {
            Error::OutOfBand(
                "the out-of-band gather brought a record that this version of the library did not write".into(),
            )
        })?;
        if code != 0 {
            return Err(Error::from_code(code, String::from_utf8_lossy(content).into_owned()));
        }
        if rank != position {
            return Err(Error::Invalid(format!(
                "it was told that it is rank {rank} of {size}, and the out-of-band exchange has it as rank {position}"
            )));
        }
        if size != self.size {
            let ours = self.size;
            return Err(Error::Invalid(format!(
                "it was told that it is rank {rank} of {size}, and rank 0 that it is one of {ours}"
            )));
        }
        Ok(content.to_vec())
    }
}

/// A record, taken apart.
struct Record<'a> {
    rank: u32,
    size: u32,
    code: i32,
    content: &'a [u8],
}

fn read_record(record: &[u8]) -> Option<Record<'_>> {
    let (record, end) = record.split_last_chunk()?;
    let (rank, rest) = record.split_first_chunk()?;
    let (size, rest) = rest.split_first_chunk()?;
    let (code, rest) = rest.split_first_chunk()?;
    let (len, content) = rest.split_first_chunk()?;
    let content = content.get(..usize::from(u16::from_le_bytes(*len)))?;
    let (rank, size, code) = (u32::from_le_bytes(*rank), u32::from_le_bytes(*size), i32::from_le_bytes(*code));
    (end == END && code <= 0).then_some(Record { rank, size, code, content })
}

fn read_head(head: &[u8; HEAD_LEN]) -> (i32, u64) {
    let mut code = [0; 4];
    let mut len = [0; 8];
    code.copy_from_slice(&head[..4]);
    len.copy_from_slice(&head[8..]);
    (i32::from_le_bytes(code), u64::from_le_bytes(len))
}

fn failed(what: &str, code: i32) -> Error {
    Error::OutOfBand(format!("the caller's out-of-band {what} failed with {code}"))
}

/// The longest message, in bytes, before all ranks have been found to agree on the size.
pub const SHORT: usize = 1024;

const RECORD_LEN: usize = 512;
const CONTENT_AT: usize = 14;
/// The last bytes of a record. A record of which only a part was brought lacks them.
const END: &[u8; 4] = b"TRIB";
/// The longest value or text of a record, in bytes.
pub const CONTENT_MAX: usize = RECORD_LEN - CONTENT_AT - END.len();
const HEAD_LEN: usize = 16;
/// The longest verdict, in bytes. A ticket has about a hundred bytes for each rank, and this
/// suffices for the largest job.
const VERDICT_MAX: u64 = 128 << 20;
// A record's text, with a rank before it, and the text of a misplaced process fit into a short
// message.
const _: () = assert!(CONTENT_MAX + 64 <= SHORT);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    type Bytes = Vec<u8>;

    /// What is wrong with an exchange between threads.
    #[derive(Clone, Copy, PartialEq)]
    enum Flaw {
        None,
        /// Its gather brings nothing.
        IdleGather,
        /// Its bcast brings nothing.
        IdleBcast,
        /// Its gather brings only half of every record.
        ShortGather,
        /// Its gather brings bytes that no rank sent.
        WildGather,
        /// Its bcast brings bytes that no rank sent.
        WildBcast,
    }

    /// An exchange between threads, which knows by itself which thread is which rank.
    struct Threads {
        up: Vec<Receiver<Bytes>>,
        down: Vec<Sender<Bytes>>,
        own: Option<(Sender<Bytes>, Receiver<Bytes>)>,
        flaw: Flaw,
    }

    impl OutOfBand for Threads {
        fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32> {
            if self.flaw == Flaw::IdleGather {
                return Ok(());
            }
            if let Some((up, _)) = &self.own {
                return up.send(mine.to_vec()).map_err(|_| 1);
            }
            let (first, rest) = all.ok_or(3)?.split_at_mut(mine.len());
            first.copy_from_slice(mine);
            for (record, from) in rest.chunks_exact_mut(mine.len()).zip(&self.up) {
                let sent = from.recv().map_err(|_| 2)?;
                match self.flaw {
                    Flaw::ShortGather => record[..sent.len() / 2].copy_from_slice(&sent[..sent.len() / 2]),
                    Flaw::WildGather => record.fill(0xa5),
                    _ => record.copy_from_slice(&sent),
                }
            }
            Ok(())
        }

        fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32> {
            match self.flaw {
                Flaw::IdleBcast => return Ok(()),
                Flaw::WildBcast => bytes.fill(0x77),
                _ => {}
            }
            if let (Some((_, down)), Flaw::None) = (&self.own, self.flaw) {
                let sent = down.recv().map_err(|_| 4)?;
                assert_eq!(sent.len(), bytes.len(), "ranks disagree about the length of a message");
                bytes.copy_from_slice(&sent);
            }
            self.down.iter().try_for_each(|to| to.send(bytes.to_vec()).map_err(|_| 5))
        }
    }

    /// Runs `body` on `ranks` threads. `told` says which rank and size each of them is told.
    /// Returns what each thread returned.
    fn on_all<T: Send>(
        ranks: u32,
        flaw: Flaw,
        told: impl Fn(u32) -> (u32, u32),
        body: impl Fn(&mut Agreement) -> T + Sync,
    ) -> Vec<T> {
        let mut root = Threads { up: Vec::new(), down: Vec::new(), own: None, flaw };
        let mut ends = Vec::new();
        for _ in 1..ranks {
            let (up, from_rank) = channel();
            let (to_rank, down) = channel();
            root.up.push(from_rank);
            root.down.push(to_rank);
            ends.push(Threads { up: Vec::new(), down: Vec::new(), own: Some((up, down)), flaw });
        }
        ends.insert(0, root);
        let work = &body;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..ranks)
                .zip(ends)
                .map(|(position, end)| {
                    let (rank, size) = told(position);
                    scope.spawn(move || work(&mut Agreement::new(Box::new(end), rank, size, 64)))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// One round without values.
    fn round(agreement: &mut Agreement) -> Result<Vec<u8>, Error> {
        let all = agreement.gather(Ok(b"here"))?;
        agreement.bcast(all.map(|_| b"done".to_vec()))?
    }

    #[test]
    fn one_ranks_error_is_everybodys_verdict_word_for_word() {
        let verdicts = on_all(
            4,
            Flaw::None,
            |position| (position, 4),
            |agreement| {
                let own = match agreement.rank {
                    2 => Err(Error::Node("node an1 is not there".into())),
                    _ => Ok(&b"host"[..]),
                };
                let all = agreement.gather(own).unwrap();
                agreement.bcast(all.map(|_| Vec::new())).unwrap()
            },
        );
        assert_eq!(verdicts, vec![Err(Error::Node("rank 2: node an1 is not there".into())); 4]);
    }

    #[test]
    fn values_arrive_in_rank_order_and_verdicts_whole() {
        let long = vec![7u8; 100_000];
        let verdicts = on_all(
            3,
            Flaw::None,
            |position| (position, 3),
            |agreement| {
                let own = format!("host{}", agreement.rank);
                let all = agreement.gather(Ok(own.as_bytes())).unwrap();
                if agreement.rank == 0 {
                    assert_eq!(all.clone().unwrap(), [b"host0", b"host1", b"host2"]);
                }
                agreement.bcast(all.map(|_| long.clone())).unwrap()
            },
        );
        assert_eq!(verdicts, vec![Ok(long); 3]);
    }

    #[test]
    fn a_rank_that_was_told_nonsense_fails_all_with_its_number_and_none_hangs() {
        for ranks in [1, 2, 3, 8] {
            for victim in [0, ranks - 1] {
                for wrong in [(victim, 0), (ranks + 9, ranks), (u32::MAX, 0), (victim, u32::MAX), (victim, ranks + 1)] {
                    // A rank 0 with too large a size asks the exchange for more records than there
                    // are.
                    let told = |position| if position == victim { wrong } else { (position, ranks) };
                    let verdicts = on_all(ranks, Flaw::None, told, round);
                    let words = verdicts[0].as_ref().expect_err("nonsense was taken").to_string();
                    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
                    let (rank, size) = wrong;
                    let told = match (victim, size - u32::from(size > 0) == ranks) {
                        // Rank 0 cannot tell that its own size is wrong; only the others can.
                        (0, true) if rank == 0 => "rank 1: ".to_owned(),
                        _ => format!("rank {victim}: it was told that it is rank {rank} of {size}"),
                    };
                    assert!(words.starts_with(&told), "{words}");
                }
            }
        }
    }

    #[test]
    fn two_ranks_with_the_same_number_are_found() {
        for twin in [0, 1] {
            let verdicts = on_all(3, Flaw::None, |position| (if position == 2 { twin } else { position }, 3), round);
            let words = verdicts[0].as_ref().unwrap_err().to_string();
            assert!(words.starts_with(&format!("rank 2: it was told that it is rank {twin} of 3")), "{words}");
            assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
        }
    }

    #[test]
    fn an_exchange_that_brings_nothing_or_garbage_is_noticed_by_every_rank() {
        for flaw in [Flaw::IdleGather, Flaw::IdleBcast, Flaw::ShortGather, Flaw::WildGather, Flaw::WildBcast] {
            let verdicts = on_all(3, flaw, |position| (position, 3), round);
            // Rank 0 has all the records and cannot learn that its verdict reached no rank.
            let first = usize::from(flaw == Flaw::IdleBcast);
            for verdict in &verdicts[first..] {
                assert!(matches!(verdict, Err(Error::OutOfBand(_))), "{verdicts:?}");
            }
        }
    }

    #[test]
    fn long_words_are_cut_and_foreign_records_refused() {
        let end = Threads { up: Vec::new(), down: Vec::new(), own: None, flaw: Flaw::None };
        let agreement = Agreement::new(Box::new(end), 0, 1, 1);
        let record = agreement.record(&Err(Error::Peer("ä".repeat(400))));
        assert_eq!(agreement.outcome(&record, 0), Err(Error::Peer("ä".repeat(CONTENT_MAX / 2))));
        for foreign in [&[0xff; RECORD_LEN][..], &[0; RECORD_LEN], &[0; 3], &record[..RECORD_LEN - 1], &[]] {
            assert!(matches!(agreement.outcome(foreign, 0), Err(Error::OutOfBand(_))));
        }
    }
}
