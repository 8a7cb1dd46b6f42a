//! `trib bench`: how long collectives take, every element of every result checked.
//!
//! Map: `values` (vectors whose results are known exactly), `work` (one operation of the benchmark,
//! its buffers and its expected results), `measure` (timing one size on all ranks), `report` (table
//! and JSON), `late` (waiting for a rank that comes late), `kernels` (the sums alone, next to the
//! speed of memory), `compare` (with peers), `worker` and `pingpong` (what the comparison runs),
//! `jobs` and `admission` (what the manager and its nodes can take).

/// Prints a line through [`crate::stdout::print`].
macro_rules! say {
    ($($text:tt)*) => {
        crate::stdout::print(&format!("{}\n", format_args!($($text)*)))
    };
}

mod admission;
mod compare;
mod jobs;
mod kernels;
mod kernels_of_sums;
mod late;
mod measure;
mod pingpong;
mod report;
mod values;
mod work;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use trib_client::{Collective, Context, DataType, Params, RankList, ReduceOp, Scalar};

use super::manager_option::ManagerOption;
use super::units::seconds;
use crate::failure::Failure;
use crate::launch::{Job, RANKS_MAX, Verdict};
use crate::log;
use measure::Plan;
use report::Report;

/// Measure collectives, or the reduction kernels alone
///
/// Runs as the program of `trib run`, srun, mpirun or another launcher, or starts its own ranks
/// with --ranks. Every element of every result is checked, outside the timed part; inputs change
/// from one iteration to the next. A wrong element ends the benchmark with an error.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    collectives: Collectives,
}

#[derive(Subcommand, Debug)]
enum What {
    Admission(admission::Arguments),
    Compare(Box<compare::Arguments>),
    Jobs(jobs::Arguments),
    Kernels(kernels::Arguments),
    Pingpong(pingpong::Arguments),
    Worker(worker::Arguments),
}

#[derive(Args, Debug)]
struct Collectives {
    /// Start this many ranks here; without it the environment says which rank this is
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: Option<u32>,
    /// Host names that the ranks report, as for `trib run`
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "ranks")]
    hosts: Vec<String>,
    /// What to measure: barrier, allreduce, reduce, bcast, reduce_scatter, allgather, or all
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',', default_value = "allreduce", value_parser = collective)]
    collective: Vec<Which>,
    /// Smallest vector, bytes; K and M are 2^10 and 2^20. For reduce_scatter and allgather the
    /// whole vector counts
    #[arg(long, value_name = "BYTES", default_value = "4", value_parser = bytes)]
    min: u64,
    /// Largest vector, bytes
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = bytes)]
    max: u64,
    /// Factor from one size to the next
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..))]
    factor: u64,
    /// Iterations of every size; without it as many as fit into --budget, 3 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: Option<u32>,
    /// Time for the timed operations of one size, seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.3", value_parser = seconds)]
    budget: Duration,
    /// Type of the elements; for maxloc and minloc VALUE:INDEX, as float64:int32
    #[arg(long, value_name = "TYPE", default_value = "float32", value_parser = dtype)]
    dtype: DataType,
    /// Operator
    #[arg(long, value_name = "OP", default_value = "sum", value_parser = operator)]
    op: ReduceOp,
    /// Instead of the table: the last rank comes this many seconds late to one allreduce; shows
    /// what waiting costs the others
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait_late: Option<Duration>,
    /// One JSON document instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: ManagerOption,
}

/// A collective, or all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    One(Collective),
    All,
}

impl Arguments {
    /// Runs the benchmark that was asked for.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        match self.what {
            Some(What::Admission(arguments)) => arguments.run(),
            Some(What::Compare(arguments)) => arguments.run(),
            Some(What::Jobs(arguments)) => arguments.run(),
            Some(What::Kernels(arguments)) => arguments.run(),
            Some(What::Pingpong(arguments)) => arguments.run(),
            Some(What::Worker(arguments)) => arguments.run(),
            None => self.collectives.run(),
        }
    }
}

impl Collectives {
    fn run(self) -> Result<ExitCode, Failure> {
        if self.min > self.max {
            return Err(Failure::Usage(format!("--min {} is more than --max {}", self.min, self.max)));
        }
        if let Some(reason) = self.op.refusal(self.dtype.class()) {
            return Err(Failure::Usage(format!("the tree does not reduce {} with {}: {reason}", self.dtype, self.op)));
        }
        match self.ranks {
            Some(ranks) => self.start(ranks),
            None => self.be_a_rank().map(|()| ExitCode::SUCCESS),
        }
    }

    /// Starts this very command on every rank, without the options that only the starter needs.
    fn start(self, ranks: u32) -> Result<ExitCode, Failure> {
        let itself = std::env::current_exe().map_err(Failure::environment)?;
        let job = Job {
            ranks,
            label: false,
            grace: Duration::from_secs(5),
            program: std::iter::once(itself.into()).chain(self.rank_arguments()).collect(),
            wait: None,
            manager: self.manager.manager,
            hosts: self.hosts,
        };
        Ok(match job.run()? {
            Verdict::Succeeded => ExitCode::SUCCESS,
            Verdict::Failed(code) => ExitCode::from(code),
        })
    }

