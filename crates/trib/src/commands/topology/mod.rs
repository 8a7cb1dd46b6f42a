//! `trib topology`: the fabric that a file describes. There is one file for each action.

mod convert;
mod make;
mod show;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use trib_topology::graph::{FabricFile, Format, Graph, LinkRate};
use trib_topology::{Fault, TopologyError, hostlist};

use crate::failure::Failure;
use crate::stdout;

/// Show, convert or make a fabric's file
///
/// Files are TOML, Slurm's topology.conf (topology/tree) or what ibnetdiscover prints; the content
/// tells which.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Show(show::Arguments),
    Convert(convert::Arguments),
    Make(make::Arguments),
}

impl Arguments {
    /// Carries out the action.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.action {
            Action::Show(show) => show.run(),
            Action::Convert(convert) => convert.run(),
            Action::Make(make) => make.run(),
        }
    }
}

/// The options that say which fabric.
#[derive(Args, Debug)]
pub(super) struct Source {
    /// The fabric: TOML, Slurm's topology.conf, or what ibnetdiscover prints
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Rate of links whose rate the file does not tell
    #[arg(long, value_name = "RATE", default_value = "100gbit")]
    link_rate: LinkRate,
    /// The only switches that have an aggregation node in them, a list like spine[0-3]. What Slurm
    /// and ibnetdiscover write cannot tell; without this option all have one there
    #[arg(long, value_name = "LIST")]
    nodes: Option<String>,
}

impl Source {
    /// Reads the fabric.
    pub(super) fn load(&self) -> Result<Graph, Failure> {
        self.load_with_format().map(|(graph, _)| graph)
    }

    fn load_with_format(&self) -> Result<(Graph, Format), Failure> {
        let file = FabricFile::read(&self.file).map_err(failure)?;
        let mut graph = file.graph(self.link_rate).map_err(failure)?;
        if let Some(list) = &self.nodes {
            let usage = |cause: &dyn std::fmt::Display| Failure::Usage(format!("--nodes: {cause}"));
            let names = hostlist::expand(list).map_err(|error| usage(&error))?;
            graph.keep_nodes(&names).map_err(|fault| usage(&format!("{fault}; {}", fault.remedy())))?;
        }
        Ok((graph, file.format()))
    }
}

fn failure(error: TopologyError) -> Failure {
    match error.fault {
        Fault::Unreadable(_) => Failure::environment(error),
        _ => Failure::operation(error),
    }
}

/// Writes a text to a file, or to stdout.
fn put(text: &str, path: Option<&Path>) -> Result<ExitCode, Failure> {
    match path {
        None => stdout::print(text)?,
        Some(path) => fs::write(path, text)
            .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", path.display())))?,
    }
    Ok(ExitCode::SUCCESS)
}
