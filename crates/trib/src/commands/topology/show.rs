//! `trib topology show`: a fabric as text, picture or JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use trib_topology::draw;
use trib_topology::graph::Graph;

use super::{Source, put};
use crate::failure::Failure;
use crate::stdout;

/// Show the fabric that a file describes
///
/// Prints a line for each switch, from the top level down: whether it has an aggregation node, and
/// what it is connected to.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Draw a picture of it too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Reads the fabric and shows it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let graph = self.source.load()?;
        if let Some(path) = &self.svg {
            put(&draw::svg(&graph), Some(path))?;
        }
        stdout::print(&if self.json {
            format!("{:#}\n", value(&graph))
        } else {
            format!("{}{}", head(&graph), draw::text(&graph))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn head(graph: &Graph) -> String {
    let (hosts, switches) = (graph.hosts().count(), graph.switches().count());
    let (nodes, links) = (graph.nodes().len(), graph.links().len());
    format!("Fabric {}: {hosts} hosts, {switches} switches, {nodes} aggregation nodes, {links} links\n\n", graph.name())
}

fn value(graph: &Graph) -> Value {
    let name = |vertex: usize| &graph.vertices()[vertex].name;
    let switches =
        graph.switches().map(|switch| json!({"name": name(switch), "level": graph.vertices()[switch].level}));
    let nodes =
        graph.nodes().iter().map(|node| json!({"name": node.name, "switch": name(node.switch), "nic": node.nic}));
    let links = graph.links().iter().map(|link| json!({"ends": link.ends.map(name), "rate": link.rate}));
    json!({
        "name": graph.name(),
        "hosts": graph.hosts().map(name).collect::<Vec<_>>(),
        "switches": switches.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

const EXAMPLES: &str = "\
Examples:
  trib topology show /etc/slurm/topology.conf
  ibnetdiscover > fabric.txt; trib topology show fabric.txt --svg fabric.svg
  trib topology show cluster.toml --json | jq '.links | length'";
