//! Two ends of an edge in one process, a hostile end, and doors that do not open.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use trib_wire::auth::FrameKey;
use trib_wire::header::{DATAGRAM_MAX, HEADER_LEN};
use trib_wire::{ChildIndex, Epoch, Header, JobId, Kind, NodeId};

use super::segment::{End, Use, ring_len};
use super::{Call, Door, NearSocket, NoDoor, Records, call};
use crate::udp::{Sent, UdpCounters, seal};

const KEY: FrameKey = FrameKey([5; 16]);

/// An address at which no other test opens a door.
fn address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let pid = std::process::id();
    format!("[fd00::{:x}:{:x}]:{}", pid >> 16, pid & 0xffff, NEXT.fetch_add(1, Relaxed)).parse().unwrap()
}

fn call_within(millis: u64, address: SocketAddr) -> Result<Call, NoDoor> {
    call(address, Instant::now() + Duration::from_millis(millis))
}

/// The child's end and the node's.
fn pair() -> (NearSocket, NearSocket) {
    let address = address();
    let door = Door::open(address).unwrap();
    let call = call_within(10_000, address).ok().unwrap();
    call.say_with_memory(b"proof").unwrap();
    let mut node = door.accept().unwrap();
    let mut said = [0; 5];
    node.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"proof");
    node.share().unwrap();
    node.open(address);
    (call.open(address).unwrap(), node)
}

#[test]
fn what_one_end_of_a_pair_writes_and_sends_comes_to_the_other_and_so_does_its_end() {
    let (mut child, mut node) = NearSocket::pair(address()).unwrap();
    child.write_all(b"up").unwrap();
    let mut got = [0; 2];
    node.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"up");
    assert!(would_block(node.read(&mut got)));
    let (mut up, mut come_up) = (child.take_records().unwrap(), node.take_records().unwrap());
    send(&mut up, 9, b"datagram");
    assert_eq!(come(&mut come_up).0, [(9, 8)]);
    drop((child, up));
    assert_eq!(node.read(&mut got).unwrap(), 0);
}