    fn rank_arguments(&self) -> Vec<OsString> {
        let names: Vec<&str> = self.collectives().iter().map(|collective| collective.name()).collect();
        let mut arguments = vec![
            "bench".to_owned(),
            format!("--collective={}", names.join(",")),
            format!("--min={}", self.min),
            format!("--max={}", self.max),
            format!("--factor={}", self.factor),
            format!("--budget={}", self.budget.as_secs_f64()),
            format!("--dtype={}", self.dtype),
            format!("--op={}", self.op),
        ];
        arguments.extend(self.iterations.map(|count| format!("--iterations={count}")));
        arguments.extend(self.wait_late.map(|span| format!("--wait-late={}", span.as_secs_f64())));
        arguments.extend(self.json.then(|| "--json".to_owned()));
        arguments.into_iter().map(OsString::from).collect()
    }

    fn be_a_rank(&self) -> Result<(), Failure> {
        let mut params = Params::from_env().map_err(Failure::environment)?;
        params.manager.clone_from(&self.manager.manager);
        let context = Context::join(params).map_err(Failure::environment)?;
        let world = context.create_group(RankList::world(context.size()), 0).map_err(Failure::operation)?;
        match self.wait_late {
            Some(span) => late::run(&context, &world, span, self.json)?,
            None => self.measure(&context, &world)?,
        }
        world.free().map_err(Failure::operation)?;
        context.finalize().map_err(Failure::operation)
    }

    fn measure(&self, context: &Context, world: &trib_client::Group) -> Result<(), Failure> {
        let mut report = Report::new(context, self.dtype, self.op, self.json);
        let plan = Plan { iterations: self.iterations, budget: self.budget };
        for collective in self.collectives() {
            report.begin(collective)?;
            for size in self.sizes(collective) {
                let work = work::Work::new(collective, self.dtype, self.op, size, world.rank(), world.size());
                let row = measure::measure(context, world, work, &plan)?;
                report.row(row)?;
            }
        }
        report.end()
    }

    fn collectives(&self) -> Vec<Collective> {
        let mut chosen = Vec::new();
        for which in &self.collective {
            match which {
                Which::One(collective) => chosen.push(*collective),
                Which::All => chosen.extend(Collective::ALL),
            }
        }
        chosen
    }

    fn sizes(&self, collective: Collective) -> Vec<u64> {
        if collective == Collective::Barrier {
            return vec![0];
        }
        let next = |size: &u64| Some(if *size == 0 { 1 } else { size.checked_mul(self.factor)? });
        std::iter::successors(Some(self.min), next).take_while(|size| *size <= self.max).collect()
    }
}

fn collective(text: &str) -> Result<Which, String> {
    if text == "all" {
        return Ok(Which::All);
    }
    let name = text.replace('-', "_");
    Collective::from_name(&name).map(Which::One).ok_or_else(|| one_of(Collective::ALL.iter().map(|c| c.name())))
}

fn dtype(text: &str) -> Result<DataType, String> {
    DataType::from_name(text).ok_or_else(|| {
        let numbers = one_of(Scalar::ALL.iter().map(|number| number.name()));
        format!("{numbers}, or two of them with a colon between: a value and its index, an integer")
    })
}

fn operator(text: &str) -> Result<ReduceOp, String> {
    ReduceOp::from_name(text).ok_or_else(|| one_of(ReduceOp::ALL.iter().map(|op| op.name())))
}

fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("one of {}", names.collect::<Vec<_>>().join(", "))
}

/// Reads a number of bytes as options take it.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "a number of bytes, perhaps with K, M or G".to_owned())?;
    number.checked_mul(factor).filter(|bytes| *bytes <= SIZE_MAX).ok_or_else(|| "at most 64 GiB".to_owned())
}

const SIZE_MAX: u64 = 64 << 30;
const EXAMPLES: &str = "\
Examples:
  trib bench --ranks 8
  trib bench --ranks 8 --collective all --max 1M --json
  trib run -n 8 --hosts h0,h1 -- trib bench --collective reduce --dtype float64 --op max
  trib bench --ranks 8 --dtype float64:int32 --op maxloc
  srun -n 32 trib bench --max 1M
  trib bench --ranks 4 --wait-late 120
  trib bench kernels";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_suffix() {
        assert_eq!(bytes("4"), Ok(4));
        assert_eq!(bytes("16M"), Ok(16 << 20));
        assert_eq!(bytes("2k"), Ok(2048));
        for nonsense in ["", "M", "4X", "-1", "65G", "99999999999999999999"] {
            assert!(bytes(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn names_are_those_of_the_tables() {
        assert_eq!(collective("reduce-scatter"), Ok(Which::One(Collective::ReduceScatter)));
        assert_eq!(collective("all"), Ok(Which::All));
        assert!(collective("gather").unwrap_err().contains("allgather"));
        assert!(dtype("float").unwrap_err().contains("float32"));
        assert_eq!(dtype("float64:int32").map(|pair| pair.size()), Ok(12));
        assert!(dtype("float64:float32").unwrap_err().contains("an integer"));
    }
}
