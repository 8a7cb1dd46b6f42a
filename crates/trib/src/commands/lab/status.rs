//! `trib lab status`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use trib_lab::fault::Fault;
use trib_lab::topology::Plan;
use trib_lab::{Lab, Topology};

use super::{Which, failure};
use crate::failure::Failure;
use crate::stdout;
use crate::table::Table;

/// Show a laboratory: its shape, links, daemons and faults
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let lab = self.which.attach()?;
        let text = if self.json { json_of(&lab)? } else { text_of(&lab)? };
        stdout::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn json_of(lab: &Lab) -> Result<String, Failure> {
    let faults = lab.faults().map_err(failure)?;
    let plan = lab.topology().plan();
    let links = plan.iter().flat_map(|plan| &plan.links).map(|link| {
        json!({ "link": link.lower, "above": link.upper, "rate": link.rate, "state": state(&link.lower, &faults) })
    });
    let pids = lab.daemons();
    let daemons = lab.daemon_states().map_err(failure)?;
    let daemons = daemons.iter().map(|(name, state)| {
        let pid = pids.iter().find_map(|(daemon, pid)| (daemon == name).then_some(pid));
        json!({ "name": name, "state": state, "pid": pid, "log": lab.log(name) })
    });
    let report = json!({
        "name": lab.name().as_str(),
        "folder": lab.folder(),
        "manager": lab.manager(),
        "topology": lab.topology(),
        "places": plan.as_ref().map(places),
        "links": links.collect::<Vec<_>>(),
        "daemons": daemons.collect::<Vec<_>>(),
        "faults": faults,
    });
    Ok(format!("{report:#}\n"))
}

fn text_of(lab: &Lab) -> Result<String, Failure> {
    let faults = lab.faults().map_err(failure)?;
    let mut text = format!("Laboratory {}: {}\nmanager {}\n", lab.name().as_str(), lab.topology(), lab.manager());
    if let Topology::FatTree(tree) = lab.topology() {
        let mut table = Table::new(["LINK", "ABOVE", "RATE", "STATE"]);
        for link in tree.plan().links {
            table.row([&link.lower, &link.upper, &link.rate.to_string(), state(&link.lower, &faults)]);
        }
        write!(text, "\n{table}").expect("writing to memory cannot fail");
    }
    let pids = lab.daemons();
    let mut table = Table::new(["DAEMON", "PID", "STATE"]);
    for (name, state) in lab.daemon_states().map_err(failure)? {
        let pid =
            pids.iter().find(|(daemon, _)| *daemon == name).map_or_else(|| "-".to_owned(), |(_, pid)| pid.to_string());
        table.row([name, pid, format!("{state:?}").to_lowercase()]);
    }
    write!(text, "\n{table}").expect("writing to memory cannot fail");
    for fault in &faults {
        writeln!(text, "fault: {fault}").expect("writing to memory cannot fail");
    }
    Ok(text)
}

fn places(plan: &Plan) -> serde_json::Value {
    let places = plan.places.iter();
    places.map(|place| json!({ "name": place.name, "address": place.address.to_string() })).collect()
}

fn state(link: &str, faults: &[Fault]) -> &'static str {
    let is_cut = |fault: &Fault| matches!(fault, Fault::Cut { link: cut } if cut == link);
    if faults.iter().any(is_cut) { "cut" } else { "up" }
}

const EXAMPLES: &str = "\
Examples:
  trib lab status
  trib lab status --json | jq '.daemons[] | select(.state != \"running\")'";
