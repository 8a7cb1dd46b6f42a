//! A job on a node's worker: its grant, as a manager would make it, and the edges and keys of its
//! ranks.

use std::net::SocketAddr;

use trib_keys::{JobKey, Results};
use trib_messages::job::{GrantChild, Limits, NodeGrant};
use trib_messages::policy::Recovery;
use trib_messages::via::Via;
use trib_node::Stepped;
use trib_proto::LeafConfig;
use trib_transport::memory::NearSocket;
use trib_transport::tcp::StreamSocket;
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, ChildKind, Epoch, JobId, Mode, NodeId, Placement, RankList};

use crate::draw::Draw;
use crate::rank::Rank;

/// A job whose one node is the root, with its ranks as children.
pub struct Job {
    grant: NodeGrant,
    key: JobKey,
    results: FrameKey,
}

impl Job {
    /// A job of so many ranks.
    pub fn new(number: u32, ranks: u32, limits: Limits) -> Job {
        let (job, key) = (JobId(number), JobKey([number as u8; 32]));
        assert!(limits.check().is_ok() && trib_proto::Limits::from(&limits).are_valid(), "{limits:?}");
        let child = |rank| GrantChild {
            kind: ChildKind::Rank(trib_wire::Rank(rank)),
            candidates: 1,
            in_rank: true,
            ranks: RankList::from_ranks([rank]),
            addresses: Vec::new(),
            via: Via::Tcp,
        };
        let grant = NodeGrant {
            job,
            epoch: Epoch(1),
            mark: key.mark(job),
            key: key.node(job, NODE, 0),
            root: Some(key.root(job, NODE)),
            limits,
            world_size: ranks,
            node: NODE,
            name: "root".into(),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: vec![FAR],
            in_ranks: Vec::new(),
            recovers: false,
            parent: None,
            children: (0..ranks).map(child).collect(),
        };
        Job { grant, key, results: FrameKey([number as u8; 16]) }
    }

    /// Its number and its node.
    pub fn node(&self) -> (JobId, NodeId) {
        (self.grant.job, NODE)
    }

    /// Has it hosted; returns the bytes that are reserved for it.
    pub fn host(&self, worker: &mut Stepped) -> u64 {
        worker.host(&self.grant, self.results).expect("memory for a small job")
    }

    /// What a rank's core is told.
    pub fn config(&self, rank: u32) -> LeafConfig {
        LeafConfig {
            job: self.grant.job,
            epoch: Epoch(1),
            rank: trib_wire::Rank(rank),
            world_size: self.grant.world_size,
            node: NODE,
            child: ChildIndex(rank as u16),
            limits: trib_proto::Limits::from(&self.grant.limits),
            recovers: false,
            memory: u64::MAX,
            strict: false,
        }
    }

    /// A rank comes, over an edge that is new.
    pub fn connect(&self, worker: &mut Stepped, rank: u32) -> Rank {
        let (own, far) = NearSocket::pair(FAR).expect("memory for an edge");
        let child = ChildIndex(rank as u16);
        worker.link_up(self.node(), child, (StreamSocket::near(far), FAR));
        let keys = self.key.node(self.grant.job, NODE, 0).edge(child, 0).keys(&Placement::FIRST);
        let results = Results::of(&self.results, self.grant.limits.mode);
        Rank::new(self.config(rank), (keys, &results), StreamSocket::near(own))
    }
}

/// Small limits of a job.
pub fn limits(draw: &mut Draw<'_>) -> Limits {
    let window = 1 + draw.below(4);
    Limits {
        groups: 1 + draw.below(4),
        window,
        osts: window * (1 + draw.below(3)),
        payload: 1024,
        streams: 1 + draw.below(2),
        segment: 4096,
        staging: 1 + draw.below(4),
        flight: 1 + draw.below(4),
        control_memory: 64 << 10,
        stream_threshold: draw.pick(&[0, 64, 1 << 20]),
        lease_operations: draw.below(3),
        heartbeat_ms: 500,
        dead_after_ms: 20_000,
        recovery: Recovery::Notify,
        mode: Mode::Checked,
        faults: false,
    }
}

const NODE: NodeId = NodeId(0);
/// The address that either end takes for the other's.
const FAR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4000);
