//! `trib sim`: the protocol core under simulated time, network and faults.

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;

/// Run the protocol in a simulator: a seed in, a verdict out
///
/// Each seed draws a tree, a network with losses and outages, a program of collectives for every
/// rank, and faults, and runs the same protocol core as the daemons and the client library.
/// Checkers that stand apart from the core decide. The run ends at the first failing seed, with the
/// command that replays it exactly.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How many seeds, counted from --seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// One JSON object per seed
    #[arg(long)]
    json: bool,
    /// One line per event
    #[arg(long)]
    trace: bool,
    /// Go on after a failing seed
    #[arg(long)]
    keep_going: bool,
}

impl Arguments {
    /// Runs the seeds.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let Self { seeds, seed, json, trace, keep_going } = self;
        let command = trib_sim::cli::Command { seed, seeds, json, trace, keep_going };
        Ok(if trib_sim::cli::run(&command, "trib sim") { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

const EXAMPLES: &str = "\
Examples:
  trib sim --seeds 500              # 500 different runs
  trib sim --seed 42 --trace        # one run, every frame and event of it
  trib sim --seeds 100000 --json --keep-going > verdicts.jsonl";
