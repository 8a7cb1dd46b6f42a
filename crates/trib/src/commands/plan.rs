//! `trib plan`: the trees of a job, and how long its operations would take.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use trib_compare::cell::human;
use trib_topology::graph::Graph;
use trib_topology::hostlist;
use trib_topology::predict::{Fit, Forecast, Model, STRIPES_MAX, Stop, TreeReport, Way, fit, forecast};

use super::bench::bytes;
use super::topology::Source;
use crate::failure::Failure;
use crate::stdout;
use crate::table::Table;

/// Plan a job on a fabric and predict its allreduces
///
/// Prints the job's trees, the predicted times of every candidate plan - one tree, several that share the vector, the hosts' own ring
/// and recursive doubling - which of them is best for which vector, and how many such jobs fit at once. The job is taken to be alone
/// on the fabric. docs/topology.md tells the model and where its constants come from.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The job's hosts, in the order of its ranks
    #[arg(long, value_name = "LIST")]
    hosts: String,
    /// Consider up to this many trees
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=STRIPES_MAX as i64))]
    trees: u16,
    /// Vectors to predict for, bytes; K, M and G are 2^10, 2^20 and 2^30
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = bytes, default_value = "8,4K,64K,1M,16M,256M")]
    sizes: Vec<u64>,
    /// What one level of nodes adds, microseconds
    #[arg(long, value_name = "US", value_parser = positive)]
    level_us: Option<f64>,
    /// What one step between hosts takes, microseconds
    #[arg(long, value_name = "US", value_parser = positive)]
    step_us: Option<f64>,
    /// Processor time of a node per byte received from a child or sent to one, nanoseconds
    #[arg(long, value_name = "NS", value_parser = positive)]
    node_ns: Option<f64>,
    /// Processor time of a host per byte sent and received, nanoseconds
    #[arg(long, value_name = "NS", value_parser = positive)]
    host_ns: Option<f64>,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Plans and prints.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let graph = self.source.load()?;
        let hosts = self.hosts(&graph)?;
        let forecast = forecast(&graph, &hosts, self.trees.into(), &self.model()).map_err(Failure::operation)?;
        let trees: Vec<TreeReport> = forecast.trees.iter().map(|tree| TreeReport::new(&graph, tree)).collect();
        // Jobs of the kind that long vectors want.
        let longest = self.sizes.iter().copied().max().unwrap_or(0);
        let stripes = match forecast.choice(longest).way {
            Way::Trees(count) => count,
            Way::Ring | Way::Doubling => 1,
        };
        let fit = fit(&graph, &hosts, stripes).map_err(Failure::operation)?;
        if self.json {
            stdout::print(&format!("{:#}\n", value(&trees, &forecast, &self.sizes, stripes, fit)))?;
        } else {
            let head = format!("Fabric {}: {} of {} hosts\n", graph.name(), hosts.len(), graph.hosts().count());
            stdout::print(&(head + &drawn(&trees) + &times(&forecast, &self.sizes) + &fitting(stripes, fit)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn hosts(&self, graph: &Graph) -> Result<Vec<usize>, Failure> {
        let names = hostlist::expand(&self.hosts).map_err(|error| Failure::Usage(format!("--hosts: {error}")))?;
        let find = |name: &String| {
            let unknown =
                || Failure::Usage(format!("--hosts: the fabric has no host `{name}`; `trib topology show` lists them"));
            graph.find(name).ok_or_else(unknown)
        };
        names.iter().map(find).collect()
    }

    fn model(&self) -> Model {
        let measured = Model::default();
        Model {
            level_latency: self.level_us.map_or(measured.level_latency, |us| us * 1e-6),
            step_latency: self.step_us.map_or(measured.step_latency, |us| us * 1e-6),
            node_byte: self.node_ns.map_or(measured.node_byte, |ns| ns * 1e-9),
            host_byte: self.host_ns.map_or(measured.host_byte, |ns| ns * 1e-9),
            ..measured
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1e9).contains(&value) => Ok(value),
        _ => Err("a number from 0 to 1e9".to_owned()),
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

fn value(trees: &[TreeReport], forecast: &Forecast, sizes: &[u64], stripes: usize, fit: Fit) -> Value {
    let time = |size: &u64| {
        let seconds =
            forecast.candidates.iter().map(|candidate| (candidate.way.to_string(), candidate.time(*size).into()));
        let seconds: serde_json::Map<String, Value> = seconds.collect();
        json!({"bytes": size, "seconds": seconds, "best": forecast.choice(*size).way})
    };
    json!({
        "trees": trees,
        "candidates": forecast.candidates,
        "times": sizes.iter().map(time).collect::<Vec<_>>(),
        "fit": {"trees": stripes, "jobs": fit.jobs, "stop": fit.stop},
    })
}

// Three digits that count.
fn duration(seconds: f64) -> String {
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
  trib plan fabric.txt --hosts 'n[001-064]' --trees 8 --json | jq .times";

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
