//! `trib am`: the aggregation manager.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use trib_control::clock::{date, unix_s};
use trib_manager::Checked;
use trib_messages::hello::Role;
use trib_service::metrics::manager_page;
use trib_service::settings::{Daemon, ManagerSettings};

use super::daemon_options::{DaemonOptions, OfDaemon, Wanted};
use super::metrics;
use crate::failure::Failure;
use crate::{log, stdout};

/// Run the aggregation manager, the one daemon that knows the fabric
///
/// Runs until SIGTERM or SIGINT. On SIGHUP it reads the list of withdrawn certificates again, and
/// renewed ones it takes by itself. Topology, tenants and settings are read when it starts: --check
/// tells what is wrong with them before it is restarted. Jobs that are already admitted go on while
/// the manager is away.
///
/// When it is ready it says so to a supervisor by the protocol of sd_notify(3), with its address in
/// X_TRIB_ADDRESS.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    options: DaemonOptions<Manager>,
    /// Read settings, topology, tenants and credentials as for a start, say what is wrong with
    /// them, and do nothing else; also beside a manager that runs
    #[arg(long, conflicts_with = "print-config")]
    check: bool,
    /// Print what --check has found in order as JSON
    #[arg(long, requires = "check")]
    json: bool,
}

#[derive(Debug)]
struct Manager;

impl OfDaemon for Manager {
    const DAEMON: Daemon = Daemon::Manager;
}

impl Arguments {
    /// Runs the manager.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (settings, notices): (ManagerSettings, _) = match self.options.settings()? {
            Wanted::Daemon { settings, notices } => (settings, notices),
            Wanted::Nothing(code) => return Ok(code),
        };
        let ManagerSettings { topology, credentials, listen, state, tenants, constants, .. } = settings;
        let options = trib_manager::Options { listen, topology, credentials, state, tenants, constants };
        if self.check {
            log::init_tool();
            notices.iter().for_each(|line| tracing::warn!("{line}"));
            let checked = trib_manager::check(&options).map_err(Failure::environment)?;
            stdout::print(&if self.json { value(&checked) } else { summary(&checked, unix_s()) })?;
            return Ok(ExitCode::SUCCESS);
        }
        log::init_daemon(&settings.log, settings.log_file.as_deref())?;
        notices.iter().for_each(|line| tracing::warn!("{line}"));
        let exporter = metrics::exporter(settings.metrics)?;
        let itself = metrics::Itself::new(options.credentials.clone(), Role::Manager);
        let watch = |observer: trib_manager::Observer| {
            metrics::serve(exporter, move || Some(manager_page(&observer.report()?, itself.about())))
        };
        trib_manager::run(&options, watch).map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is in order, in a line, and what is to be done soon, or is late.
fn summary(checked: &Checked, now: u64) -> String {
    let Checked { fabric, nodes, tenants, withdrawn, certificate } = checked;
    let tenants = tenants.map_or_else(String::new, |tenants| format!(", {tenants} tenants"));
    let read = format!("fabric {fabric}, {nodes} nodes{tenants}, {withdrawn} withdrawn certificates");
    let until = date(certificate.ends);
    match certificate.seconds_left(now) {
        ..=0 => format!(
            "a manager would start, but refuse everybody: its own certificate ended on {until}; `trib credentials renew` \
             makes another\nthe rest is in order: {read}\n"
        ),
        _ if certificate.ends_soon(now) => format!(
            "all is in order: {read}; the manager's own certificate ends on {until}: `trib credentials renew` makes \
             another\n"
        ),
        _ => format!("all is in order: {read}, the manager's own until {until}\n"),
    }
}

fn value(checked: &Checked) -> String {
    let Checked { fabric, nodes, tenants, withdrawn, certificate } = checked;
    let value = json!({
        "fabric": fabric,
        "nodes": nodes,
        "tenants": tenants,
        "withdrawn": withdrawn,
        "certificate_ends": certificate.ends,
    });
    format!("{value:#}\n")
}

const EXAMPLES: &str = "\
Examples:
  trib credentials /etc/tributary && trib credentials /etc/tributary --node leaf0,leaf1,root
  trib am --topology /etc/tributary/topology.toml --credentials /etc/tributary --listen 10.0.0.1:7070
  trib am --topology /etc/slurm/topology.conf --credentials . --state /var/lib/tributary/jobs
  trib am --topology fabric.toml --credentials . --tenants tenants.toml
  trib am --print-config > /etc/tributary/am.toml
  trib am --config /etc/tributary/am.toml
  runuser -u tributary-am -- trib am --config /etc/tributary/am.toml --check && systemctl restart tributary-am";

#[cfg(test)]
mod tests {
    use trib_control::Certificate;

    use super::*;

    #[test]
    fn a_certificate_that_has_ended_is_not_called_in_order() {
        const DAY: u64 = 86_400;
        let certificate =
            Certificate { holder: "manager".parse().unwrap(), serial: "01".parse().unwrap(), ends: 1000 * DAY };
        let checked = Checked { fabric: "f".into(), nodes: 3, tenants: None, withdrawn: 0, certificate };
        let said = |now| summary(&checked, now);
        assert!(said(900 * DAY).starts_with("all is in order: fabric f, 3 nodes, 0 withdrawn"), "{}", said(900 * DAY));
        assert!(!said(900 * DAY).contains("renew"));
        assert!(said(990 * DAY).starts_with("all is in order") && said(990 * DAY).contains("renew"));
        assert!(said(1001 * DAY).starts_with("a manager would start, but refuse everybody"));
    }
}
