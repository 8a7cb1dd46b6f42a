//! What the programs of the comparison print: one line of JSON at a time.

use serde::{Deserialize, Serialize};

use crate::cell::Mode;

/// Times of single calls, microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latencies {
    /// Median.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Shortest.
    pub min: f64,
    /// Longest.
    pub max: f64,
}

/// One cell's outcome, printed by rank 0.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Name of the collective.
    pub collective: String,
    /// Bytes of the whole vector as measured.
    pub bytes: u64,
    /// Bytes that the cell asked for.
    pub asked_bytes: u64,
    /// How operations followed each other.
    pub mode: Mode,
    /// Timed rounds; in mode flight a round has eight operations.
    pub iterations: u64,
    /// Rounds between the two gates: the timed ones and one before them.
    pub operations: u64,
    /// Time of all timed rounds on the slowest rank.
    pub seconds: f64,
    /// Times of single rounds.
    pub latencies_us: Latencies,
    /// Processor time of all ranks during the timed rounds.
    pub cpu_ns: f64,
    /// Context switches of all ranks during the timed rounds.
    pub context_switches: f64,
    /// Wrong elements or bytes.
    pub wrong: u64,
    /// How Tributary moved the vector: llt or sat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl WorkerRow {
    /// Time of one round, microseconds: the mean where rounds follow each other, the median where
    /// each one is apart.
    pub fn latency_us(&self) -> f64 {
        match self.mode {
            Mode::Sustained | Mode::Flight => self.seconds * 1e6 / self.iterations.max(1) as f64,
            Mode::Single => self.latencies_us.median,
        }
    }
}

/// A line that was parsed.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// A rank waits at a gate.
    Gate { event: Event },
    /// A cell that this system does not have.
    Unsupported { unsupported: String },
    /// A cell's outcome.
    Row(WorkerRow),
}

/// Which gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Event {
    /// The gate before the operations of a cell.
    Ready,
    /// The gate after them.
    Done,
}

impl Line {
    /// Reads a line; `None` if it is something else that a program printed.
    pub(crate) fn read(text: &str) -> Option<Line> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row as a program prints it.
    pub(crate) fn row(collective: &str, bytes: u64, latency_us: f64) -> WorkerRow {
        WorkerRow {
            collective: collective.to_owned(),
            bytes,
            asked_bytes: bytes,
            mode: Mode::Sustained,
            iterations: 10,
            operations: 11,
            seconds: latency_us * 10.0 / 1e6,
            latencies_us: Latencies {
                median: latency_us,
                p99: latency_us * 1.5,
                min: latency_us,
                max: latency_us * 2.0,
            },
            cpu_ns: 1e6,
            context_switches: 20.0,
            wrong: 0,
            path: None,
        }
    }

    #[test]
    fn lines_of_every_kind_are_told_apart() {
        assert_eq!(Line::read(r#"{"event":"ready"}"#), Some(Line::Gate { event: Event::Ready }));
        let text = serde_json::to_string(&row("allreduce", 64, 100.0)).unwrap();
        assert_eq!(Line::read(&text), Some(Line::Row(row("allreduce", 64, 100.0))));
        let missing = r#"{"collective":"reduce_scatter","bytes":4,"mode":"single","unsupported":"none"}"#;
        assert!(matches!(Line::read(missing), Some(Line::Unsupported { .. })));
        for noise in ["", "warning: something", "{}", r#"{"event":"later"}"#] {
            assert_eq!(Line::read(noise), None, "{noise}");
        }
    }

    #[test]
    fn a_single_call_counts_by_its_median() {
        let mut row = row("barrier", 0, 50.0);
        assert!((row.latency_us() - 50.0).abs() < 1e-9);
        row.mode = Mode::Single;
        row.latencies_us.median = 70.0;
        assert!((row.latency_us() - 70.0).abs() < 1e-9);
    }
}
