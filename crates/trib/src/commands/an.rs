//! `trib an`: an aggregation node.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;

use super::manager_option::ManagerOption;
use crate::failure::Failure;
use crate::log;

/// Run an aggregation node, an inner node of the reduction trees
///
/// Runs until SIGTERM or SIGINT, and hosts the logical nodes that the manager gives it.
///
/// When it is ready it says so to a supervisor by the protocol of sd_notify(3), with its address in X_TRIB_ADDRESS.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Its name in the manager's topology
    #[arg(long)]
    name: String,
    #[command(flatten)]
    manager: ManagerOption,
    /// Where to take datagrams and streams; port 0 takes a free one. Children connect to this address
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Worker threads; a connection belongs to one of them for good
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
}

impl Arguments {
    /// Runs the node.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_daemon();
        let manager = self.manager.url()?;
        let Self { name, listen, workers, .. } = self;
        let options = trib_node::Options { name, manager, listen, workers: usize::from(workers) };
        trib_node::run(options).map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib an --name leaf0 --manager 'tls://am.cluster:7070?credentials=/etc/tributary' --listen 10.0.0.2:7071
  trib an --name root --listen 10.0.0.1:0 --workers 4        # with TRIB_MANAGER set";
