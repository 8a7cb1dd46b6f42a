//! Counters: of each rank, or summed over the job.
//!
//! ```text
//!   SHARP_COLL_STATS_DUMP_MODE=1   every rank: counters -> file or stderr     local
//!   SHARP_COLL_STATS_DUMP_MODE=2   gather counters at rank 0 -> sum -> file   out of band
//! ```
//!
//! The mode of rank 0 holds for all ranks, which learn it in `sharp_coll_init` (`agreed`).

use std::fmt::Write as _;
use std::io::Write as _;

use trib_client::Counters;

use crate::error::{ERROR, Failure};
use crate::exchange::Exchange;
use crate::{log, settings};

/// When counters are written although the client does not ask for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Counters are never written.
    Off,
    /// Every rank writes its own when it leaves.
    Each,
    /// Rank 0 writes the sum of all ranks when they leave.
    Sum,
}

/// How this job writes counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
    pub mode: Mode,
    /// The file; `None` stands for stderr.
    file: Option<String>,
}

impl Statistics {
    /// The settings in this rank's environment.
    pub fn from_env() -> Statistics {
        Statistics { mode: Mode::from_env(), file: settings::value("SHARP_COLL_STATS_FILE") }
    }

    /// Writes this rank's counters. Local.
    pub fn write_own(&self, rank: u32, size: u32, counters: &Counters) -> Result<(), Failure> {
        self.write(&page(&format!("rank {rank} of {size}"), &values(counters)))
    }

    /// Writes the sum of all ranks' counters at rank 0. Collective over the job.
    pub fn write_sum(&self, rank: u32, size: u32, counters: &Counters, exchange: &mut Exchange) -> Result<(), Failure> {
        let own: Vec<u8> = values(counters).iter().flat_map(|count| count.to_le_bytes()).collect();
        let gathered = exchange.gathered(&own)?;
        if rank != 0 {
            return Ok(());
        }
        self.write(&page(&format!("{size} ranks, summed"), &sum(&gathered)))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let written = match &self.file {
            None => std::io::stderr().write_all(text.as_bytes()),
            Some(path) => {
                // One write at the end, so that ranks on one host do not mix.
                let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
                file.and_then(|mut file| file.write_all(text.as_bytes()))
            }
        };
        let file = self.file.as_deref().unwrap_or("stderr");
        written.map_err(|cause| Failure::new(ERROR, format!("counters cannot be written to {file}: {cause}")))
    }
}

impl Mode {
    fn from_env() -> Mode {
        let Some(text) = settings::value("SHARP_COLL_STATS_DUMP_MODE") else { return Mode::Off };
        text.trim().parse().ok().and_then(Mode::of).unwrap_or_else(|| {
            log::warn(format_args!("SHARP_COLL_STATS_DUMP_MODE={text} is neither 0, 1 nor 2: no counters are written"));
            Mode::Off
        })
    }

    /// The mode with this number.
    pub fn of(number: u64) -> Option<Mode> {
        [Mode::Off, Mode::Each, Mode::Sum].into_iter().find(|mode| *mode as u64 == number)
    }
}

/// The names of the counters, in the order of `values`.
const NAMES: [&str; COUNTERS] = [
    "operations_datagram",
    "operations_stream",
    "datagrams_sent",
    "datagrams_received",
    "datagrams_rejected",
    "datagrams_repeated",
    "stream_bytes_sent",
    "stream_bytes_received",
    "retransmissions",
    "probes",
    "groups_created",
    "groups_freed",
    "epochs",
    "replayed",
    "operations_board",
];

fn values(counters: &Counters) -> [u64; COUNTERS] {
    [
        counters.operations_llt,
        counters.operations_sat,
        counters.datagrams_sent,
        counters.datagrams_received,
        counters.datagrams_rejected,
        counters.datagrams_repeated,
        counters.stream_bytes_sent,
        counters.stream_bytes_received,
        counters.retransmissions,
        counters.probes,
        counters.groups_created,
        counters.groups_freed,
        counters.epochs,
        counters.replayed,
        counters.operations_board,
    ]
}

/// The sums over all ranks; `gathered` has the values of one rank after the other.
fn sum(gathered: &[u8]) -> [u64; COUNTERS] {
    let mut total = [0u64; COUNTERS];
    for (at, count) in gathered.as_chunks().0.iter().enumerate() {
        let sum = &mut total[at % COUNTERS];
        *sum = sum.saturating_add(u64::from_le_bytes(*count));
    }
    total
}

/// One line for each counter, below a title.
fn page(whose: &str, counts: &[u64; COUNTERS]) -> String {
    let mut text = format!("# libsharp_coll counters of {whose}\n");
    for (name, count) in NAMES.iter().zip(counts) {
        let _ = writeln!(text, "{name} {count}");
    }
    text
}

const COUNTERS: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_summed_counter_by_counter() {
        let ranks = [[1u64; COUNTERS], [10; COUNTERS], [u64::MAX; COUNTERS]];
        let bytes = |ranks: &[[u64; COUNTERS]]| -> Vec<u8> {
            ranks.iter().flatten().flat_map(|count| count.to_le_bytes()).collect()
        };
        assert_eq!(sum(&bytes(&ranks[..2])), [11; COUNTERS]);
        assert_eq!(sum(&bytes(&ranks)), [u64::MAX; COUNTERS], "too many to count stays too many");
        let one = Counters { operations_llt: 3, groups_freed: 7, ..Counters::default() };
        let text = page("2 ranks, summed", &sum(&bytes(&[values(&one), values(&one)])));
        assert!(text.starts_with("# libsharp_coll counters of 2 ranks, summed\noperations_datagram 6\n"), "{text}");
        assert!(text.ends_with("groups_freed 14\nepochs 0\nreplayed 0\noperations_board 0\n"), "{text}");
    }

    #[test]
    fn modes_have_the_numbers_of_the_interface() {
        assert_eq!([0, 1, 2].map(Mode::of), [Some(Mode::Off), Some(Mode::Each), Some(Mode::Sum)]);
        assert_eq!(Mode::of(3), None);
    }
}
