//! `trib am`: the aggregation manager.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::log;

/// Run the aggregation manager, the one daemon that knows the fabric
///
/// Runs until SIGTERM or SIGINT. Jobs that are already admitted go on while the manager is away.
///
/// When it is ready it says so to a supervisor by the protocol of sd_notify(3), with its address in X_TRIB_ADDRESS.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The fabric: TOML, Slurm's topology.conf, or what ibnetdiscover prints
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// The fabric's keys and certificates, from `trib credentials`
    #[arg(long, value_name = "DIR")]
    credentials: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:7070")]
    listen: SocketAddr,
    /// Keep the admitted jobs in this file: a manager that is killed and started again knows them
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

impl Arguments {
    /// Runs the manager.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_daemon();
        let Self { topology, credentials, listen, state } = self;
        trib_manager::run(&trib_manager::Options { listen, topology, credentials, state })
            .map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib credentials /etc/tributary
  trib am --topology /etc/tributary/topology.toml --credentials /etc/tributary --listen 10.0.0.1:7070
  trib am --topology /etc/slurm/topology.conf --credentials . --state /var/lib/tributary/jobs";
