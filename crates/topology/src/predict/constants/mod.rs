//! The figures of hosts, nodes and networks from which the model predicts, and where they come
//! from.
//!
//! Map: `table` (every constant with its unit, its meaning and its values), `file` (constants as
//! TOML, as `trib plan --calibrate` writes them). This file has a set of constants with its source.

mod file;
mod table;

use std::fmt;

pub use file::{About, ConstantsError, Measured, laboratory_file, written};
pub use table::{CONSTANTS, Constant};

/// The constants in the units of the model: seconds, bytes, and shares of 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// Seconds that a short message takes from a process to one on another host that waits for it.
    pub hop: f64,
    /// Processor seconds of a node for each short message that it receives or sends.
    pub message: f64,
    /// Seconds of one step between hosts in a collective of the MPI's own.
    pub step: f64,
    /// Seconds of one step between ranks of a host.
    pub local_step: f64,
    /// Processor seconds of a node for each byte that it receives or sends, folding included.
    pub node_byte: f64,
    /// Processor seconds of a rank for each byte that it both sends and receives.
    pub host_byte: f64,
    /// Seconds for each byte of a vector and each rank of a host beyond the first, to sum within
    /// the host and hand the result out.
    pub local_byte: f64,
    /// The share of a link's rate that vectors reach on a tree.
    pub tree_share: f64,
    /// The share of a link's rate that a ring of hosts reaches.
    pub ring_share: f64,
    /// The share of a link's rate that exchanges between pairs of hosts, and trees of hosts, reach.
    pub exchange_share: f64,
    /// Worker threads of a node.
    pub workers: f64,
}

impl Model {
    /// The constants of servers with processors of their own; docs/topology.md derives every
    /// figure.
    pub fn server() -> Model {
        Model::of(|constant| constant.server)
    }

    /// The constants of the virtual machine with two cores on which docs/performance.md was
    /// measured, with all hosts and nodes of a laboratory on it.
    pub fn laboratory() -> Model {
        Model::of(|constant| constant.laboratory)
    }

    fn of(value: impl Fn(&Constant) -> f64) -> Model {
        let mut model = Model {
            hop: 0.0,
            message: 0.0,
            step: 0.0,
            local_step: 0.0,
            node_byte: 0.0,
            host_byte: 0.0,
            local_byte: 0.0,
            tree_share: 1.0,
            ring_share: 1.0,
            exchange_share: 1.0,
            workers: 1.0,
        };
        CONSTANTS.iter().for_each(|constant| constant.set(&mut model, value(constant)));
        model
    }
}

/// The constants, and where they come from.
#[derive(Clone, PartialEq, Debug)]
pub struct Constants {
    /// The figures.
    pub model: Model,
    /// Their source, in words that complete "constants: ".
    pub source: String,
}

impl Constants {
    /// The constants that hold if none were measured.
    pub fn server() -> Constants {
        let source = "defaults for servers, measured on none of yours (`trib plan --calibrate` measures one)".into();
        Constants { model: Model::server(), source }
    }

    /// Replaces some of them by hand. Each wish is `NAME=NUMBER`.
    pub fn replace(&mut self, wishes: &[String]) -> Result<(), ConstantsError> {
        for wish in wishes {
            let (name, value) =
                wish.split_once('=').ok_or_else(|| ConstantsError::Form(wish.clone(), "NAME=NUMBER".into()))?;
            let number = value.trim().parse::<f64>();
            let number = number.map_err(|_| ConstantsError::Form(wish.clone(), "NAME=NUMBER".into()))?;
            Constant::named(name.trim())?.take(&mut self.model, number)?;
        }
        if !wishes.is_empty() {
            self.source = format!("{}; by hand: {}", self.source, wishes.join(", "));
        }
        Ok(())
    }
}

impl fmt::Display for Constants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests;
