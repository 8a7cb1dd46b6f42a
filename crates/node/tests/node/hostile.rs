//! Frames that do not belong to a job change nothing in it, and are counted.

use std::net::UdpSocket;

use crate::support::{Rank, Tree, await_count, drive, node};
use trib_node::Node;
use trib_transport::udp::DatagramSocket;
use trib_wire::auth::FrameKey;
use trib_wire::{
    ChildIndex, Collective, DataType, Epoch, Header, JobId, Kind, NodeId, RankList, ReduceOp, Signature, WireFormat,
};

const SUM: Signature = Signature {
    collective: Collective::Allreduce,
    dtype: DataType::I64,
    op: ReduceOp::Sum,
    format: WireFormat::Plain,
    root: 0,
    count: 4,
};

/// One node, two ranks, a group, and a contribution of rank 0's that waits for rank 1's.
struct Waiting {
    node: Node,
    ranks: Vec<Rank>,
    groups: Vec<trib_proto::leaf::GroupId>,
}

impl Waiting {
    fn new() -> Waiting {
        let node = node(1);
        let tree = Tree::new(1, 0, 2);
        node.install(tree.root()).unwrap();
        let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, node.address())).collect();
        let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(2))).collect();
        drive(&mut ranks, "group creation", |rank| rank.is_ready(groups[0]));
        Waiting { node, ranks, groups }
    }

    /// The header of a contribution in the name of rank 1.
    fn forgery(&self) -> Header {
        let mut header = Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(0), ChildIndex(1));
        header.signature = SUM;
        header.elements = 4;
        header.payload_len = 32;
        header
    }

    /// Checks that the sum is what the two ranks gave and nothing else.
    fn finish(&mut self) {
        let vector = |n: i64| [n; 4].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let op = self.ranks[0].post(self.groups[0], SUM, vector(5));
        self.ranks[1].post(self.groups[1], SUM, vector(7));
        drive(&mut self.ranks, "allreduce", |rank| rank.is_done(op));
        for rank in &self.ranks {
            assert_eq!(rank.result(op).unwrap(), vector(12));
        }
    }
}

#[test]
fn forged_replayed_and_foreign_datagrams_are_counted_and_dropped() {
    let mut job = Waiting::new();
    let mut stranger = DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 16).unwrap();
    let (to, key, foreign) = job.ranks[1].datagram_edge();
    let wrong = FrameKey([0xee; 16]);
    let header = job.forgery();
    let bytes = [0xff; 32];
    // A frame with the right key from a wrong address looks like a replay.
    stranger.send(&header, &key, &bytes, &[to]);
    await_count(&job.node, "rejected_source", 1);
    // This one comes from the right address, with a key that is not this child's.
    job.ranks[1].udp().send(&header, &wrong, &bytes, &[to]);
    job.ranks[1].udp().send(&header, &foreign, &bytes, &[to]);
    await_count(&job.node, "rejected_tag", 2);
    // This one has another rank's name.
    job.ranks[0].udp().send(&header, &key, &bytes, &[to]);
    await_count(&job.node, "rejected_source", 2);
    for (name, header) in [
        ("rejected_unknown_job", Header { job: JobId(2), ..header }),
        ("rejected_epoch", Header { epoch: Epoch(2), ..header }),
        ("rejected_child", Header { child: ChildIndex(9), ..header }),
        ("rejected_kind", Header { kind: Kind::Join, ..header }),
    ] {
        // A Join that comes as a datagram is looked for below a parent that this node does not
        // have.
        let name = if name == "rejected_kind" { "rejected_unknown_job" } else { name };
        let before = job.node.counters()[name];
        job.ranks[1].udp().send(&header, &key, &bytes, &[to]);
        await_count(&job.node, name, before + 1);
    }
    let noise = UdpSocket::bind("127.0.0.1:0").unwrap();
    noise.send_to(b"hello", to).unwrap();
    await_count(&job.node, "rejected_malformed", 1);
    let counters = job.node.counters();
    assert_eq!(counters["payload_bytes_in"], 0, "not one byte was accepted");
    job.finish();
}

#[test]
fn nothing_is_answered_to_a_strange_source() {
    let mut job = Waiting::new();
    let (to, key, _) = job.ranks[1].datagram_edge();
    let mut stranger = DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 16).unwrap();
    let header = Header { kind: Kind::Probe, payload_len: 0, ..job.forgery() };
    stranger.send(&header, &key, &[], &[to]);
    await_count(&job.node, "rejected_source", 1);
    job.finish();
    let mut batch = trib_transport::udp::RecvBatch::new(4, 2000);
    assert_eq!(stranger.recv(&mut batch).unwrap(), 0);
}

#[test]
fn a_child_that_sends_another_edges_frames_loses_its_link_and_the_others_learn_who() {
    let mut job = Waiting::new();
    let header = Header { child: ChildIndex(0), ..job.forgery() };
    job.ranks[1].push_data(&header, vec![1; 32]);
    drive(&mut job.ranks[1..], "closing", Rank::is_cut);
    let group = job.groups[0];
    drive(&mut job.ranks[..1], "failure", |rank| rank.failure(group).is_some());
    let fault = job.ranks[0].failure(group).unwrap();
    assert_eq!(fault.rank_a, trib_wire::Rank(1), "{fault}");
    assert_eq!(job.node.counters()["link_faults"], 1);
}

#[test]
fn segments_beyond_the_grant_end_the_link_not_the_node() {
    let mut job = Waiting::new();
    let tree = Tree::new(1, 0, 2);
    let len = tree.limits.segment as usize + 8;
    let mut header = job.forgery();
    header.elements = len as u32 / 8;
    header.payload_len = len as u32;
    job.ranks[1].push_data(&header, vec![1; len]);
    drive(&mut job.ranks[1..], "closing", Rank::is_cut);
    let other = Tree::new(2, 0, 2);
    job.node.install(other.root()).unwrap();
    let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&other, rank, job.node.address())).collect();
    let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(2))).collect();
    drive(&mut ranks, "another job", |rank| rank.is_ready(groups[0]));
    assert_eq!(job.node.counters()["pool_exhausted"], 1);
}
