//! Every constant once: its name in files and options, its unit, its meaning, and its value on a
//! server and in a laboratory.

use super::{ConstantsError, Model};

/// One constant.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Its name, with its unit behind it.
    pub name: &'static str,
    /// For a time, the length of its unit in seconds.
    scale: f64,
    /// The least value that makes sense, in its unit.
    least: f64,
    /// The most.
    most: f64,
    /// What the constant means.
    pub meaning: &'static str,
    /// Its value on a server, in its unit.
    pub server: f64,
    /// Where that value comes from.
    pub basis: &'static str,
    /// Its value on the machine of docs/performance.md.
    pub laboratory: f64,
    field: fn(&mut Model) -> &mut f64,
}

impl Constant {
    /// The constant of this name.
    pub fn named(name: &str) -> Result<&'static Constant, ConstantsError> {
        CONSTANTS.iter().find(|constant| constant.name == name).ok_or_else(|| ConstantsError::Unknown(name.into()))
    }

    /// Its value in a model, in its own unit.
    pub fn get(&self, model: &Model) -> f64 {
        let mut copy = *model;
        // A round number in its unit becomes round again.
        ((*(self.field)(&mut copy) / self.scale) * 1e9).round() / 1e9
    }

    /// Sets it to a value of the table, in its unit.
    pub(super) fn set(&self, model: &mut Model, value: f64) {
        *(self.field)(model) = value * self.scale;
    }

    /// Sets it to a value from outside, after checking its range.
    pub(super) fn take(&self, model: &mut Model, value: f64) -> Result<(), ConstantsError> {
        if !(self.least..=self.most).contains(&value) {
            return Err(ConstantsError::Range(self.name, value, self.least, self.most));
        }
        self.set(model, value);
        Ok(())
    }
}

const US: f64 = 1e-6;
const NS: f64 = 1e-9;
const TIME_MOST: f64 = 1e6;

const fn time(name: &'static str, scale: f64, meaning: &'static str, field: fn(&mut Model) -> &mut f64) -> Constant {
    Constant { name, scale, least: 0.0, most: TIME_MOST, meaning, server: 0.0, basis: "", laboratory: 0.0, field }
}

const fn share(name: &'static str, meaning: &'static str, field: fn(&mut Model) -> &mut f64) -> Constant {
    Constant { least: 0.01, most: 1.0, ..time(name, 1.0, meaning, field) }
}

/// All constants.
pub const CONSTANTS: &[Constant] = &[
    Constant {
        server: 10.0,
        basis: "what a datagram takes through two kernels and a switch to a process that polls for it; to one that sleeps, add a wake-up",
        laboratory: 20.5,
        ..time("hop_us", US, "a short message to a process of another host that waits for it", |m| &mut m.hop)
    },
    Constant {
        server: 1.0,
        basis: "the laboratory's nodes spend 1,400 instructions of their own on a datagram, and calls are batched",
        laboratory: 0.0,
        ..time("message_us", US, "processor time of a node for each short message received or sent", |m| &mut m.message)
    },
    Constant {
        server: 10.0,
        basis: "as a hop: what an MPI adds to it is left out, in favour of the hosts",
        laboratory: 34.0,
        ..time("step_us", US, "one step between hosts in a collective of the MPI's own", |m| &mut m.step)
    },
    Constant {
        server: 0.5,
        basis: "what Open MPI and MPICH take for a short message through shared memory",
        laboratory: 5.0,
        ..time("local_step_us", US, "one step between ranks of a host", |m| &mut m.local_step)
    },
    Constant {
        server: 0.16,
        basis: "the laboratory's, times 0.6: as TCP's own cost there (0.47 ns to send and receive a byte) to a server's (0.28 ns)",
        laboratory: 0.27,
        ..time("node_byte_ns", NS, "processor time of a node for each byte received or sent, folding included", |m| {
            &mut m.node_byte
        })
    },
    Constant {
        server: 0.33,
        basis: "the laboratory's 0.55 ns, times 0.6 likewise",
        laboratory: 0.46,
        ..time("host_byte_ns", NS, "processor time of a rank for each byte that it both sends and receives", |m| {
            &mut m.host_byte
        })
    },
    Constant {
        server: 0.3,
        basis: "three passes over memory (in, sum, out) at the 10 GB/s of one core",
        laboratory: 2.1,
        ..time(
            "local_byte_ns",
            NS,
            "for each further rank of a host: to sum a byte there and hand the result out",
            |m| &mut m.local_byte,
        )
    },
    Constant {
        server: 0.98,
        basis: "measured in the laboratory: headers and acknowledgements take the rest",
        laboratory: 0.98,
        ..share("tree_share", "share of a link's rate that vectors get on a tree", |m| &mut m.tree_share)
    },
    Constant {
        server: 0.93,
        basis: "measured in the laboratory: Open MPI's ring has 0.85 to 0.99",
        laboratory: 0.93,
        ..share("ring_share", "share of a link's rate that a ring of hosts gets", |m| &mut m.ring_share)
    },
    Constant {
        server: 0.72,
        basis: "measured in the laboratory with an Open MPI that was tuned, in favour of the hosts; as installed it has 0.5 to 0.55",
        laboratory: 0.53,
        ..share("exchange_share", "share of a link's rate that exchanges between pairs of hosts get", |m| {
            &mut m.exchange_share
        })
    },
    Constant {
        least: 1.0,
        most: 64.0,
        server: 8.0,
        basis: "half the cores of a small server (`trib an --workers 8`); what nodes say counts where they are connected",
        laboratory: 1.0,
        ..time("workers", 1.0, "worker threads of a node, over which lanes of a job spread", |m| &mut m.workers)
    },
];
