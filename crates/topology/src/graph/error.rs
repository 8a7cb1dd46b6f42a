//! What is wrong with a fabric's file, where, and what to do about it.

use super::{LINKS_MAX, VERTICES_MAX};
use crate::addresses::AddressFault;
use crate::error::Fault;
use crate::hostlist::HostlistError;

/// What is wrong with a fabric's file.
#[derive(Debug, thiserror::Error)]
pub enum GraphFault {
    /// It is longer than the file of any fabric.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    /// It is not of its format.
    #[error("{0}")]
    Syntax(String),
    /// The format does not have such a field.
    #[error("`{0}` is no field of a topology.conf for topology/tree")]
    UnknownField(String),
    /// A list of names is malformed.
    #[error("{0}")]
    Hostlist(#[from] HostlistError),
    /// A rate is malformed.
    #[error("`{text}` is no rate: {cause}")]
    Rate {
        /// The text that stands there.
        text: String,
        /// Why it is malformed.
        cause: &'static str,
    },
    /// Two vertices have one name.
    #[error("`{0}` stands there twice")]
    Duplicate(String),
    /// A vertex has no name.
    #[error("a {0} has an empty name")]
    EmptyName(&'static str),
    /// Nothing has this name.
    #[error("`{0}` is neither a switch nor a host")]
    Unknown(String),
    /// This is no switch.
    #[error("`{0}` is no switch")]
    NotASwitch(String),
    /// A link leads from a vertex to itself.
    #[error("a link connects `{0}` with itself")]
    Loop(String),
    /// A link connects two hosts.
    #[error("a link connects the hosts `{0}` and `{1}`")]
    HostToHost(String, String),
    /// The number of parallel links is outside its range.
    #[error("{0} parallel links; 1 to {PARALLEL_MAX} are possible")]
    Parallel(u32),
    /// A level is outside its range.
    #[error("level {0}; switches have 1 to {LEVEL_MAX}")]
    Level(u32),
    /// Switches contain each other.
    #[error("switch `{0}` lies below itself")]
    Cycle(String),
    /// There are too many switches and hosts.
    #[error("more than {VERTICES_MAX} switches and hosts")]
    TooManyVertices,
    /// There are too many links.
    #[error("more than {LINKS_MAX} links")]
    TooManyLinks,
    /// There is no host.
    #[error("there is no host with a name")]
    NoHosts,
    /// There is no switch.
    #[error("there is no switch")]
    NoSwitches,
    /// There is no node, and one is needed.
    #[error("no switch has an aggregation node")]
    NoNodes,
    /// Several things have one address.
    #[error("`{0}` stands for several names, which cannot have the same addresses")]
    SharedAddress(String),
    /// An address is given to a thing that has no node and is no host.
    #[error("switch `{0}` has an address and no aggregation node")]
    AddressWithoutNode(String),
    /// A host has not one address for each of its links.
    #[error("host `{host}` has {addresses} addresses and {links} links")]
    Rails {
        /// The host.
        host: String,
        /// Its addresses.
        addresses: usize,
        /// Its links.
        links: usize,
    },
    /// Addresses are not possible.
    #[error(transparent)]
    Addresses(#[from] AddressFault),
}

/// The most parallel links between two vertices.
pub(super) const PARALLEL_MAX: u32 = 1024;
/// The highest level of a switch.
pub(super) const LEVEL_MAX: u32 = 64;

impl GraphFault {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            GraphFault::TooLong(_) => "name a topology file, or split the fabric",
            GraphFault::Syntax(_) => "correct the line; docs/topology.md shows every format",
            GraphFault::UnknownField(_) => "write SwitchName=, Switches=, Nodes= and LinkSpeed= only",
            GraphFault::Hostlist(_) => "correct the list",
            GraphFault::Rate { .. } => "correct the rate",
            GraphFault::Duplicate(_) => "remove one of the two or rename it",
            GraphFault::EmptyName(_) => "give it a name",
            GraphFault::Unknown(_) => "correct the name or add the switch or host",
            GraphFault::NotASwitch(_) => "name a switch",
            GraphFault::Loop(_) => "correct one of its ends",
            GraphFault::HostToHost(..) => "connect hosts with switches",
            GraphFault::Parallel(_) | GraphFault::Level(_) => "choose a value inside",
            GraphFault::Cycle(_) => "remove one of its ancestors from its Switches=",
            GraphFault::TooManyVertices | GraphFault::TooManyLinks => "split the fabric",
            GraphFault::NoHosts => "add the hosts by name; trees need leaves",
            GraphFault::NoSwitches => "add the switches that the hosts hang on",
            GraphFault::NoNodes => "leave `node = false` out where a node runs, or add a [[server]]",
            GraphFault::SharedAddress(_) => "remove the address, or give each name an entry of its own",
            GraphFault::Rails { .. } => {
                "give one address for each link, in the order in which the file names the links"
            }
            GraphFault::Addresses(fault) => fault.remedy(),
            GraphFault::AddressWithoutNode(_) => "remove the address, or `node = false`",
        }
    }
}

/// A fault and its line, before the file's name is known.
pub(super) type Complaint = (Option<usize>, Fault);

/// A function for `map_err` that makes a fault of this line.
pub(super) fn at<F: Into<GraphFault>>(line: usize) -> impl Fn(F) -> Complaint {
    move |fault| (Some(line), Fault::Graph(fault.into()))
}

/// Makes a fault of the file as a whole, for `map_err`.
pub(super) fn whole(fault: GraphFault) -> Complaint {
    (None, Fault::Graph(fault))
}
