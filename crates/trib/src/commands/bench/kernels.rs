//! `trib bench kernels`: the sums alone, beside the speed of the memory.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use trib_client::{DataType, Scalar};
use trib_reduce::Path;
use trib_reduce::bandwidth::{Options, Report, Residence, Row, measure};

use crate::failure::Failure;

/// Measure the reduction kernels against the bandwidth of the memory, with those of fixed, exact
/// and int8 sums of float32
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Time for all measurements together, seconds
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = super::seconds)]
    budget: Duration,
    /// Types of elements: numbers, pairs as VALUE:INDEX; without it all
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', value_parser = super::dtype)]
    dtype: Vec<DataType>,
    /// Compare every instruction set that this processor has, not just the best
    #[arg(long)]
    all_paths: bool,
    /// Write the table to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Arguments {
    /// Measures and writes the table.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut options = Options { budget: self.budget, ..Options::default() };
        if self.all_paths {
            options.paths = Path::ALL.to_vec();
        }
        if !self.dtype.is_empty() {
            options.types = self.dtype;
        }
        // Steps of sums are not of a type of the table.
        let with_sums = options.types.contains(&DataType::F32);
        if with_sums {
            options.budget = options.budget * 3 / 4;
        }
        let mut report = table(&measure(&options));
        if with_sums {
            report.push_str(&super::kernels_of_sums::table(self.budget / 4, &options.paths));
        }
        match self.out {
            None => crate::stdout::print(&report)?,
            Some(path) => std::fs::write(&path, report)
                .map_err(|cause| Failure::Environment(format!("cannot write {}: {cause}", path.display())))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The table of the best instruction set, measured within `budget`. It has all numbers, and each of
/// them with an index of 32 bits.
pub(super) fn measured(budget: Duration) -> String {
    let types = DataType::ALL.iter().copied().filter(|dtype| matches!(dtype.index(), None | Some(Scalar::I32)));
    table(&measure(&Options { budget, types: types.collect(), ..Options::default() }))
}

/// The report as Markdown tables with one row for each type, operator and path, and the figures of
/// cache and memory side by side.
fn table(report: &Report) -> String {
    let mut text =
        format!("Rates in 10^9 bytes read and written per second; {} MiB vectors.\n\n", report.memory_bytes >> 20);
    text.push_str("| where | copy | read |\n|---|---:|---:|\n");
    for base in &report.baselines {
        let _ = writeln!(text, "| {} | {:.1} | {:.1} |", base.residence, base.copy_gb_per_s, base.read_gb_per_s);
    }
    text.push_str("\n| type | operator | instructions |");
    Residence::ALL.iter().for_each(|residence| text.push_str(&format!(" {residence} | of copy |")));
    text.push_str("\n|---|---|---|---:|---:|---:|---:|\n");
    for row in report.rows.iter().filter(|row| row.residence == Residence::ALL[0]) {
        let _ = write!(text, "| {} | {} | {} |", row.dtype, row.op, row.path);
        let same = |other: &&Row| (other.dtype, other.op, other.path) == (row.dtype, row.op, row.path);
        for rate in report.rows.iter().filter(same) {
            let _ = write!(text, " {:.1} | {:.0} % |", rate.gb_per_s, 100.0 * rate.share_of_memcpy);
        }
        text.push('\n');
    }
    text
}

const EXAMPLES: &str = "\
Examples:
  trib bench kernels
  trib bench kernels --dtype float64,float64:int32
  trib bench kernels --all-paths --budget 30 --out kernels.md";
