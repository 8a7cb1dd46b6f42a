//! `trib am`: the aggregation manager.

use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use trib_messages::hello::Role;
use trib_service::metrics::manager_page;
use trib_service::settings::{Daemon, ManagerSettings};

use super::daemon_options::{DaemonOptions, OfDaemon, Wanted};
use super::metrics;
use crate::failure::Failure;
use crate::log;

/// Run the aggregation manager, the one daemon that knows the fabric
///
/// Runs until SIGTERM or SIGINT. On SIGHUP it reads the list of withdrawn certificates again, and
/// renewed ones it takes by itself. Jobs that are already admitted go on while the manager is away.
///
/// When it is ready it says so to a supervisor by the protocol of sd_notify(3), with its address in
/// X_TRIB_ADDRESS.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    options: DaemonOptions<Manager>,
}

#[derive(Debug)]
struct Manager;

impl OfDaemon for Manager {
    const DAEMON: Daemon = Daemon::Manager;
}

impl Arguments {
    /// Runs the manager.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let settings: ManagerSettings = match self.options.settings()? {
            Wanted::Daemon(settings) => settings,
            Wanted::Nothing(code) => return Ok(code),
        };
        log::init_daemon(&settings.log, settings.log_file.as_deref())?;
        let exporter = metrics::exporter(settings.metrics)?;
        let ManagerSettings { topology, credentials, listen, state, tenants, constants, .. } = settings;
        let (began, folder) = (SystemTime::now(), credentials.clone());
        let watch = |observer: trib_manager::Observer| {
            let about = move || metrics::about(began, &folder, Role::Manager);
            metrics::serve(exporter, move || Some(manager_page(&observer.report()?, about())))
        };
        let options = trib_manager::Options { listen, topology, credentials, state, tenants, constants };
        trib_manager::run(&options, watch).map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib credentials /etc/tributary && trib credentials /etc/tributary --node leaf0,leaf1,root
  trib am --topology /etc/tributary/topology.toml --credentials /etc/tributary --listen 10.0.0.1:7070
  trib am --topology /etc/slurm/topology.conf --credentials . --state /var/lib/tributary/jobs
  trib am --topology fabric.toml --credentials . --tenants tenants.toml
  trib am --print-config > /etc/tributary/am.toml
  trib am --config /etc/tributary/am.toml";
