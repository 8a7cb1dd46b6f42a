use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, Epoch, Header, JobId, Kind, NodeId, ParseError};

use super::{DatagramSocket, RecvBatch, UdpCounters};
use crate::fault::FaultPlan;

const KEY: FrameKey = FrameKey([5; 16]);

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn header(seq: u64, payload: usize) -> Header {
    let mut header = Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
    header.seq = seq;
    header.elements = payload as u32;
    header
}

/// Receives until `wanted` frames are there, or until nothing has come for a while; a datagram that
/// is not a frame is counted.
fn receive(
    socket: &mut DatagramSocket,
    batch: &mut RecvBatch,
    rejected: &mut UdpCounters,
    wanted: usize,
) -> Vec<(u64, Vec<u8>, bool)> {
    let mut frames = Vec::new();
    let mut quiet = Instant::now();
    while frames.len() < wanted && quiet.elapsed() < Duration::from_millis(300) {
        if socket.recv(batch).unwrap() > 0 {
            quiet = Instant::now();
        }
        let seen = batch.frames(rejected);
        frames.extend(seen.map(|d| (d.header.seq, d.payload.to_vec(), d.verify(&KEY).is_ok())));
    }
    frames
}

#[test]
fn one_send_reaches_every_address_with_payload_and_tag() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut children: Vec<_> = (0..3).map(|_| DatagramSocket::bind(any(), 1 << 16).unwrap()).collect();
    let to: Vec<SocketAddr> = children.iter().map(DatagramSocket::local_addr).collect();
    node.send(&header(9, 5), &KEY, b"hello", &to);
    let mut batch = RecvBatch::new(8, 100);
    let mut rejected = UdpCounters::default();
    for child in &mut children {
        assert_eq!(receive(child, &mut batch, &mut rejected, 1), [(9, b"hello".to_vec(), true)]);
    }
    assert_eq!(node.counters().sent, 3);
    assert!(node.recv_buffer() >= 1 << 17);
}

#[test]
fn a_batch_gives_source_and_order_and_refuses_what_is_no_frame() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let stranger = UdpSocket::bind(any()).unwrap();
    for seq in 0..5 {
        child.send(&header(seq, 8), &KEY, &[seq as u8; 8], &[node.local_addr()]);
    }
    stranger.send_to(b"not a frame", node.local_addr()).unwrap();
    stranger.send_to(&[0; 5000], node.local_addr()).unwrap();
    let mut batch = RecvBatch::new(16, 8);
    let mut rejected = UdpCounters::default();
    let frames = receive(&mut node, &mut batch, &mut rejected, 6);
    assert_eq!(frames.len(), 5);
    for (seq, frame) in frames.iter().enumerate() {
        assert_eq!(*frame, (seq as u64, vec![seq as u8; 8], true));
    }
    assert_eq!(node.counters().received, 7);
    assert_eq!(rejected.rejected_malformed, 2);
    child.send(&header(7, 0), &KEY, &[], &[node.local_addr()]);
    let deadline = Instant::now() + Duration::from_secs(2);
    while node.recv(&mut batch).unwrap() == 0 && Instant::now() < deadline {}
    let datagram = batch.frames(&mut rejected).next().unwrap();
    assert_eq!(datagram.source, child.local_addr());
    assert_eq!(datagram.verify(&FrameKey([6; 16])), Err(ParseError::BadTag));
}

#[test]
fn damaged_payloads_and_foreign_versions_have_counters_of_their_own() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let tap = UdpSocket::bind(any()).unwrap();
    child.send(&header(1, 8), &KEY, &[1; 8], &[tap.local_addr().unwrap()]);
    let mut bytes = [0; 200];
    let len = tap.recv(&mut bytes).unwrap();
    for at in [len - 1, 2] {
        let mut changed = bytes;
        changed[at] ^= 0x40;
        tap.send_to(&changed[..len], node.local_addr()).unwrap();
    }
    tap.send_to(&bytes[..len - 1], node.local_addr()).unwrap();
    let mut batch = RecvBatch::new(16, 8);
    let mut rejected = UdpCounters::default();
    assert!(receive(&mut node, &mut batch, &mut rejected, 1).is_empty());
    assert_eq!((rejected.rejected_checksum, rejected.rejected_version, rejected.rejected_malformed), (1, 1, 1));
}

