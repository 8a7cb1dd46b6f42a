//! `trib plan`: the trees of a job, and how long its operations would take.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use trib_compare::cell::human;
use trib_messages::job::LANES_MAX;
use trib_messages::prediction::Range;
use trib_topology::graph::Graph;
use trib_topology::hostlist;
use trib_topology::predict::{
    CONSTANTS, Constants, Fit, Forecast, Ranks, STRIPES_MAX, Stop, TreeReport, Way, fit, forecast,
};

use super::bench::bytes;
use super::explain::prediction;
use super::topology::Source;
use crate::failure::Failure;
use crate::stdout;
use crate::table::Table;

mod calibrate;
mod constants;

/// Plan a job on a fabric and predict its allreduces
///
/// Prints the job's trees, the predicted times of every candidate plan - one tree, several that
/// share the vector, one with several lanes, and the hosts' own ways - which of them is best for
/// which vector, and how many such jobs fit at once. The job is taken to be alone on the fabric.
/// docs/topology.md tells the model; what it takes for granted of hosts and nodes are constants,
/// which --calibrate measures on one machine.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    source: Option<Source>,
    /// The job's hosts, in the order of its ranks
    #[arg(long, value_name = "LIST", required_unless_present = "calibrate")]
    hosts: Option<String>,
    /// Ranks on each host
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks_per_host: u16,
    /// Rank r is on the r-th host, counted round; without it a host's ranks follow one another
    #[arg(long)]
    cyclic: bool,
    /// Ranks of a host have no node of their own there, as with TRIB_QUOTA=levels=none
    #[arg(long)]
    flat: bool,
    /// Consider up to this many trees
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=STRIPES_MAX as i64))]
    trees: u16,
    /// Consider so many lanes over one tree, each with a worker of a node to itself as far as there
    /// are workers
    #[arg(long, value_name = "N", default_value_t = LANES_MAX as u16, value_parser = clap::value_parser!(u16).range(1..=LANES_MAX as i64))]
    lanes: u16,
    /// Vectors to predict for, bytes; K, M and G are 2^10, 2^20 and 2^30
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = bytes, default_value = "8,4K,64K,1M,16M,256M")]
    sizes: Vec<u64>,
    /// The model's constants, as --calibrate writes them; without it constants.toml in
    /// $XDG_CONFIG_HOME/tributary or /etc/tributary, else defaults for servers
    #[arg(long, value_name = "FILE")]
    constants: Option<PathBuf>,
    /// One constant by hand, after the file
    #[arg(long, value_name = "NAME=NUMBER")]
    constant: Vec<String>,
    /// Plan nothing: measure the constants of this machine and write them to --out
    #[arg(long, conflicts_with_all = ["hosts", "file"])]
    calibrate: bool,
    /// Rounds of the calibration
    #[arg(long, value_name = "N", default_value_t = 3, requires = "calibrate", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Where the calibration goes; without it to stdout
    #[arg(long, value_name = "FILE", requires = "calibrate")]
    out: Option<PathBuf>,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Plans and prints.
    pub fn run(self) -> Result<ExitCode, Failure> {
        if self.calibrate {
            return calibrate::run(self.rounds, self.out.as_deref());
        }
        let missing = || Failure::Usage("name the fabric's file, or say --calibrate".to_owned());
        let graph = self.source.as_ref().ok_or_else(missing)?.load()?;
        let constants = constants::find(self.constants.as_deref(), &self.constant)?;
        let hosts = self.hosts(&graph)?;
        let placed = self.ranks(&hosts);
        let ranks = Ranks { hosts: &placed, levels: !self.flat };
        let (trees, lanes) = (self.trees.into(), self.lanes.into());
        let forecast = forecast(&graph, ranks, trees, lanes, &constants.model).map_err(Failure::operation)?;
        let trees: Vec<TreeReport> = forecast.trees.iter().map(|tree| TreeReport::new(&graph, tree)).collect();
        // Jobs are counted that have as many trees as the best way for the longest vector.
        let longest = self.sizes.iter().copied().max().unwrap_or(0);
        let stripes = match forecast.choice(longest).way {
            Way::Trees(count) => count,
            _ => 1,
        };
        let fit = fit(&graph, &hosts, stripes).map_err(Failure::operation)?;
        if self.json {
            let value = value(&trees, &forecast, &self.sizes, stripes, fit, &constants);
            stdout::print(&format!("{value:#}\n"))?;
        } else {
            let ranks = match self.ranks_per_host {
                1 => String::new(),
                each if ranks.levels => format!(", {each} ranks on each below a node of the host"),
                each => format!(", {each} ranks on each"),
            };
            let head = format!("Fabric {}: {} of {} hosts{ranks}\n", graph.name(), hosts.len(), graph.hosts().count());
            let text = head
                + &drawn(&trees)
                + &times(&forecast, &self.sizes)
                + &fitting(stripes, fit)
                + &constants::text(&constants);
            stdout::print(&text)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn hosts(&self, graph: &Graph) -> Result<Vec<usize>, Failure> {
        let list = self.hosts.as_deref().unwrap_or_default();
        let names = hostlist::expand(list).map_err(|error| Failure::Usage(format!("--hosts: {error}")))?;
        let find = |name: &String| {
            let unknown =
                || Failure::Usage(format!("--hosts: the fabric has no host `{name}`; `trib topology show` lists them"));
            graph.find(name).ok_or_else(unknown)
        };
        let mut known = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(*name)) {
            let text = format!("--hosts: host `{twice}` is named twice; --ranks-per-host gives it several ranks");
            return Err(Failure::Usage(text));
        }
        names.iter().map(find).collect()
    }

    /// The host of each rank.
    fn ranks(&self, hosts: &[usize]) -> Vec<usize> {
        let each = usize::from(self.ranks_per_host);
        if self.cyclic {
            return hosts.iter().copied().cycle().take(hosts.len() * each).collect();
        }
        hosts.iter().flat_map(|host| std::iter::repeat_n(*host, each)).collect()
    }
}

