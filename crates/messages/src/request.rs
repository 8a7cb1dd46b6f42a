//! What an application or a tool asks of the manager. Every request gets one
//! [`crate::reply::Reply`].

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use trib_wire::{JobId, Mode};

use crate::by_rank;
use crate::job::Pass;
use crate::levels::Levels;
use crate::policy::Recovery;
use crate::processes::Process;

/// What a job would like to use; a field left out gets the fabric's default.
///
/// The fields have the meanings and units of the same fields of [`crate::job::Limits`].
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct QuotaAsk {
    /// Groups alive at once at one node.
    pub groups: Option<u32>,
    /// Slots of one group, W: 1..=64; the request is refused where they do not fit the nodes'
    /// receive buffers.
    pub window: Option<u32>,
    /// Slots of all groups together at one node.
    pub osts: Option<u32>,
    /// Bytes of vector in one datagram fragment, at most: a multiple of 8, 16 or more.
    pub payload: Option<u32>,
    /// Groups that may stream at once at one node.
    pub streams: Option<u32>,
    /// Bytes of vector in one stream segment, at most: a multiple of 8, 16 or more.
    pub segment: Option<u32>,
    /// Segments that a child may be ahead of the fold.
    pub staging: Option<u32>,
    /// Segments between fold and delivered result, per group.
    pub flight: Option<u32>,
    /// Bytes of groups, creations and waiting control frames at one node.
    #[serde(default)]
    pub control_memory: Option<u32>,
    /// Operations with more bytes than this are streamed.
    pub stream_threshold: Option<u64>,
    /// How many streaming operations one lease on a stream context allows; 0: any number, until
    /// other groups want the context.
    pub lease_operations: Option<u32>,
    /// How often a silent side sends a heartbeat, milliseconds.
    pub heartbeat_ms: Option<u32>,
    /// How long a side may say nothing before it counts as dead, milliseconds.
    pub dead_after_ms: Option<u32>,
    /// Lanes: trees over all ranks, or connections along the same tree.
    pub lanes: Option<u32>,
    /// How many different trees the lanes must have, neither more nor fewer; without this, they
    /// have as many as there are.
    pub trees: Option<u32>,
    /// Operations with at least this many bytes are cut over the lanes, the others take turns.
    pub stripe_threshold: Option<u64>,
    /// How many further nodes may host each node of its trees.
    pub backups: Option<u32>,
    /// How many of its ranks may host each node of its trees when no node does. With neither, it
    /// does not go on when a node dies.
    pub deputies: Option<u32>,
    /// The bytes that a rank may keep of what it has given to operations that are over.
    #[serde(default)]
    pub rank_memory: Option<u64>,
    /// What it does when a node of its trees dies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// The levels of its trees below the aggregation nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Levels>,
    /// What is to protect the payloads of its frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_path: Option<Mode>,
}

/// The request of one program for a job; its rank 0 speaks for all.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobRequest {
    /// Host name of each rank, by rank.
    #[serde(deserialize_with = "by_rank::read")]
    pub hosts: Vec<String>,
    /// Process number of each rank on its host, by rank, as far as it is known: for people.
    #[serde(default, deserialize_with = "by_rank::read")]
    pub pids: Vec<u32>,
    /// Where each rank listens, by rank, if it may host nodes of the job.
    #[serde(default, deserialize_with = "by_rank::read")]
    pub deputies: Vec<Option<SocketAddr>>,
    /// The NUMA domain of its host to which each rank is bound, by rank, if it is bound to one. No
    /// rank beyond the end of the list is.
    #[serde(default, deserialize_with = "by_rank::read")]
    pub domains: Vec<Option<u16>>,
    /// The quota it would like.
    pub ask: QuotaAsk,
    /// The program's name, shown by the status.
    pub name: String,
    /// Who runs it, as the program itself says; shown by the status, never used to decide.
    pub user: String,
    /// How long it may wait for quota that others have, milliseconds, at most 3,600,000. Without
    /// this it is refused at once.
    #[serde(default)]
    pub wait_ms: Option<u32>,
    /// How long its ranks wait for each other and for the fabric, milliseconds: nodes have a sixth
    /// of that to install the job, but 5 seconds at least and a minute at most.
    #[serde(default)]
    pub patience_ms: Option<u32>,
}

