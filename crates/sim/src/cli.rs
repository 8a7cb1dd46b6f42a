//! The command line that `trib sim` and `trib-sim` share: runs seeds and reports.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::world::World;
use crate::{Verdict, run_seed};

/// What to run and how to report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// First seed.
    pub seed: u64,
    /// How many seeds from there on.
    pub seeds: u64,
    /// Whether to print one JSON object per seed on stdout instead of text.
    pub json: bool,
    /// Whether to print one line per event on stdout.
    pub trace: bool,
    /// Whether to go on after a failing seed.
    pub keep_going: bool,
}

/// Runs the seeds; true if all passed. Progress goes to stderr, verdicts to stdout. `program` is
/// how the caller is started, for the replay command of a failing seed.
pub fn run(command: &Command, program: &str) -> bool {
    let start = Instant::now();
    let mut told = start;
    let (mut frames, mut failed) = (0, 0u64);
    let mut ran = 0;
    for seed in command.seed..command.seed.saturating_add(command.seeds) {
        let verdict = judge(seed, command.trace, program);
        ran += 1;
        frames += verdict.as_ref().map_or(0, |v| v.frames);
        let passed = verdict.as_ref().is_some_and(Verdict::passed);
        report(command, seed, verdict.as_ref(), passed, program);
        if !passed {
            failed += 1;
            if !command.keep_going {
                break;
            }
        }
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            eprintln!("{ran} of {} seeds, {failed} failed", command.seeds);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!(
        "{ran} seeds from {}: {} passed, {failed} failed; {frames} frames in {seconds:.2} s, {:.0} seeds/s",
        command.seed,
        ran - failed,
        ran as f64 / seconds.max(1e-9)
    );
    failed == 0
}

/// The options as arguments, for a program without an argument parser of its own.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut command = Command { seed: 0, seeds: 1, json: false, trace: false, keep_going: false };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().ok_or(format!("{argument} needs a number"))?;
            text.parse().map_err(|_| format!("{argument}: `{text}` is not a number"))
        };
        match argument.as_str() {
            "--seed" => command.seed = number()?,
            "--seeds" => command.seeds = number()?,
            "--json" => command.json = true,
            "--trace" => command.trace = true,
            "--keep-going" => command.keep_going = true,
            other => {
                return Err(format!(
                    "unknown option `{other}`; known: --seeds N, --seed S, --json, --trace, --keep-going"
                ));
            }
        }
    }
    Ok(command)
}

/// The verdict of a seed; `None` if the core panicked, which has been reported on stderr by then.
fn judge(seed: u64, trace: bool, program: &str) -> Option<Verdict> {
    let verdict =
        catch_unwind(AssertUnwindSafe(|| if trace { World::random(seed, true).run() } else { run_seed(seed) }));
    if verdict.is_err() {
        eprintln!("seed {seed} panicked; replay: {program} --seed {seed} --trace");
    }
    verdict.ok()
}

fn report(command: &Command, seed: u64, verdict: Option<&Verdict>, passed: bool, program: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that has gone away ends the output, not the run.
    let _ = match verdict {
        Some(verdict) if command.json => writeln!(out, "{}", verdict.to_json()),
        Some(verdict) if !passed || command.seeds == 1 => writeln!(out, "{verdict}"),
        Some(_) => Ok(()),
        None if command.json => {
            writeln!(out, "{{\"seed\":{seed},\"passed\":false,\"checker\":\"panic\",\"what\":\"the core panicked\"}}")
        }
        None => writeln!(out, "seed {seed} FAILED: panic"),
    };
    if !passed && !command.json {
        let _ = writeln!(out, "replay: {program} --seed {seed} --trace");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_strangers_refused() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let command = parse(words("--seeds 500 --seed 7 --json")).unwrap();
        assert_eq!((command.seeds, command.seed, command.json), (500, 7, true));
        assert!(parse(words("--seeds")).is_err());
        assert!(parse(words("--seeds many")).is_err());
        assert!(parse(words("--speed 3")).is_err());
    }
}