fn drawn(trees: &[TreeReport]) -> String {
    let mut text = String::new();
    for (i, tree) in trees.iter().enumerate() {
        write!(text, "\nTree {} of {}: root {}, {} levels\n", i + 1, trees.len(), tree.root, tree.levels)
            .expect(MEMORY);
        for branch in &tree.branches {
            let node = match &branch.node {
                None => "  passed through".to_owned(),
                Some(node) if *node == branch.switch => String::new(),
                Some(node) => format!("  node {node}"),
            };
            let up = branch.rate.map_or_else(String::new, |rate| format!("  up {rate}"));
            let streams =
                branch.streams.filter(|streams| *streams > 1).map(|streams| format!(" for {streams} streams"));
            let hosts = if branch.hosts.is_empty() { String::new() } else { format!("  hosts {}", branch.hosts) };
            let indent = "  ".repeat(branch.depth as usize + 1);
            writeln!(text, "{indent}{}{node}{up}{}{hosts}", branch.switch, streams.unwrap_or_default()).expect(MEMORY);
        }
    }
    text
}

fn times(forecast: &Forecast, sizes: &[u64]) -> String {
    let ways = forecast.candidates.iter().map(|candidate| candidate.way.to_string().to_uppercase());
    let mut table = Table::new(["VECTOR".to_owned()].into_iter().chain(ways).chain(["BEST".to_owned()]));
    for size in sizes {
        let times = forecast.candidates.iter().map(|candidate| duration(candidate.time(*size)));
        let best = forecast.choice(*size).way.to_string();
        table.row([human(*size)].into_iter().chain(times).chain([best]));
    }
    let mut text = format!("\nPredicted times of an allreduce\n\n{table}\nWhat bounds long vectors\n\n");
    for candidate in &forecast.candidates {
        let rate = 8e-9 / candidate.byte;
        writeln!(text, "  {}: {rate:.3} Gbit/s of vector, by {}", candidate.way, candidate.limit).expect(MEMORY);
    }
    text.push_str("\nAs fast as the hosts alone, or faster: a program under an MPI leaves it other allreduces\n\n");
    for tree in forecast.candidates.iter().filter(|candidate| candidate.way.is_tree()) {
        let range: Vec<Range> = forecast.pays(tree).into_iter().collect();
        writeln!(text, "  {}: {}", tree.way, prediction::sizes(&range)).expect(MEMORY);
    }
    text
}

fn fitting(stripes: usize, fit: Fit) -> String {
    let why = match fit.stop {
        Stop::Hosts => "then too few hosts are left",
        Stop::Links => "one more would share a link between switches, or a server, with another",
        Stop::Unconnected => "no tree connects the hosts that would be next",
        Stop::Enough => "or more: counting ends there",
    };
    format!("\nJobs of this size with {} fit at once without sharing: {}; {why}\n", Way::Trees(stripes), fit.jobs)
}

fn value(
    trees: &[TreeReport],
    forecast: &Forecast,
    sizes: &[u64],
    stripes: usize,
    fit: Fit,
    constants: &Constants,
) -> Value {
    let pays = forecast.candidates.iter().filter(|candidate| candidate.way.is_tree());
    let pays: serde_json::Map<String, Value> =
        pays.map(|tree| (tree.way.to_string(), json!(forecast.pays(tree)))).collect();
    let time = |size: &u64| {
        let seconds =
            forecast.candidates.iter().map(|candidate| (candidate.way.to_string(), candidate.time(*size).into()));
        let seconds: serde_json::Map<String, Value> = seconds.collect();
        json!({"bytes": size, "seconds": seconds, "best": forecast.choice(*size).way})
    };
    let numbers = CONSTANTS.iter().map(|constant| (constant.name, constant.get(&constants.model).into()));
    let numbers: serde_json::Map<String, Value> = numbers.map(|(name, number)| (name.to_owned(), number)).collect();
    json!({
        "constants": {"source": constants.source, "values": numbers},
        "trees": trees,
        "candidates": forecast.candidates,
        "pays": pays,
        "times": sizes.iter().map(time).collect::<Vec<_>>(),
        "fit": {"trees": stripes, "jobs": fit.jobs, "stop": fit.stop},
    })
}

// A duration with three significant digits.
pub(super) fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    match value {
        v if v >= 100.0 => format!("{v:.0} {unit}"),
        v if v >= 10.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.2} {unit}"),
    }
}

const MEMORY: &str = "writing to memory cannot fail";
const EXAMPLES: &str = "\
Examples:
  trib plan cluster.toml --hosts 'h[0-31]'
  trib plan /etc/slurm/topology.conf --link-rate 200gbit --hosts 'tux[0-15],tux[32-47]' --sizes 8,1M
  trib plan fabric.txt --hosts 'n[001-064]' --trees 8 --json | jq .times
  trib plan cluster.toml --hosts 'h[0-31]' --ranks-per-host 4 --constant workers=16
  trib plan --calibrate --out constants.toml
  trib plan cluster.toml --hosts 'h[0-31]' --constants constants.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(
            [1.5e-6, 43e-6, 0.0123, 0.9999, 250.0].map(duration),
            ["1.50 us", "43.0 us", "12.3 ms", "1000 ms", "250 s"]
        );
    }
}
