//! Two ends of an edge in one process and in two, a hostile end, and an end that is killed.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use trib_keys::HelloKey;
use trib_wire::auth::FrameKey;
use trib_wire::header::{DATAGRAM_MAX, HEADER_LEN};
use trib_wire::hello::{Hello, Status};
use trib_wire::offer::Offer;
use trib_wire::{ChildIndex, Epoch, Header, JobId, Kind as FrameKind, Mode, NodeId, Placement};

use super::edge::{Edge, Line};
use super::message::{Head, Kind};
use super::outgoing::Outgoing;
use super::{PIECE, RECORDS, Stub, UcxInbox, UcxOutbox, UcxSocket, UcxWorker, WINDOW, devices};
use crate::tcp::{Admission, Admitted, Caller, Denied, HandshakeError, Identity, Progress, StreamSocket, connect_once};
use crate::udp::{Sent, UdpCounters, seal};

const KEY: FrameKey = FrameKey([5; 16]);
const PATIENCE: Duration = Duration::from_secs(30);

/// A worker over this machine's own network. Long messages are fetched by their receiver if
/// `fetches` says so.
fn worker(fetches: bool) -> UcxWorker {
    let fetch = if fetches { "1" } else { "inf" };
    UcxWorker::with(&[("TLS", "tcp,self"), ("RNDV_THRESH", fetch)]).expect("scripts/install-dependencies installs UCX")
}

fn end(stream: TcpStream, stub: Stub) -> UcxSocket {
    stream.set_nonblocking(true).unwrap();
    let peer = stream.peer_addr().unwrap();
    UcxSocket::new(mio::net::TcpStream::from_std(stream), stub, peer)
}

/// Both ends of an edge.
fn pair(fetches: bool) -> (UcxSocket, UcxSocket) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let child = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let node = listener.accept().unwrap().0;
    let stubs = [1, 2].map(|name| Stub::at(&worker(fetches), name).unwrap());
    let [above, below] = stubs.each_ref().map(|stub| stub.offer().unwrap());
    stubs[0].meet(&below).unwrap();
    stubs[1].meet(&above).unwrap();
    let [first, second] = stubs;
    (end(child, first), end(node, second))
}

/// Lets both ends work until something holds.
fn until(ends: [&UcxSocket; 2], what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        ends.iter().for_each(|end| end.glance().worker().drive());
        assert!(start.elapsed() < PATIENCE, "it takes too long");
    }
}

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Writes `bytes` bytes from position `at` of a known sequence, as far as there is room.
fn write(end: &mut UcxSocket, at: u64, bytes: usize) -> usize {
    let bytes: Vec<u8> = (at..at + bytes as u64).map(byte).collect();
    match end.write(&bytes) {
        Ok(written) => written,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            0
        }
    }
}

