//! `trib topology make`: fabrics of regular shape.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use trib_topology::graph::{LinkRate, Shape, ShapeError};

use super::put;
use crate::failure::Failure;

/// Write the TOML file of a fat tree, dragonfly+, torus or hypercube
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    shape: Kind,
}

#[derive(Subcommand, Debug)]
enum Kind {
    /// Leaves and spines; with three levels pods of them below cores
    #[command(after_help = FAT_TREE)]
    FatTree {
        /// Hosts
        #[arg(long, value_name = "N")]
        hosts: u32,
        /// Ports of a switch; half of a leaf's go down
        #[arg(long, value_name = "N", default_value_t = 40)]
        ports: u32,
        /// Levels of switches
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=3))]
        levels: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Groups of leaves and spines, with links between the spines of any two groups
    #[command(after_help = DRAGONFLY)]
    DragonflyPlus {
        /// Groups
        #[arg(long, value_name = "N")]
        groups: u32,
        /// Leaves of a group, and as many spines
        #[arg(long, value_name = "N")]
        leaves: u32,
        /// Hosts of a leaf
        #[arg(long, value_name = "N")]
        hosts: u32,
        #[command(flatten)]
        output: Output,
    },
    /// A grid that is closed in each dimension
    #[command(after_help = TORUS)]
    Torus {
        /// Switches in each dimension: one to three numbers
        #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', num_args = 1..=3, required = true)]
        sides: Vec<u32>,
        /// Hosts of a switch
        #[arg(long, value_name = "N")]
        hosts: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Switches whose numbers differ in one bit are connected
    #[command(after_help = HYPERCUBE)]
    Hypercube {
        /// Bits of a switch's number
        #[arg(long, value_name = "N")]
        dimensions: u32,
        /// Hosts of a switch
        #[arg(long, value_name = "N")]
        hosts: u32,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Args, Debug)]
struct Output {
    /// Rate of every link
    #[arg(long, value_name = "RATE", default_value = "100gbit")]
    rate: LinkRate,
    /// Where to write it; stdout if left out
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Arguments {
    /// Makes the fabric and writes it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (shape, output) = match self.shape {
            Kind::FatTree { hosts, ports, levels: 3, output } => (Shape::FatTree3 { hosts, ports }, output),
            Kind::FatTree { hosts, ports, output, .. } => (Shape::FatTree2 { hosts, ports }, output),
            Kind::DragonflyPlus { groups, leaves, hosts, output } => {
                (Shape::DragonflyPlus { groups, leaves, hosts }, output)
            }
            Kind::Torus { sides, hosts, output } => (Shape::Torus { sides: three(&sides)?, hosts }, output),
            Kind::Hypercube { dimensions, hosts, output } => (Shape::Hypercube { dimensions, hosts }, output),
        };
        let graph = shape.graph(output.rate).map_err(|error: ShapeError| Failure::Usage(error.to_string()))?;
        put(&graph.to_toml(), output.out.as_deref())
    }
}

// The sides of a torus; a dimension that is not given has one switch.
fn three(sides: &[u32]) -> Result<[u32; 3], Failure> {
    match *sides {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(Failure::Usage(format!("--sides has {} numbers; give one to three", sides.len()))),
    }
}

const FAT_TREE: &str = "\
Examples:
  trib topology make fat-tree --hosts 10000 --ports 40 --levels 3 --out cluster.toml";
const DRAGONFLY: &str = "\
Examples:
  trib topology make dragonfly-plus --groups 9 --leaves 4 --hosts 4 --rate 200gbit --out cluster.toml";
const TORUS: &str = "\
Examples:
  trib topology make torus --sides 4,4,4 --hosts 1 --out cluster.toml";
const HYPERCUBE: &str = "\
Examples:
  trib topology make hypercube --dimensions 6 --hosts 2 --out cluster.toml";
