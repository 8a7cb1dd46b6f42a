//! What the model takes for granted of hosts, nodes and networks, and where these figures come
//! from.
//!
//! Map: `table` (every constant with its unit, its meaning and its values), `file` (constants as
//! TOML, as `trib plan --calibrate` writes them), this file (a set of them with its source).

mod file;
mod table;

use std::fmt;

pub use file::{About, ConstantsError, Measured, laboratory_file, written};
pub use table::{CONSTANTS, Constant};

/// The constants in the units of the model: seconds, bytes, shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// Seconds of a short message from a process to one of another host that waits for it.
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
    /// Share of a link's rate that vectors get on a tree.
    pub tree_share: f64,
    /// Share of a link's rate that a ring of hosts gets.
    pub ring_share: f64,
    /// Share of a link's rate that exchanges between pairs of hosts get, and trees of hosts.
    pub exchange_share: f64,
    /// Worker threads of a node.
    pub workers: f64,
}

impl Model {
    /// Servers with processors of their own: docs/topology.md derives every figure.
    pub fn server() -> Model {
        Model::of(|constant| constant.server)
    }

    /// The virtual machine of two cores on which docs/performance.md was measured, with all hosts
    /// and nodes of a laboratory on it.
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

/// The constants, and where they are from.
#[derive(Clone, PartialEq, Debug)]
pub struct Constants {
    /// The figures.
    pub model: Model,
    /// Their source, in words that complete "constants: ".
    pub source: String,
}

impl Constants {
    /// Those that hold where nobody has measured.
    pub fn server() -> Constants {
        let source = "defaults for servers, measured on none of yours (`trib plan --calibrate` measures one)".into();
        Constants { model: Model::server(), source }
    }

    /// Replaces some by hand: `NAME=NUMBER` each.
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