fn is_rung(end: &NearSocket) -> bool {
    let line = end.glance().unwrap();
    // SAFETY: the glance keeps the bell open.
    let bell = unsafe { std::os::fd::BorrowedFd::borrow_raw(line.bell()) };
    let mut entries = [PollFd::new(&bell, PollFlags::IN)];
    let rung = poll(&mut entries, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1;
    line.clear_bell();
    rung
}

fn would_block<T: std::fmt::Debug>(result: std::io::Result<T>) -> bool {
    result.unwrap_err().kind() == ErrorKind::WouldBlock
}

fn header(seq: u64, payload: usize) -> Header {
    let mut header = Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
    header.seq = seq;
    header.elements = payload as u32;
    header
}

fn send(records: &mut Records, seq: u64, payload: &[u8]) -> Sent {
    records.out.send(&seal(&header(seq, payload.len()), &KEY, payload), payload)
}

/// What has come: numbers and lengths, and whether every tag is right.
fn come(records: &mut Records) -> (Vec<(u64, usize)>, UdpCounters) {
    let (mut seen, mut rejected) = (Vec::new(), UdpCounters::default());
    while let Some(datagram) = records.come.next(&mut rejected) {
        assert!(datagram.verify(&KEY).is_ok());
        seen.push((datagram.header.seq, datagram.payload.len()));
    }
    (seen, rejected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is written in whatever pieces comes out as it went in, in both directions.
    #[test]
    fn bytes_come_as_they_went(pieces in prop::collection::vec((1usize..300_000, 1usize..300_000, any::<bool>()), 1..24)) {
        let (mut child, mut node) = pair();
        let mut sent = [0u64; 2];
        let mut got = [0u64; 2];
        let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        for (out, into, up) in pieces {
            let way = usize::from(up);
            let (from, to) = if up { (&mut child, &mut node) } else { (&mut node, &mut child) };
            let bytes: Vec<u8> = (sent[way]..sent[way] + out as u64).map(byte).collect();
            match from.write(&bytes) {
                Ok(written) => sent[way] += written as u64,
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let mut bytes = vec![0; into];
            match to.read(&mut bytes) {
                Ok(read) => {
                    for (at, found) in bytes[..read].iter().enumerate() {
                        prop_assert_eq!(*found, byte(got[way] + at as u64));
                    }
                    got[way] += read as u64;
                }
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            prop_assert!(sent[way] - got[way] <= ring_len(Use::Stream) as u64);
        }
    }
}

#[test]
fn a_full_ring_takes_no_more_until_half_of_it_is_read() {
    let (mut child, mut node) = pair();
    let all = ring_len(Use::Stream);
    assert_eq!(child.write(&vec![1; all + 1]).unwrap(), all);
    assert!(would_block(child.write(&[1])));
    let line = child.glance().unwrap();
    assert!(line.fall_asleep());
    node.read_exact(&mut vec![0; all / 2 - 1]).unwrap();
    assert!(!is_rung(&child));
    node.read_exact(&mut [0]).unwrap();
    assert!(is_rung(&child));
    assert!(line.has_room() && !line.has_room(), "it is told once");
    assert_eq!(child.write(&vec![1; all]).unwrap(), all / 2);
}

#[test]
fn a_bell_is_rung_for_who_is_asleep_and_once() {
    let (mut child, mut node) = pair();
    let mut records = child.take_records().unwrap();
    child.write_all(&[1]).unwrap();
    assert!(!is_rung(&node), "who is awake looks for itself");
    let line = node.glance().unwrap();
    assert!(!line.fall_asleep(), "something is there");
    node.read_exact(&mut [0]).unwrap();
    assert!(line.fall_asleep());
    child.write_all(&[1]).unwrap();
    child.write_all(&[1]).unwrap();
    assert!(is_rung(&node) && !is_rung(&node));
    node.read_exact(&mut [0; 2]).unwrap();

    // A low-water mark holds for bytes, and not for datagrams.
    node.set_low_water(100);
    assert!(line.fall_asleep());
    child.write_all(&[1; 99]).unwrap();
    assert!(!is_rung(&node));
    assert!(line.has_come(), "who looks is told of every byte");
    child.write_all(&[1]).unwrap();
    assert!(is_rung(&node));
    node.read_exact(&mut [0; 100]).unwrap();
    assert!(line.fall_asleep());
    assert_eq!(send(&mut records, 1, &[]), Sent::Tried);
    assert!(is_rung(&node));
    line.fall_asleep_or_ring();
    assert!(is_rung(&node), "a thread that sleeps in any case is woken by what is there");
}

#[test]
fn bytes_that_are_left_for_later_wake_nobody_and_datagrams_do() {
    let (mut child, mut node) = pair();
    let mut records = child.take_records().unwrap();
    let line = node.glance().unwrap();
    node.set_held(true);
    let all = vec![1; ring_len(Use::Stream)];
    assert_eq!(child.write(&all[1..]).unwrap(), all.len() - 1);
    assert!(!line.has_come() && !line.has_bytes());
    assert!(line.fall_asleep());
    assert_eq!(child.write(&[1]).unwrap(), 1);
    assert!(!is_rung(&node));
    assert_eq!(send(&mut records, 1, &[]), Sent::Tried);
    assert!(is_rung(&node) && line.has_come());
    come(&mut node.take_records().unwrap());
    assert!(!line.has_come());
    node.set_held(false);
    assert!(line.has_come() && line.has_bytes() && !line.fall_asleep());
}

#[test]
fn the_end_comes_after_the_last_byte() {
    let (mut child, mut node) = pair();
    assert!(would_block(node.read(&mut [0])));
    child.write_all(&[1, 2]).unwrap();
    drop(child);
    let mut bytes = [0; 8];
    assert_eq!(node.read(&mut bytes).unwrap(), 2);
    // Only who is told by poll asks after the end at once.
    assert!(would_block(node.read(&mut bytes)));
    assert_eq!(node.read(&mut bytes).unwrap(), 0);

    let (child, mut node) = pair();
    child.finish().unwrap();
    node.expect_end();
    assert_eq!(node.read(&mut bytes).unwrap(), 0);
}

#[test]
fn datagrams_keep_their_order_and_what_has_no_room_is_lost_and_counted() {
    let (mut child, mut node) = pair();
    let (mut up, mut down) = (child.take_records().unwrap(), node.take_records().unwrap());
    for (seq, len) in [(1, 0), (2, 7), (3, 1400), (4, 8)] {
        assert_eq!(send(&mut up, seq, &vec![9; len]), Sent::Tried);
    }
    assert_eq!(come(&mut down).0, [(1, 0), (2, 7), (3, 1400), (4, 8)]);
    // The longest one that a job may ask for comes wherever the ring is written next.
    assert_eq!(send(&mut up, 5, &vec![0; DATAGRAM_MAX as usize]), Sent::Tried);
    assert_eq!(come(&mut down).0, [(5, DATAGRAM_MAX as usize)]);
    assert_eq!(send(&mut up, 6, &vec![0; ring_len(Use::Records) - HEADER_LEN]), Sent::TooLong);
    assert_eq!(up.out.counters().send_too_long, 1);
    for seq in 0..200 {
        send(&mut up, seq, &[0; 1000]);
    }
    let (seen, rejected) = come(&mut down);
    let (sent, lost) = (up.out.counters().sent - 5, up.out.counters().send_failed);
    assert!(sent < 70 && sent + lost == 200, "{sent} sent, {lost} lost");
    assert_eq!(seen, (0..sent).map(|seq| (seq, 1000)).collect::<Vec<_>>());
    assert_eq!(rejected, UdpCounters::default());
    for seq in 0..500 {
        send(&mut down, seq, &[0; 333]);
        assert_eq!(come(&mut up).0, [(seq, 333)]);
    }
}

#[test]
fn a_far_end_that_spoils_the_memory_harms_nobody_else() {
    let (child, mut node) = pair();
    let mut down = node.take_records().unwrap();
    let line = child.line().clone();
    for count in [u64::MAX, ring_len(Use::Stream) as u64 + 1] {
        line.segment.put(End::Child, Use::Stream).store(count, Relaxed);
        assert_eq!(node.read(&mut [0; 64]).unwrap_err().kind(), ErrorKind::InvalidData);
    }
    line.segment.taken(End::Node, Use::Stream).store(1, Relaxed);
    assert_eq!(node.write(&[0; 64]).unwrap_err().kind(), ErrorKind::InvalidData);

    // Lengths of datagrams that lie outside what was put, and counts that lie outside the ring.
    for (len, put) in [(u64::MAX, 64), (1 << 20, 64), (57, 64), (0, 4)] {
        let (mut child, mut node) = pair();
        let (_, mut down) = (child.take_records(), node.take_records().unwrap());
        let line = child.line();
        // SAFETY: the ring has room for a word, and nobody reads it meanwhile.
        unsafe { line.segment.ring(End::Child, Use::Records).cast::<u64>().write(len) };
        line.segment.put(End::Child, Use::Records).store(put, Relaxed);
        let (seen, rejected) = come(&mut down);
        assert_eq!((seen.len(), rejected.rejected_malformed), (0, 1), "{len} of {put}");
        assert!(!node.glance().unwrap().has_records());
    }
    line.segment.put(End::Child, Use::Records).store(u64::MAX, Relaxed);
    assert_eq!(come(&mut down).0, []);
    assert!(!node.glance().unwrap().has_records(), "nobody looks for ever");
}

#[test]
fn only_memory_of_a_sealed_size_is_mapped() {
    let memory = |len: u64, seals: SealFlags| -> OwnedFd {
        let memory = memfd_create("test", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, len).unwrap();
        fcntl_add_seals(&memory, seals).unwrap();
        memory
    };
    let sealed = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    let right = super::segment::LEN as u64;
    let open = |memory: &OwnedFd| super::segment::Segment::open(memory).is_ok();
    assert!(open(&memory(right, sealed)));
    assert!(!open(&memory(right, SealFlags::GROW)), "it could be cut below us");
    assert!(!open(&memory(right - 4096, sealed)));
    let (socket, _far) = UnixStream::pair().unwrap();
    assert!(!open(&socket.as_fd().try_clone_to_owned().unwrap()));

    let (stream, mut far) = UnixStream::pair().unwrap();
    let mut node = NearSocket::accepted(stream).unwrap();
    far.write_all(b"x").unwrap();
    node.read_exact(&mut [0]).unwrap();
    assert_eq!(node.share().unwrap_err().kind(), ErrorKind::InvalidData, "nothing was offered");
}

#[test]
fn a_door_that_is_not_there_is_told_apart() {
    assert!(matches!(call_within(10_000, address()), Err(NoDoor::Absent)));
    let address = address();
    let _door = Door::open(address).unwrap();
    assert_eq!(Door::open(address).err().unwrap().kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_call_that_nobody_takes_ends_in_time() {
    let address = address();
    let listener =
        UnixListener::bind_addr(&net::SocketAddr::from_abstract_name(format!("tributary/{address}")).unwrap()).unwrap();
    // One caller may wait to be taken.
    rustix::net::listen(&listener, 0).unwrap();
    let _waits = call_within(10_000, address).ok().unwrap();
    assert!(matches!(call_within(200, address), Err(NoDoor::Closed)));
    drop(listener.accept().unwrap());
    assert!(call_within(10_000, address).is_ok());
}
