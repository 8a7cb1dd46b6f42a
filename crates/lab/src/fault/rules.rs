//! Faults as rules for `nft`: one table per fault and place, so that taking a fault back is
//! removing its tables.

use serde_json::Value;

use super::Fault;
use crate::lab::LabError;
use crate::namespace::Entry;
use crate::network::{Direction, tool};
use crate::topology::{PlaceKind, Plan};

impl Fault {
    /// The scripts that put the fault in force: (place, script).
    pub(super) fn rules(&self, plan: &Plan) -> Vec<(String, String)> {
        let rule = match self {
            Self::Loss { percent, .. } => format!("{}counter drop", chance(*percent)),
            // The byte lies behind the transport header; a packet too short to have it stays whole.
            Self::Corrupt { percent, .. } => {
                format!("meta l4proto udp {}{BYTE} set {BYTE} xor 0xff counter", chance(*percent))
            }
            Self::Cut { .. } => return Vec::new(),
            Self::IsolateHosts => format!("ip saddr {HOSTS} ip daddr {HOSTS} counter drop"),
        };
        let tables = self.tables(plan).into_iter();
        tables.map(|(place, table)| (place, format!("{}\n{}", delete(&table), self.add(plan, &table, &rule)))).collect()
    }

    /// The tables that hold the fault's rules: (place, family and name).
    pub(super) fn tables(&self, plan: &Plan) -> Vec<(String, String)> {
        match self {
            Self::Loss { link, direction, .. } => end(plan, link, *direction, "loss"),
            Self::Corrupt { link, direction, .. } => end(plan, link, *direction, "corrupt"),
            Self::Cut { .. } => Vec::new(),
            Self::IsolateHosts => {
                let switches = plan.places.iter().filter(|place| place.kind == PlaceKind::Switch);
                switches.map(|place| (place.name.clone(), "bridge isolate-hosts".to_owned())).collect()
            }
        }
    }

    fn add(&self, plan: &Plan, table: &str, rule: &str) -> String {
        let hook = match self {
            Self::Loss { link, direction, .. } | Self::Corrupt { link, direction, .. } => {
                let link = plan.link(link).expect("it has been checked");
                let device = if *direction == Direction::Up { &link.upper_device } else { &link.lower_device };
                format!("ingress device \"{device}\"")
            }
            _ => "forward".to_owned(),
        };
        format!("table {table} {{\nchain rules {{\ntype filter hook {hook} priority 0\n{rule}\n}}\n}}\n")
    }
}

/// Runs a script.
pub(super) fn run(entry: &Entry, script: &str) -> Result<(), LabError> {
    tool::run(entry, "nft", &["-f", "-"], script).map(drop)
}

/// Removes a table, whether or not there is one.
pub(super) fn delete(table: &str) -> String {
    format!("table {table}\ndelete table {table}")
}

/// What the counters of a table's rules say together.
pub(super) fn count(entry: &Entry, table: &str) -> Result<u64, LabError> {
    let (family, name) = table.split_once(' ').expect("a table is named with its family");
    let answer = tool::run(entry, "nft", &["-j", "list", "table", family, name], "")?;
    counted(&answer).map_err(|reason| LabError::Answer { command: format!("nft -j list table {table}"), reason })
}

fn counted(answer: &str) -> Result<u64, String> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    let entries = answer["nftables"].as_array().ok_or("no list of rules")?;
    let expressions = entries.iter().filter_map(|entry| entry["rule"]["expr"].as_array()).flatten();
    Ok(expressions.filter_map(|expression| expression["counter"]["packets"].as_u64()).sum())
}

/// The table at the end of a link where a direction's packets arrive.
fn end(plan: &Plan, link: &str, direction: Direction, kind: &str) -> Vec<(String, String)> {
    let ends = plan.link(link).map(|link| if direction == Direction::Up { &link.upper } else { &link.lower });
    ends.map(|place| (place.clone(), format!("netdev {kind}-{link}-{}", direction.name()))).into_iter().collect()
}

/// A condition of nft that holds for `percent` of all packets, chosen at random.
fn chance(percent: f64) -> String {
    let share = (percent * 1000.0).round().max(1.0) as u32;
    if share >= WHOLE { String::new() } else { format!("numgen random mod {WHOLE} < {share} ") }
}

/// The choices that a random number of the kernel has: thousandths of a per cent.
const WHOLE: u32 = 100_000;
/// The 41st byte after the beginning of the transport header.
const BYTE: &str = "@th,320,8";
/// The hosts' part of each rail's network.
const HOSTS: &str = "{ 10.77.128.0/17, 10.78.128.0/17, 10.79.128.0/17, 10.80.128.0/17 }";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::FatTree;

    #[test]
    fn loss_is_at_the_receiving_end() {
        let plan = FatTree { levels: 3, ..FatTree::default() }.plan();
        let rules = |link: &str, direction| {
            Fault::Loss { link: link.to_owned(), direction, percent: 1.5 }.rules(&plan).remove(0)
        };
        let (place, script) = rules("h3", Direction::Up);
        assert_eq!(place, "leaf0");
        assert!(
            script.contains("ingress device \"h3\"") && script.contains("mod 100000 < 1500 counter drop"),
            "{script}"
        );
        let (place, script) = rules("leaf1", Direction::Down);
        assert_eq!(place, "leaf1");
        assert!(script.contains("ingress device \"trunk\""), "{script}");
    }

    #[test]
    fn all_packets_need_no_dice() {
        assert_eq!(chance(100.0), "");
        assert_eq!(chance(1e-9), "numgen random mod 100000 < 1 ");
    }

    #[test]
    fn counters_of_all_rules_are_added() {
        let answer = r#"{"nftables": [{"metainfo": {}}, {"table": {}}, {"rule": {"expr": [{"match": {}}, {"counter": {"packets": 3, "bytes": 9}}, {"drop": null}]}},
            {"rule": {"expr": [{"counter": {"packets": 4, "bytes": 9}}]}}]}"#;
        assert_eq!(counted(answer), Ok(7));
        assert!(counted("{}").is_err() && counted("").is_err());
    }
}