/// Reads and checks bytes of the sequence from position `at`. Returns their number.
fn read(end: &mut UcxSocket, at: u64, most: usize) -> usize {
    end.glance().worker().drive();
    let mut bytes = vec![0; most];
    match end.read(&mut bytes) {
        Ok(read) => {
            assert!(read > 0, "the end has come too early");
            for (found, at) in bytes[..read].iter().zip(at..) {
                assert_eq!(*found, byte(at), "byte {at}");
            }
            read
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            0
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Whatever is written in whatever pieces comes out as it went in, in both directions, whether
    /// long messages come at once or are fetched.
    #[test]
    fn bytes_come_as_they_went(
        fetches: bool,
        pieces in prop::collection::vec((1usize..300_000, 1usize..300_000, any::<bool>()), 1..64),
    ) {
        let (mut child, mut node) = pair(fetches);
        let (mut sent, mut got) = ([0u64; 2], [0u64; 2]);
        for (out, into, up) in pieces {
            let way = usize::from(up);
            let (from, to) = if up { (&mut child, &mut node) } else { (&mut node, &mut child) };
            sent[way] += write(from, sent[way], out) as u64;
            got[way] += read(to, got[way], into) as u64;
            prop_assert!(sent[way] - got[way] <= WINDOW as u64);
        }
        let start = Instant::now();
        while sent != got {
            got[1] += read(&mut node, got[1], 100_000) as u64;
            got[0] += read(&mut child, got[0], 100_000) as u64;
            prop_assert!(start.elapsed() < PATIENCE, "{:?} of {:?} have come", got, sent);
        }
    }
}

#[test]
fn a_full_window_takes_no_more_until_half_of_it_is_read() {
    for fetches in [false, true] {
        let (mut child, mut node) = pair(fetches);
        let written = write(&mut child, 0, WINDOW + 1);
        assert_eq!(written, WINDOW);
        assert_eq!(write(&mut child, 0, 1), 0);
        let (near, far) = (child.glance(), node.glance());
        until([&child, &node], || far.edge.with(|state| state.come.waiting() == WINDOW as u64));
        assert!(!near.has_come());
        assert_eq!(read(&mut node, 0, WINDOW), WINDOW);
        until([&child, &node], || near.has_come());
        assert!(near.has_room() && !near.has_room(), "it is told once");
        assert!(write(&mut child, written as u64, WINDOW) >= WINDOW / 2);
    }
}

/// Sleeps on the bell. Returns whether it was rung.
fn is_rung(end: &UcxSocket, limit_ms: libc::c_int) -> bool {
    let mut entry = libc::pollfd { fd: end.glance().bell(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry that lives across the call.
    unsafe { libc::poll(&raw mut entry, 1, limit_ms) == 1 }
}

#[test]
fn who_sleeps_is_woken_by_bytes_and_by_datagrams() {
    let (mut child, mut node) = pair(false);
    let ((mut out, _), (_, mut inbox)) = (child.take_records().unwrap(), node.take_records().unwrap());
    // The way to the far end is found while both ends work.
    write(&mut child, 0, 1);
    until([&child, &node], || node.glance().has_bytes());
    assert_eq!(read(&mut node, 0, 9), 1);
    for round in 0..20u64 {
        until([&child, &node], || node.glance().fall_asleep());
        if round % 2 == 0 {
            assert_eq!(write(&mut child, 1 + round / 2, 1), 1);
        } else {
            assert_eq!(send(&mut out, round, &[1; 100]), Sent::Tried);
        }
        assert!(is_rung(&node, 10_000), "round {round}");
        until([&child, &node], || node.glance().has_come());
        if round % 2 == 0 {
            assert_eq!(read(&mut node, 1 + round / 2, 9), 1);
        } else {
            assert_eq!(come(&mut inbox).0, [(round, 100)]);
        }
    }
    until([&child, &node], || node.glance().fall_asleep());
    node.glance().worker().ring();
    assert!(is_rung(&node, 10_000), "a thread may wake another");
}

#[test]
fn the_end_comes_after_the_last_byte() {
    for fetches in [false, true] {
        let (mut child, mut node) = pair(fetches);
        let written = write(&mut child, 0, 200_000);
        assert_eq!(written, 200_000);
        let closing = std::thread::spawn(move || {
            let worker = child.glance().worker().clone();
            drop(child);
            worker.see_off(PATIENCE);
        });
        let (mut got, start) = (0, Instant::now());
        node.expect_end();
        while got < written {
            got += read(&mut node, got as u64, 1 << 20);
            assert!(start.elapsed() < PATIENCE);
        }
        while node.read(&mut [0; 8]).map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |read| read > 0) {
            node.glance().worker().drive();
            assert!(start.elapsed() < PATIENCE);
        }
        closing.join().unwrap();
        assert_eq!(node.read(&mut [0; 8]).unwrap(), 0, "and stays the end");
    }
}

fn header(seq: u64, payload: usize) -> Header {
    let mut header = Header::new(FrameKind::Contribution, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
    header.seq = seq;
    header.elements = payload as u32;
    header
}

fn send(out: &mut UcxOutbox, seq: u64, payload: &[u8]) -> Sent {
    out.send(&seal(&header(seq, payload.len()), &KEY, payload), payload)
}

/// What has come: numbers and lengths, and whether every tag is right.
fn come(inbox: &mut UcxInbox) -> (Vec<(u64, usize)>, UdpCounters) {
    let (mut seen, mut rejected) = (Vec::new(), UdpCounters::default());
    while let Some(datagram) = inbox.next(&mut rejected) {
        assert!(datagram.verify(&KEY).is_ok());
        seen.push((datagram.header.seq, datagram.payload.len()));
    }
    (seen, rejected)
}

#[test]
fn datagrams_keep_their_order_and_what_has_no_room_is_lost() {
    let (mut child, mut node) = pair(true);
    let ((mut up, _), (_, mut down)) = (child.take_records().unwrap(), node.take_records().unwrap());
    for (seq, len) in [(1, 0), (2, 7), (3, 1400), (4, 8)] {
        assert_eq!(send(&mut up, seq, &vec![9; len]), Sent::Tried);
    }
    let mut seen = Vec::new();
    let start = Instant::now();
    while seen.len() < 4 && start.elapsed() < PATIENCE {
        [&child, &node].iter().for_each(|end| end.glance().worker().drive());
        seen.extend(come(&mut down).0);
    }
    assert_eq!(seen, [(1, 0), (2, 7), (3, 1400), (4, 8)]);
    // The longest one that a job may ask for comes wherever the memory is written next.
    until([&child, &node], || !child.glance().is_sending());
    assert_eq!(send(&mut up, 5, &vec![0; DATAGRAM_MAX as usize]), Sent::Tried);
    until([&child, &node], || node.glance().has_records());
    assert_eq!(come(&mut down).0, [(5, DATAGRAM_MAX as usize)]);
    assert_eq!(send(&mut up, 6, &vec![0; RECORDS - HEADER_LEN]), Sent::TooLong);
    assert_eq!(up.counters().send_too_long, 1);
    // Nobody takes them out.
    for seq in 0..200 {
        send(&mut up, seq, &[0; 1000]);
        [&child, &node].iter().for_each(|end| end.glance().worker().drive());
    }
    let (seen, rejected) = come(&mut down);
    assert!((1..70).contains(&seen.len()), "{} have come", seen.len());
    assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(rejected, UdpCounters::default());
}

/// A message as the far end would send it that does not keep to the rules.
fn forge(worker: &UcxWorker, edge: &Arc<Edge>, head: Head, payload: &[u8]) {
    let mut memory = Outgoing::new(4 * PIECE).unwrap();
    let post = memory.put_message(head, [payload].into_iter());
    worker.post(&worker.turn(), edge, Line::Bytes, post);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(20) {
        worker.drive();
    }
    // UCX may read it for as long as the test runs.
    std::mem::forget(memory);
}

#[test]
fn what_a_hostile_end_says_is_refused_before_a_byte_is_taken() {
    let bytes = |at, taken| Head { name: 2, kind: Kind::Bytes, at, taken };
    for fetches in [false, true] {
        for (head, len) in [
            (bytes(0, 0), PIECE + 1),
            (bytes(0, 0), 3 * PIECE),
            (bytes(0, 0), 0),
            (bytes(WINDOW as u64, 0), 1),
            (bytes(u64::MAX - 1, 0), 64),
            (bytes(0, 1), 8),
            (bytes(WINDOW as u64 - 8, 0), 9),
            (Head { name: 2, kind: Kind::Record, at: 0, taken: 0 }, RECORDS - 7),
        ] {
            let (child, mut node) = pair(fetches);
            let (worker, edge) = (child.glance().worker().clone(), child.glance().edge);
            forge(&worker, &edge, head, &vec![1; len]);
            until([&child, &node], || node.glance().has_bytes());
            // What it has sent beside a lie may still be read.
            let error = std::iter::repeat_with(|| node.read(&mut [0; 64])).find_map(Result::err);
            assert_eq!(error.unwrap().kind(), ErrorKind::ConnectionReset, "{head:?}, {len} bytes");
        }
        let (child, node) = pair(fetches);
        let (worker, edge) = (child.glance().worker().clone(), child.glance().edge);
        forge(&worker, &edge, Head { name: 99, kind: Kind::Bytes, at: 0, taken: 0 }, &[1; 10]);
        until([&child, &node], || node.glance().worker().counters().rejected > 0);
        assert!(!node.glance().has_come(), "who does not know its name reaches no edge");
    }
}

/// What the other process does in `a_killed_process_is_noticed`. In other runs it does nothing.
#[test]
fn the_other_process() {
    let Ok(address) = std::env::var("TRIB_UCX_TEST_ADDRESS") else { return };
    let mut stream = TcpStream::connect(address.parse::<SocketAddr>().unwrap()).unwrap();
    let stub = Stub::at(&worker(false), 7).unwrap();
    stream.write_all(&stub.offer().unwrap().to_bytes()).unwrap();
    stub.meet(&hear(&mut stream)).unwrap();
    let mut end = end(stream, stub);
    let (mut sent, mut got) = (0, 0);
    loop {
        // It gives back what it gets.
        got += read(&mut end, got, 1 << 20) as u64;
        sent += write(&mut end, sent, (got - sent) as usize) as u64;
    }
}

fn hear(stream: &mut TcpStream) -> Offer {
    let mut head = [0; Offer::LEN];
    stream.read_exact(&mut head).unwrap();
    let mut bytes = vec![0; Offer::len_of(&head).unwrap()];
    bytes[..head.len()].copy_from_slice(&head);
    stream.read_exact(&mut bytes[head.len()..]).unwrap();
    Offer::parse(&bytes).unwrap()
}

#[test]
fn a_killed_process_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = std::env::current_exe().unwrap();
    let mut other = Command::new(program)
        .args(["ucx::tests::the_other_process", "--exact"])
        .env("TRIB_UCX_TEST_ADDRESS", listener.local_addr().unwrap().to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stream = listener.accept().unwrap().0;
    let stub = Stub::at(&worker(false), 8).unwrap();
    let offer = hear(&mut stream);
    stream.write_all(&stub.offer().unwrap().to_bytes()).unwrap();
    stub.meet(&offer).unwrap();
    let mut end = end(stream, stub);
    let (mut sent, mut got, start) = (0, 0, Instant::now());
    while got < 4 << 20 {
        sent += write(&mut end, sent, 1 << 20) as u64;
        got += read(&mut end, got, 1 << 20) as u64;
        assert!(start.elapsed() < PATIENCE, "{got} of {sent} bytes came back");
    }
    other.kill().unwrap();
    other.wait().unwrap();
    end.expect_end();
    let start = Instant::now();
    let over = loop {
        end.glance().worker().drive();
        match end.read(&mut vec![0; 1 << 20]) {
            Ok(0) => break true,
            Err(error) if error.kind() != ErrorKind::WouldBlock => break true,
            _ if start.elapsed() > PATIENCE => break false,
            _ => {}
        }
    };
    assert!(over, "nobody noticed");
}

#[test]
fn devices_have_names() {
    let found = devices().unwrap();
    assert!(found.version.starts_with("1."), "{found:?}");
    assert!(found.devices.iter().any(|device| device.starts_with("tcp/")), "{found:?}");
}

/// A node that expects its child over UCX, or over TCP.
struct Expecting(Option<UcxWorker>);

impl Admission for Expecting {
    fn admit(&mut self, _hello: &Hello, _peer: SocketAddr) -> Result<Admitted, (Status, Epoch)> {
        Ok(Admitted { key: HELLO_KEY, epoch: Epoch(4), udp_port: 99, ucx: self.0.clone() })
    }

    fn confirm(&mut self, _hello: &Hello, _peer: SocketAddr) -> Result<FrameKey, Denied> {
        Ok(KEY)
    }
}

const HELLO_KEY: HelloKey = HelloKey([3; 32]);

/// What both ends say of a call.
fn call(
    below: Option<UcxWorker>,
    above: Option<UcxWorker>,
) -> (Result<StreamSocket, HandshakeError>, Option<StreamSocket>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let node = std::thread::spawn(move || {
        let (stream, peer) = listener.accept().unwrap();
        let mut caller = Caller::new(StreamSocket::new(stream).unwrap(), peer, Instant::now());
        loop {
            match caller.advance(&mut Expecting(above.clone())) {
                Progress::Open(_) => return Some(caller.into_socket()),
                Progress::Failed(_) => return None,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    });
    let identity = Identity {
        job: JobId(1),
        epoch: Epoch(4),
        node: NodeId(0),
        child: ChildIndex(2),
        channel: 0,
        mode: Mode::Checked,
        udp_port: 77,
        shares: false,
        ucx: below,
        placement: Placement::FIRST,
    };
    let child = connect_once(None, address, &identity, &HELLO_KEY, PATIENCE).map(|connected| connected.socket);
    (child, node.join().unwrap())
}

#[test]
fn the_handshake_opens_an_edge_where_both_ends_want_ucx_and_refuses_it_where_one_does() {
    let (child, node) = call(Some(worker(false)), Some(worker(false)));
    let (mut child, mut node) = (child.unwrap(), node.unwrap());
    assert!(child.glance().unwrap().ucx().is_some() && node.glance().unwrap().ucx().is_some());
    node.write_all(&[1, 2, 3]).unwrap();
    let (mut bytes, start) = ([0; 8], Instant::now());
    let read = loop {
        [&child, &node].iter().for_each(|end| end.glance().unwrap().drive());
        match child.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && start.elapsed() < PATIENCE => {}
            read => break read.unwrap(),
        }
    };
    assert_eq!(bytes[..read], [1, 2, 3]);

    for (below, above) in [(Some(worker(false)), None), (None, Some(worker(false)))] {
        let (child, node) = call(below, above);
        assert!(matches!(child, Err(HandshakeError::Refused(Status::WrongWay))), "{child:?}");
        assert!(node.is_none());
    }
}