/// One rank of a program without an out-of-band exchange; the manager brings the ranks together.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct AttachRequest {
    /// A unique text, the same on all ranks of the program. It should be hard to guess, because any
    /// user may name it.
    pub rendezvous: String,
    /// This rank, below `size`.
    pub rank: u32,
    /// Ranks of the program; the same on all.
    pub size: u32,
    /// This rank's host name.
    pub host: String,
    /// This rank's process number there: for people.
    #[serde(default)]
    pub pid: u32,
    /// Where it listens, if it may host nodes of the job.
    #[serde(default)]
    pub deputy: Option<SocketAddr>,
    /// The NUMA domain of its host to which it is bound, if it is bound to one.
    #[serde(default)]
    pub domain: Option<u16>,
    /// The quota; rank 0's counts.
    pub ask: QuotaAsk,
    /// The program's name; rank 0's counts.
    pub name: String,
    /// Who runs it; rank 0's counts.
    pub user: String,
    /// How long to wait for the other ranks, milliseconds, at most 3,600,000; the most patient rank
    /// counts. Without this it is 60,000. For the nodes rank 0's counts, as in [`JobRequest`].
    #[serde(default)]
    pub patience_ms: Option<u32>,
    /// How long the job may wait for quota that others have, once all ranks are here; rank 0's
    /// counts. As in [`JobRequest`].
    #[serde(default)]
    pub wait_ms: Option<u32>,
}

/// A rank that hosts nodes of its own job, because no aggregation node does.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ServeRequest {
    /// The job.
    pub job: JobId,
    /// What came with the job's ticket.
    pub pass: Pass,
    /// The rank.
    pub rank: u32,
    /// Where it runs.
    pub process: Process,
    /// The address at which it takes streams.
    pub stream: SocketAddr,
}

/// How a program came to its end, by its launcher.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Account {
    /// The launcher was told to end it, by this signal.
    Interrupted(String),
    /// A rank failed first, and this is how.
    Failed(String),
}

/// A request. A job lives until `EndJob`, or until the connection that got it (rank 0's, for a
/// rendezvous) closes.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Request {
    /// Admit a job. The answer is `Granted` or `Refused`.
    RequestJob(JobRequest),
    /// Admit a job once all its ranks have asked. The answer is `Granted` or `Refused`, the same to
    /// all ranks.
    Attach(AttachRequest),
    /// This connection is a deputy's from now on. The answer is `Registered` or `Refused`, and what
    /// follows is the conversation of a node ([`crate::node`]), without installations.
    Serve(ServeRequest),
    /// End a job that this connection holds. The answer is `Ended` or `Refused`.
    EndJob {
        /// The job.
        job: JobId,
        /// Why the program could not use it; `None`: the program is done.
        #[serde(default)]
        why: Option<String>,
    },
    /// A job that this connection holds goes on without its tree. The answer is `Noted` or
    /// `Refused`.
    Fallback {
        /// The job.
        job: JobId,
        /// Why, for people.
        why: String,
    },
    /// A launcher tells how the program that it started came to its end, all of whose ranks have
    /// ended. The answer is `Noted`, or `Refused` if no job of that program is known.
    Account {
        /// The text under which the ranks met.
        rendezvous: String,
        /// How they ended.
        account: Account,
    },
    /// Tell about nodes and jobs. The answer is `Status`.
    Status,
    /// Tell what a job does and what it waits for. The answer is `Explanation`; or `Past` if the
    /// job has ended or was refused; or `Refused`.
    Explain {
        /// The job.
        job: JobId,
        /// The tag of those of its groups that this is about; without a tag, it is about all of the
        /// job.
        #[serde(default)]
        group: Option<u64>,
    },
    /// Tell the same about the job of this program: the one that runs, or else the last that ended
    /// or was refused.
    ExplainProgram {
        /// The program's name.
        name: String,
        /// The tag, as above.
        #[serde(default)]
        group: Option<u64>,
    },
    /// Tell about every job, also about those that ended and those that were refused. The answer is
    /// `Jobs`.
    Jobs,
}
