//! `trib bench kernels`: the sums alone, next to what the memory does.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use trib_reduce::Path;
use trib_reduce::bandwidth::{Options, Report, measure};

use crate::failure::Failure;

/// Measure the reduction kernels against the bandwidth of the memory
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Time for all measurements together, seconds
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = super::seconds)]
    budget: Duration,
    /// Compare every instruction set that this processor has, not just the best
    #[arg(long)]
    all_paths: bool,
    /// Write the table to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Arguments {
    /// Measures and writes.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut options = Options { budget: self.budget, ..Options::default() };
        if self.all_paths {
            options.paths = Path::ALL.to_vec();
        }
        let report = table(&measure(&options));
        match self.output {
            None => print!("{report}"),
            Some(path) => std::fs::write(&path, report)
                .map_err(|cause| Failure::Environment(format!("cannot write {}: {cause}", path.display())))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The table of the best instruction set, measured within `budget`.
pub(super) fn measured(budget: Duration) -> String {
    table(&measure(&Options { budget, ..Options::default() }))
}

/// The report as a Markdown table: one row per type, operator and path.
fn table(report: &Report) -> String {
    let mut text =
        format!("Rates in 10^9 bytes read and written per second; {} MiB vectors.\n\n", report.memory_bytes >> 20);
    text.push_str("| where | copy | read |\n|---|---:|---:|\n");
    for base in &report.baselines {
        let _ = writeln!(text, "| {} | {:.1} | {:.1} |", base.residence, base.copy_gb_per_s, base.read_gb_per_s);
    }
    text.push_str("\n| type | operator | instructions | where | rate | share of copy |\n|---|---|---|---|---:|---:|\n");
    for row in &report.rows {
        let share = 100.0 * row.share_of_memcpy;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.1} | {share:.0} % |",
            row.dtype, row.op, row.path, row.residence, row.gb_per_s
        );
    }
    text
}

const EXAMPLES: &str = "\
Examples:
  trib bench kernels
  trib bench kernels --all-paths --budget 30 --output kernels.md";
