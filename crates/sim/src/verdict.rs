//! The outcome of a run.

use core::fmt;

use trib_proto::Nanos;

use crate::checkers::{Ending, Failure};

/// The outcome of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// What went wrong, if something did.
    pub failure: Option<Failure>,
    /// The options that the seed drew.
    pub options: String,
    /// Hash of the run's trace: equal for equal runs.
    pub hash: u64,
    /// Events handled or scheduled.
    pub events: u64,
    /// Frames sent.
    pub frames: u64,
    /// Simulated time at the end.
    pub ended_at: Nanos,
    /// How each operation ended at its members.
    pub endings: Vec<Vec<Ending>>,
    /// What the run has met of that which is to be met often.
    pub met: Vec<&'static str>,
}

impl Verdict {
    /// Whether all checkers were content.
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }

    /// One JSON object on one line.
    pub fn to_json(&self) -> String {
        let (checker, what) = match &self.failure {
            None => ("null".to_string(), "null".to_string()),
            Some(failure) => (quoted(failure.checker), quoted(&failure.what)),
        };
        format!(
            "{{\"seed\":{},\"passed\":{},\"checker\":{checker},\"what\":{what},\"hash\":\"{:016x}\",\"events\":{},\"frames\":{},\"simulated_ns\":{},\"met\":[{}]}}",
            self.seed,
            self.passed(),
            self.hash,
            self.events,
            self.frames,
            self.ended_at.0,
            self.met.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",")
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            None => write!(
                f,
                "seed {} passed: {} frames, {} events, {} s simulated, trace {:016x}",
                self.seed, self.frames, self.events, self.ended_at, self.hash
            ),
            Some(failure) => write!(f, "seed {} FAILED: {failure}\n{}", self.seed, self.options),
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
