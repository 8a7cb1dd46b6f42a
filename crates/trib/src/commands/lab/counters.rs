//! `trib lab counters`.

use std::process::ExitCode;

use clap::Args;
use trib_lab::fault::Fault;

use super::{Which, failure};
use crate::failure::Failure;
use crate::stdout;
use crate::table::Table;

/// Show what each link has carried, each way, and what faults have hit
///
/// Bytes are those on the wire, with the headers of every packet. `h3` is the host's link, `leaf1`
/// the trunk above that leaf; `up` is towards the spine.
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
        let links = lab.counters().map_err(failure)?;
        let faults = lab.faults().map_err(failure)?.into_iter();
        let faults: Vec<(Fault, Option<u64>)> = faults
            .map(|fault| lab.affected(&fault).map(|affected| (fault, affected)))
            .collect::<Result<_, _>>()
            .map_err(failure)?;
        let text = if self.json {
            let faults: Vec<_> = faults.iter().map(|(fault, affected)| with_count(fault, *affected)).collect();
            format!("{:#}\n", serde_json::json!({ "links": links, "faults": faults }))
        } else {
            let mut table = Table::new(["LINK", "WAY", "RATE", "BYTES", "PACKETS", "DROPS"]);
            for link in &links {
                let numbers = [link.wire_bytes, link.packets, link.drops].map(|number| number.to_string());
                let words = [link.link.clone(), link.direction.name().to_owned(), link.rate.to_string()];
                table.row(words.into_iter().chain(numbers));
            }
            let faults =
                faults.iter().filter_map(|(fault, affected)| Some(format!("{fault}: {} packets\n", (*affected)?)));
            table.to_string() + &faults.collect::<String>()
        };
        stdout::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A fault as JSON, and how many packets it has hit.
pub(super) fn with_count(fault: &Fault, affected: Option<u64>) -> serde_json::Value {
    let mut value = serde_json::to_value(fault).expect("names and numbers only");
    value["packets"] = affected.into();
    value
}

const EXAMPLES: &str = "\
Examples:
  trib lab counters
  trib lab counters --json | jq '.links[] | select(.link == \"h3\")'";
