//! `trib an`: an aggregation node.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use trib_control::node_folder;
use trib_messages::hello::Role;
use trib_service::metrics::node_page;
use trib_service::settings::{Daemon, NodeSettings};

use super::daemon_options::{DaemonOptions, OfDaemon, Wanted};
use super::metrics;
use crate::failure::Failure;
use crate::log;

/// Run an aggregation node, an inner node of the reduction trees
///
/// Runs until SIGTERM or SIGINT, and hosts the logical nodes that the manager gives it.
///
/// When it is ready it says so to a supervisor by the protocol of sd_notify(3), with its address in
/// X_TRIB_ADDRESS.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    options: DaemonOptions<Node>,
}

#[derive(Debug)]
struct Node;

impl OfDaemon for Node {
    const DAEMON: Daemon = Daemon::Node;
}

impl Arguments {
    /// Runs the node.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (settings, notices): (NodeSettings, _) = match self.options.settings()? {
            Wanted::Daemon { settings, notices } => (settings, notices),
            Wanted::Nothing(code) => return Ok(code),
        };
        log::init_daemon(&settings.log, settings.log_file.as_deref())?;
        notices.iter().for_each(|line| tracing::warn!("{line}"));
        let exporter = metrics::exporter(settings.metrics)?;
        let NodeSettings { name, manager, listen, workers, memory, .. } = settings;
        let itself = metrics::Itself::new(node_folder(manager.credentials(), &name), Role::Node);
        let watch = |observer: trib_node::Observer| {
            metrics::serve(exporter, move || Some(node_page(&observer.report(ANSWER)?, itself.about())))
        };
        let options = trib_node::Options { name, manager, listen, workers, memory };
        trib_node::run(options, watch).map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// How long a scrape waits for the threads of the node.
const ANSWER: Duration = Duration::from_secs(1);
const EXAMPLES: &str = "\
Examples:
  trib an --name leaf0 --manager 'tls://am.cluster:7070?credentials=/etc/tributary/nodes/leaf0' --listen 10.0.0.2:7071
  trib an --name leaf1 --listen 10.0.0.3:7071,10.1.0.3:7071  # two ports, `addresses` in the topology
  trib an --name root --listen 10.0.0.1:0 --workers 4        # with TRIB_MANAGER set
  trib an --print-config > /etc/tributary/an.toml
  trib an --config /etc/tributary/an.toml";
