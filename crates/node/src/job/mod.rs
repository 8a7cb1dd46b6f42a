//! One logical node of one job: its protocol core, and what carries out the core's wishes.
//!
//! Map: `activity` (whether it has work), `buffers` (the job's memory), `links`
//! (connections to parent and children), `output` (the core's wishes carried out), `fold` (the
//! kernels), `sink` (frames from a connection into the core), `latencies` (how long fragments and
//! segments stayed), `sealing` (payloads that others must not change or read), `stay` (how long it
//! took to fold again), `explain` (what it waits for), `faults` (why groups of it could not go on),
//! `lifetime` (when it is over).

mod activity;
mod buffers;
mod explain;
mod faults;
mod fold;
mod latencies;
mod lifetime;
mod links;
mod output;
mod sealing;
mod sink;
mod stay;

pub(crate) use activity::FoldWatch;
pub(crate) use buffers::{Buffers, JobBuffer, memory_for};
use faults::Faults;
pub use latencies::{Latencies, Stages};
use lifetime::Lifetime;
pub(crate) use links::{LinkNumber, Links, Opened, PARENT, core_link};
pub(crate) use output::Output;
use sealing::Sealing;
pub(crate) use sink::{Sink, belongs};
use stay::Stay;

use trib_keys::Results;
use trib_messages::job::NodeGrant;
use trib_messages::recovery::Replayed;
use trib_proto::{Nanos, NodeConfig, NodeCore};
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, Epoch, Header, JobId, Mode, NodeId, Placement};

/// A logical node as its worker keeps it.
pub(crate) struct Job {
    pub core: NodeCore<JobBuffer>,
    pub io: JobIo,
    pub lifetime: Lifetime,
    pub watch: FoldWatch,
}

/// Everything of a logical node but its core, so that the core can be called with it.
pub(crate) struct JobIo {
    pub identity: Identity,
    /// Its name for people.
    pub name: String,
    /// The lane of its job to which it belongs.
    pub lane: u32,
    pub links: Links,
    pub buffers: Buffers,
    /// The key of datagrams to all children.
    pub results: FrameKey,
    /// The key of datagrams to the parent.
    pub up: FrameKey,
    /// The mode of the job's data path.
    pub mode: Mode,
    /// What seals payloads, in a mode that does.
    pub sealing: Option<Sealing>,
    /// Bytes of vector that went into folds so far. Each child's piece counts.
    pub bytes_folded: u64,
    /// How long fragments and segments stayed here so far.
    pub latencies: Latencies,
    /// What was folded here of what ranks had sent in earlier epochs, too.
    pub replayed: Replayed,
    /// Since when it is here in its epoch, and how long it took until something was folded.
    pub stay: Stay,
    /// Why groups of it could not go on.
    pub faults: Faults,
    /// Datagrams that the kernel knows to be too long for the way over a link. The core is still to
    /// be told of them.
    pub too_long: Vec<(LinkNumber, Header)>,
    /// Where the nodes of its tree are in the epoch of its core.
    pub placement: Placement,
    /// A placement that a neighbour has told of. The acceptor is still to be told.
    pub learnt: Option<Placement>,
    /// A neighbour that is gone, so that its node has to move. The acceptor is still to be told;
    /// one is enough for this epoch to be over.
    pub suspected: Option<NodeId>,
    /// Why the job cannot go on here. Nothing is sent any more then, because no result is better
    /// than a wrong one.
    pub broken: Option<String>,
}

/// Which logical node this is, of which job, in which epoch, and where in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub job: JobId,
    pub epoch: Epoch,
    pub node: NodeId,
    /// The parent, and this node's position among its children.
    pub parent: Option<(NodeId, ChildIndex)>,
}

impl Job {
    /// What its worker counts of it.
    pub(crate) fn count(&self) -> [(&'static str, u64); 4] {
        [
            ("jobs", 1),
            ("groups", self.core.groups() as u64),
            ("links", self.io.links.open_links().count() as u64),
            ("buffers_held", self.buffers_held()),
        ]
    }

    /// The number of buffers that hold vector data.
    pub(crate) fn buffers_held(&self) -> u64 {
        let (datagrams, segments) = self.core.buffers_held();
        (datagrams + segments) as u64
    }

    /// `results` is the key that children get in their handshakes.
    pub(crate) fn new(
        grant: &NodeGrant,
        placement: &Placement,
        (buffers, results): (Buffers, &FrameKey),
        now: Nanos,
    ) -> Job {
        let parent = grant.parent.as_ref().map(|p| (p.node, p.child));
        let epoch = placement.epoch(grant.epoch);
        let identity = Identity { job: grant.job, epoch, node: grant.node, parent };
        let Results { tags: results, data } = Results::of(results, grant.limits.mode);
        let above = grant.parent.as_ref().map(|parent| parent.hosted(placement).key.keys(placement));
        // A root never sends up, so this key is never used.
        let up = above.as_ref().map_or(results, |above| above.up);
        let children = (0..grant.children.len()).filter_map(|c| grant.child_keys(ChildIndex(c as u16), placement));
        let latencies = Latencies::default();
        // An older manager gives no name.
        let name = if grant.name.is_empty() { grant.node.to_string() } else { grant.name.clone() };
        let links =
            Links::new(children, above, (grant.limits.link_memory() as usize, grant.limits.waiting_memory() as usize));
        Job {
            core: NodeCore::new(NodeConfig { epoch, moves: epoch.0 - grant.epoch.0, ..NodeConfig::from(grant) }),
            io: JobIo {
                identity,
                name,
                lane: grant.lane,
                links,
                buffers,
                results,
                up,
                mode: grant.limits.mode,
                sealing: data.map(|data| Sealing::new(grant.limits.mode, data)),
                bytes_folded: 0,
                latencies,
                replayed: Replayed::default(),
                stay: Stay::begin(*placement != Placement::FIRST),
                faults: Faults::default(),
                too_long: Vec::new(),
                placement: placement.clone(),
                learnt: None,
                suspected: None,
                broken: None,
            },
            lifetime: Lifetime::new(now),
            watch: FoldWatch::new(grant, now),
        }
    }
}

impl JobIo {
    /// The connection of a link is open.
    pub(crate) fn open(&mut self, link: LinkNumber, opened: Opened) {
        if link == PARENT
            && let (Some(sealing), Some(session)) = (&mut self.sealing, &opened.session)
        {
            self.up = session.up;
            sealing.open_up(session);
        }
        self.links.open(link, opened);
    }

    /// Tells the time, by which keys change.
    pub(crate) fn tick(&mut self, now: Nanos) {
        if let Some(sealing) = &mut self.sealing {
            sealing.tick(now.0);
            self.links.tick(now.0);
        }
    }
}
