//! `trib lab mpirun`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use trib_lab::run::{End, run};
use trib_lab::{Map, Mpi, MpiLaunch, Placement};

use super::{Which, code_of, failure, timed_out};
use crate::commands::units::some_seconds;
use crate::failure::Failure;

/// Start the ranks of an MPI program on the hosts
///
/// The ranks see hosts as an MPI does: names, networks and memory of their own. TRIB_MANAGER and
/// TRIB_HOST are set. The exit code is that of the MPI's launcher, or 124 after the time limit,
/// when everything is killed that the run started.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Which MPI
    #[arg(long, value_name = "MPI", default_value = "openmpi")]
    mpi: Kind,
    /// How many ranks [default: as many as --ranks-per-host on every host]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: Option<u32>,
    /// Ranks of one host, where there are more than hosts [default: as few as go; with --ranks
    /// unset, 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks_per_host: Option<u32>,
    /// Which ranks share a host: with `cyclic` hosts get one in turn, rank 0 on h0 and rank 1 on
    /// h1; with `block` neighbours in rank, ranks 0 and 1 on h0
    #[arg(long, value_name = "WAY", default_value = "cyclic")]
    placement: Way,
    /// In which order hosts get ranks: h0, h1, h2, ... or leaf by leaf in turn, h0, h4, h1, h5, ...
    #[arg(long, value_name = "ORDER", default_value = "by-leaf")]
    map: Order,
    /// Set a variable for the ranks, to our own value if none is given; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A parameter of Open MPI, put together with the laboratory's own (docs/lab.md); may be
    /// repeated
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true)]
    mca: Vec<String>,
    /// A word for the MPI's own command line; may be repeated
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    mpi_option: Vec<String>,
    /// Kill everything after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds)]
    timeout: Option<Duration>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    #[value(name = "openmpi")]
    OpenMpi,
    Mpich,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Cyclic,
    Block,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    ByLeaf,
    Interleaved,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if !self.mca.is_empty() && !matches!(self.mpi, Kind::OpenMpi) {
            return Err(Failure::Usage("--mca: only Open MPI has such parameters".to_owned()));
        }
        let lab = self.which.attach()?;
        let program = self.program[0].clone();
        // An MPI hands on only the variables that it is told.
        let manager = ("TRIB_MANAGER".to_owned(), lab.manager().to_owned());
        let env = self.env.iter().map(|text| variable(text));
        let launch = MpiLaunch {
            mpi: match self.mpi {
                Kind::OpenMpi => Mpi::OpenMpi,
                Kind::Mpich => Mpi::Mpich,
            },
            ranks: self.ranks.unwrap_or_else(|| u32::from(lab.hosts()) * self.ranks_per_host.unwrap_or(1)),
            ranks_per_host: self.ranks_per_host,
            placement: match self.placement {
                Way::Cyclic => Placement::Cyclic,
                Way::Block => Placement::Block,
            },
            map: match self.map {
                Order::ByLeaf => Map::ByLeaf,
                Order::Interleaved => Map::Interleaved,
            },
            env: std::iter::once(Ok(manager)).chain(env).collect::<Result<_, _>>()?,
            options: self
                .mca
                .chunks(2)
                .flat_map(|pair| ["--mca", &pair[0], &pair[1]].map(str::to_owned))
                .chain(self.mpi_option)
                .collect(),
            program: self.program,
        };
        let mut command = lab.mpirun(&launch).map_err(failure)?;
        match run(&mut command, self.timeout).map_err(Failure::environment)? {
            End::Own(status) => Ok(code_of(status)),
            End::TimedOut => Ok(timed_out(&program, self.timeout)),
        }
    }
}

fn variable(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => match std::env::var(text) {
            Ok(value) => Ok((text.to_owned(), value)),
            Err(error) => Err(Failure::Usage(format!("--env {text}: {error}"))),
        },
    }
}

const EXAMPLES: &str = "\
Examples:
  trib lab mpirun -- ./program
  trib lab mpirun --mpi mpich --map interleaved --timeout 60 -- python3 train.py
  trib lab mpirun --ranks-per-host 2 --placement block -- ./program
  trib lab mpirun --env LD_PRELOAD=$PWD/libtrib_mpi.so --mca coll_base_verbose 10 -- ./program
  trib lab mpirun --mpi-option --tag-output -- ./program";