#[test]
fn a_datagram_beyond_the_mtu_is_counted_and_the_rest_goes_on() {
    let mut node = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let target = DatagramSocket::bind(any(), 1 << 16).unwrap().local_addr();
    let too_long = node.send(&header(1, 0), &KEY, &vec![0; 70_000], &[target, target]);
    assert_eq!((too_long, node.counters().send_too_long), (0b11, 2));
    assert_eq!(node.counters().sent, 0);
    assert_eq!(node.send(&header(1, 0), &KEY, &[0; 1_000], &[target, target]), 0);
    assert_eq!(node.overflowed().unwrap(), 0);
}

#[test]
fn a_full_receive_buffer_is_seen() {
    let mut node = DatagramSocket::bind(any(), 1).unwrap();
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    for seq in 0..200 {
        child.send(&header(seq, 1000), &KEY, &[0; 1000], &[node.local_addr()]);
    }
    let mut batch = RecvBatch::new(32, 1000);
    let mut rejected = UdpCounters::default();
    let got = receive(&mut node, &mut batch, &mut rejected, 200).len() as u64;
    assert!(got < 200);
    assert_eq!(got + node.overflowed().unwrap(), child.counters().sent);
}

#[test]
fn the_fault_hook_loses_doubles_and_reorders_both_ways() {
    let plan = FaultPlan::parse("loss=0.1,dup=0.1,reorder=0.1,seed=3").unwrap();
    let [mut node, mut child] = [4 << 20, 1 << 20].map(|buffer| DatagramSocket::bind(any(), buffer).unwrap());
    node.inject(plan);
    child.inject(plan);
    let mut batch = RecvBatch::new(32, 8);
    let mut rejected = UdpCounters::default();
    let mut frames = Vec::new();
    for seq in 0..2000 {
        child.send(&header(seq, 8), &KEY, &[0; 8], &[node.local_addr()]);
        if seq % 50 == 49 {
            frames.extend(receive(&mut node, &mut batch, &mut rejected, 20));
        }
    }
    frames.extend(receive(&mut node, &mut batch, &mut rejected, 2000));
    let seqs: Vec<u64> = frames.iter().map(|f| f.0).collect();
    let mut unique = seqs.clone();
    unique.sort_unstable();
    unique.dedup();
    let lost = child.counters().fault_lost + node.counters().fault_lost;
    assert!((250..550).contains(&lost), "lost {lost}");
    assert!((1500..1800).contains(&unique.len()), "{} different ones arrived", unique.len());
    assert!(seqs.len() > unique.len() + 150, "too few doubles");
    assert!(seqs.windows(2).filter(|pair| pair[0] > pair[1]).count() > 100, "too little reordering");
}

/// Waits, at most ten seconds, until the receiver has a datagram.
fn await_one(socket: &DatagramSocket, batch: &mut RecvBatch) {
    let start = Instant::now();
    while !socket.receiver().has_come(batch) {
        assert!(start.elapsed() < Duration::from_secs(10), "nothing came");
        std::thread::yield_now();
    }
}

#[test]
fn a_receiver_takes_one_datagram_and_its_socket_the_rest() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let mut batch = RecvBatch::new(16, 600);
    assert!(!child.receiver().has_come(&mut batch));
    assert_eq!(child.account(&mut batch), 0);

    // Three of these are short, and one is sent in two pieces.
    for (seq, len) in [(1, 0), (2, 7), (3, 513), (4, 512)] {
        node.send(&header(seq, len), &KEY, &vec![seq as u8; len], &[child.local_addr()]);
    }
    let mut rejected = UdpCounters::default();
    await_one(&child, &mut batch);
    assert_eq!(child.account(&mut batch), 1);
    let seen: Vec<_> = batch.frames(&mut rejected).map(|d| (d.header.seq, d.source)).collect();
    assert_eq!(seen, [(1, node.local_addr())]);

    await_one(&child, &mut batch);
    assert_eq!(child.recv_rest(&mut batch).unwrap(), 3);
    let seen: Vec<_> = batch.frames(&mut rejected).map(|d| (d.header.seq, d.payload.to_vec(), d.source)).collect();
    let expected = [(2, 7), (3, 513), (4, 512)].map(|(seq, len)| (seq, vec![seq as u8; len], node.local_addr()));
    assert_eq!(seen, expected);
    assert_eq!((child.counters().received, node.counters().sent), (4, 4));
    assert_eq!(child.counters().received_bytes, node.counters().sent_bytes);
    assert_eq!(rejected.rejected_malformed, 0);
}

