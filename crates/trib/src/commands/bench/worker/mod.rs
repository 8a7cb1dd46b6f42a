//! `trib bench worker`: the native side of `trib bench compare`, one rank of it.
//!
//! It takes the same command line as the programs of the peers and prints the same line of JSON for
//! each cell. `cell` reads what to measure, `measure` does it, and `gate` lets the program that
//! started the ranks look at the fabric's counters in between.

mod gate;
mod measure;
mod usage;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use trib_client::{Context, DataType, Params, RankList, ReduceOp};
use trib_compare::Cell;

use self::gate::Gate;
use crate::commands::manager_option::ManagerOption;
use crate::failure::Failure;

/// Measure a list of cells as one rank of `trib bench compare`
///
/// A cell is COLLECTIVE:BYTES:MODE[:ITERATIONS]. Modes: sustained (operations back to back), single
/// (a pause and a barrier before each), flight (eight non-blocking operations at once). Rank and
/// size come from the environment, as the launcher sets it. Rank 0 prints one line of JSON for each
/// cell. The result is checked before and after the timed operations.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// What to measure
    #[arg(long, required = true, value_name = "CELL,...", value_delimiter = ',')]
    cells: Vec<Cell>,
    /// Time for the timed operations of one cell, seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.25", value_parser = super::seconds)]
    budget: Duration,
    /// Fewest operations of a cell, whatever they take
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=MOST_ITERATIONS))]
    min_iterations: u32,
    /// Make this many groups of all ranks, and spread operations in flight over them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    groups: u32,
    /// Say `ready` and `done` around each cell's operations and wait for a line on stdin each time
    #[arg(long)]
    gate: bool,
    #[command(flatten)]
    manager: ManagerOption,
}

impl Arguments {
    /// Measures all cells.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut params = Params::from_env().map_err(Failure::environment)?;
        params.manager.clone_from(&self.manager.manager);
        let context = Context::join(params).map_err(Failure::environment)?;
        let group = |tag: u32| context.create_group(RankList::world(context.size()), u64::from(tag));
        let groups = (0..self.groups).map(group).collect::<Result<Vec<_>, _>>().map_err(Failure::operation)?;
        let plan = measure::Plan {
            budget: self.budget,
            min_iterations: self.min_iterations,
            gate: Gate { is_used: self.gate, speaks: context.rank() == 0 },
        };
        let mut wrong = 0;
        for cell in &self.cells {
            let row = measure::measure(&context, &groups, cell, DataType::F32, ReduceOp::Sum, &plan)?;
            wrong += row.wrong;
            if context.rank() == 0 {
                let line = serde_json::to_string(&row).map_err(Failure::operation)?;
                say!("{line}")?;
            }
        }
        groups.into_iter().try_for_each(trib_client::Group::free).map_err(Failure::operation)?;
        context.finalize().map_err(Failure::operation)?;
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

const MOST_ITERATIONS: i64 = 20_000;
const EXAMPLES: &str = "\
Examples:
  trib run -n 8 -- trib bench worker --cells allreduce:1048576:sustained
  trib run -n 2 -- trib bench worker --cells barrier:0:single:100,bcast:64K:flight --budget 1";
