//! `trib topology convert`: files of other tools as TOML, which can say more.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use trib_topology::graph::Format;

use super::{Source, put};
use crate::failure::Failure;

/// Write as TOML what Slurm or ibnetdiscover wrote
///
/// TOML can say what those cannot: which switches have an aggregation node, which servers are
/// nodes, from which addresses they connect, the network's MTU, and the limits of jobs. `trib am
/// --topology` takes the file, and `trib an --name` the names of its nodes: a switch's own for the
/// node in it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Where to write it; stdout if left out
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Arguments {
    /// Reads the file and writes it as TOML.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (graph, format) = self.source.load_with_format()?;
        match format {
            Format::Slurm | Format::Ibnetdiscover => put(&graph.to_toml(), self.out.as_deref()),
            Format::Graph | Format::Tree => {
                let file = self.source.file.display();
                Err(Failure::Usage(format!("{file} is TOML already: edit it; docs/topology.md shows every field")))
            }
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  trib topology convert /etc/slurm/topology.conf --nodes 'leaf[0-15],spine[0-3]' --out fabric.toml
  ibnetdiscover > fabric.txt; trib topology convert fabric.txt --out fabric.toml
  trib am --topology fabric.toml --credentials /etc/tributary        # then
  trib an --name leaf0 --manager 'tls://am.cluster:7070?credentials=/etc/tributary' --listen 10.0.0.2:7071";
