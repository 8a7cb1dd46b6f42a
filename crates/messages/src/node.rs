//! The conversation between an aggregation node and the manager.
//!
//! ```text
//!   node                                manager
//!     | Register                           |
//!     |----------------------------------->|
//!     |            Registered (or Refused) |
//!     |<-----------------------------------|
//!     | Hosts{jobs}                        |   what is here from before the connection
//!     |----------------------------------->|
//!     |                 Install(NodeGrant) |   any number, in any order with the rest
//!     |<-----------------------------------|
//!     | Installed (or Rejected)            |
//!     |----------------------------------->|
//!     |                           End{job} |   drain: go on until the children are gone
//!     |<-----------------------------------|
//!     | Faulty{job, fault, why}            |   it or one of its groups cannot go on
//!     |----------------------------------->|
//!     | Left{job}                          |   nothing of it is here any more
//!     |----------------------------------->|
//! ```
//! All grants of a job go out at once: a node's parent may not have its own yet, so the node tries
//! again until it is let in. A node that loses the manager goes on serving its jobs and registers
//! again until it succeeds. The manager answers its `Hosts` with the `End` of each job that has
//! ended meanwhile; one of which a manager knows nothing is forgotten when its children are gone.
//!
//! A deputy, a rank that hosts nodes of its own job, speaks the same from the moment at which it
//! hosts one; it begins with [`Request::Serve`](crate::request::Request::Serve), and nothing is
//! installed there.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use trib_wire::{Fault, JobId, NodeId};

use crate::explanation::{NodePart, TrafficPart};
use crate::job::NodeGrant;
use crate::jobs::JobActivity;
use crate::recovery::EpochPart;
use crate::reply::Refusal;

/// The largest number of addresses at which one node takes streams.
pub const PORTS_MAX: usize = 16;

/// A message from a node to the manager.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum NodeMessage {
    /// The first message: which node this is.
    Register {
        /// Its name in the topology.
        name: String,
        /// The address at which it takes streams. An unspecified IP address (0.0.0.0, ::) stands
        /// for the one from which the node reaches the manager.
        stream: SocketAddr,
        /// The other addresses at which it takes streams: a host with several ports has one socket
        /// at each. None of these addresses is unspecified.
        #[serde(default)]
        further: Vec<SocketAddr>,
        /// Receive buffer of its datagram sockets as granted by the kernel (`SO_RCVBUF` read back),
        /// bytes.
        datagram_buffer_bytes: u64,
        /// Worker threads.
        workers: u32,
        /// The jobs that have logical nodes here, so that their numbers are known before the node
        /// is given others. It is `Hosts` that says later what is still here.
        #[serde(default)]
        jobs: Vec<JobId>,
    },
    /// The grant is in place: children may connect.
    Installed {
        /// The grant's job.
        job: JobId,
        /// The grant's logical node.
        node: NodeId,
    },
    /// The grant cannot be kept.
    Rejected {
        /// The grant's job.
        job: JobId,
        /// The grant's logical node.
        node: NodeId,
        /// Why.
        refusal: Refusal,
    },
    /// The certificate in the node's folder is another one now. The next connection is made with
    /// it, and this one stays.
    Renewed {
        /// When it ends, seconds since 1970-01-01 UTC.
        certificate_ends: u64,
    },
    /// The answer to `QueryCounters`: names to counts, of the whole process.
    Counters(BTreeMap<String, u64>),
    /// The answer to `Explain`.
    Explained {
        /// The job.
        job: JobId,
        /// The tag, as in the question.
        #[serde(default)]
        group: Option<u64>,
        /// Its logical nodes here; none if it is not here.
        parts: Vec<NodePart>,
        /// What has gone over their links.
        #[serde(default)]
        traffic: Vec<TrafficPart>,
        /// The last epochs that its trees have come to, as this process knows it.
        #[serde(default)]
        epochs: Vec<EpochPart>,
    },
    /// The answer to `QueryActivity`: every job that is here, once.
    Activity(Vec<JobActivity>),
    /// The answer to `Ping`.
    Alive,
    /// Follows `Registered`: the jobs that have logical nodes here. The manager may be another one
    /// than the one that admitted them.
    Hosts {
        /// The jobs, each once.
        jobs: Vec<JobId>,
    },
    /// A job, or one of its groups, cannot go on at this node. Said of each logical node once,
    /// before the job is gone from here.
    Faulty {
        /// The job.
        job: JobId,
        /// What its members are told. The node knows other nodes by their numbers; it is the
        /// manager that knows how people call them. `None`: an error of the node's own program.
        #[serde(default)]
        fault: Option<Fault>,
        /// Why, in the node's own words. The manager has better ones where there is a fault.
        why: String,
    },
    /// The last logical node of a job is gone from here: it was ended, or all its children were
    /// gone for long enough.
    Left {
        /// The job.
        job: JobId,
    },
}

/// A message from the manager to a node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum ManagerMessage {
    /// The node is part of the fabric.
    Registered,
    /// The node is not let in; the connection closes.
    Refused(Refusal),
    /// The node is to host one logical node of one job.
    Install(Box<NodeGrant>),
    /// The job is over: every logical node of it drains.
    End {
        /// The job.
        job: JobId,
    },
    /// Asks for `Alive`, at any time, so that a node that is stopped is known before a job needs
    /// it.
    Ping,
    /// Asks for `Counters`.
    QueryCounters,
    /// Asks for `Activity`.
    QueryActivity,
    /// Asks for `Explained`.
    Explain {
        /// The job.
        job: JobId,
        /// The tag of the groups that this is about; without a tag, it is about those that fold at
        /// the node.
        #[serde(default)]
        group: Option<u64>,
    },
}