#[test]
fn a_receiver_cuts_what_is_too_long_and_it_is_rejected() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let mut batch = RecvBatch::new(1, 8);
    node.send(&header(1, 100), &KEY, &[7; 100], &[child.local_addr()]);
    await_one(&child, &mut batch);
    assert_eq!(child.recv_rest(&mut batch).unwrap(), 1);
    let mut rejected = UdpCounters::default();
    assert_eq!(batch.frames(&mut rejected).count(), 0);
}

#[test]
fn who_has_settled_hears_and_reaches_one_peer_only() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let mut stranger = DatagramSocket::bind(any(), 1 << 16).unwrap();
    assert!(!child.is_settled());
    child.settle_on(node.local_addr());
    assert!(child.is_settled());
    let (mut batch, mut rejected) = (RecvBatch::new(8, 600), UdpCounters::default());
    for seq in 0..3 {
        stranger.send(&header(100 + seq, 0), &KEY, &[], &[child.local_addr()]);
        node.send(&header(seq, 0), &KEY, &[], &[child.local_addr()]);
    }
    let heard = receive(&mut child, &mut batch, &mut rejected, 6);
    assert_eq!(heard.iter().map(|frame| frame.0).collect::<Vec<_>>(), [0, 1, 2]);
    // Short datagrams take a path of their own.
    for payload in [&b"short"[..], &[7; 600]] {
        child.send(&header(9, payload.len()), &KEY, payload, &[node.local_addr()]);
        assert_eq!(receive(&mut node, &mut batch, &mut rejected, 1), [(9, payload.to_vec(), true)]);
    }
}

#[test]
fn a_refused_datagram_does_not_take_the_next_one_with_it() {
    let mut child = DatagramSocket::bind(any(), 1 << 16).unwrap();
    let address = DatagramSocket::bind(any(), 1 << 16).unwrap().local_addr();
    child.settle_on(address);
    child.send(&header(1, 0), &KEY, &[], &[address]);
    // The refusal is there when the next datagram is sent: on loopback it comes with the call
    // itself.
    let mut node = DatagramSocket::bind(address, 1 << 16).unwrap();
    child.send(&header(2, 0), &KEY, &[], &[address]);
    let (mut batch, mut rejected) = (RecvBatch::new(8, 100), UdpCounters::default());
    let heard = receive(&mut node, &mut batch, &mut rejected, 1);
    assert_eq!(heard.iter().map(|frame| frame.0).collect::<Vec<_>>(), [2]);
    assert_eq!((child.counters().sent, child.counters().send_failed), (2, 0));
}

#[test]
fn what_a_peer_with_a_socket_of_its_own_sends_comes_there_and_the_rest_does_not() {
    let mut node = DatagramSocket::bind(any(), 1 << 20).unwrap();
    let mut children: Vec<_> = (0..8).map(|_| DatagramSocket::bind(any(), 1 << 16).unwrap()).collect();
    let loud = children[3].local_addr();
    let mut aside = node.aside(loud).unwrap();
    assert_eq!(aside.local_addr(), node.local_addr());
    for (at, child) in children.iter_mut().enumerate() {
        child.send(&header(at as u64, 0), &KEY, &[], &[node.local_addr()]);
    }
    let (mut batch, mut rejected) = (RecvBatch::new(32, 100), UdpCounters::default());
    let numbers = |frames: Vec<(u64, Vec<u8>, bool)>| frames.iter().map(|frame| frame.0).collect::<Vec<_>>();
    assert_eq!(numbers(receive(&mut aside, &mut batch, &mut rejected, 2)), [3]);
    assert_eq!(numbers(receive(&mut node, &mut batch, &mut rejected, 8)), [0, 1, 2, 4, 5, 6, 7]);
    // It hears what the node sends as before, and without the socket comes through the node's.
    node.send(&header(50, 0), &KEY, &[], &[loud]);
    assert_eq!(numbers(receive(&mut children[3], &mut batch, &mut rejected, 1)), [50]);
    drop(aside);
    children[3].send(&header(9, 0), &KEY, &[], &[node.local_addr()]);
    assert_eq!(numbers(receive(&mut node, &mut batch, &mut rejected, 1)), [9]);
}
