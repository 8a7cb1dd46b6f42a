//! Only a caller that holds the key gets in, and every other one learns why not.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use trib_keys::HelloKey;
use trib_wire::auth::FrameKey;
use trib_wire::hello::{Challenge, Hello, Proof, Status, Welcome, placement_to_bytes};
use trib_wire::{ChildIndex, Epoch, JobId, Mode, NodeId, Placement};

use crate::memory::{self, NoDoor};
use crate::tcp::StreamSocket;
use crate::tcp::handshake::{
    Admission, Admitted, Caller, Connected, Denied, HandshakeError, Identity, Progress, connect,
};

const KEY: HelloKey = HelloKey([3; 32]);
/// The key of the node's datagrams.
const RESULTS: FrameKey = FrameKey([7; 16]);

/// A node with one job.
#[derive(Default)]
struct Door {
    taken: HashSet<ChildIndex>,
    /// Where the nodes of the tree are, as this process knows it.
    placement: Placement,
}

impl Admission for Door {
    fn admit(&mut self, hello: &Hello, _peer: SocketAddr) -> Result<Admitted, (Status, Epoch)> {
        match hello {
            h if h.job != JobId(1) => Err((Status::UnknownJob, Epoch(0))),
            h if h.epoch != Epoch(4) => Err((Status::WrongEpoch, Epoch(4))),
            h if self.taken.contains(&h.child) => Err((Status::DuplicateChild, Epoch(4))),
            _ => Ok(Admitted { key: KEY, epoch: Epoch(4), udp_port: 99, ucx: None }),
        }
    }

    fn confirm(&mut self, hello: &Hello, _peer: SocketAddr) -> Result<FrameKey, Denied> {
        if !hello.placement.covers(&self.placement) {
            return Err(Denied::Moved(self.placement.clone()));
        }
        if self.taken.insert(hello.child) { Ok(RESULTS) } else { Err(Denied::Status(Status::DuplicateChild)) }
    }
}

fn identity() -> Identity {
    Identity {
        job: JobId(1),
        epoch: Epoch(4),
        node: NodeId(0),
        child: ChildIndex(2),
        channel: 0,
        mode: Mode::Checked,
        udp_port: 77,
        shares: true,
        ucx: None,
        placement: Placement::FIRST,
    }
}

/// Answers as many callers as asked for, one after the other.
fn serve(callers: usize) -> (SocketAddr, thread::JoinHandle<Vec<Result<Hello, HandshakeError>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut door = Door::default();
        (0..callers).map(|_| answer(&listener, &mut door)).collect()
    });
    (address, server)
}

fn answer(listener: &TcpListener, door: &mut Door) -> Result<Hello, HandshakeError> {
    let (stream, peer) = listener.accept().unwrap();
    let mut caller = Caller::new(StreamSocket::new(stream).unwrap(), peer, Instant::now());
    loop {
        match caller.advance(door) {
            Progress::Open(hello) => return Ok(hello),
            Progress::Failed(error) => return Err(error),
            Progress::Reading | Progress::Writing => thread::sleep(Duration::from_millis(1)),
        }
        if Instant::now() > caller.deadline() {
            return Err(HandshakeError::TimedOut);
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(2);

#[test]
fn a_child_with_the_key_gets_in_once() {
    let (address, server) = serve(2);
    let connected = connect(address, &identity(), &KEY, PATIENCE).unwrap();
    assert_eq!(connected.datagrams, SocketAddr::new(address.ip(), 99));
    assert!(connected.results.tags == RESULTS, "the node's key has come with its proof");
    let again = connect(address, &identity(), &KEY, PATIENCE);
    assert!(matches!(again, Err(HandshakeError::Refused(Status::DuplicateChild))));
    let outcomes = server.join().unwrap();
    assert_eq!(outcomes[0].as_ref().unwrap().udp_port, 77);
    assert!(matches!(outcomes[1], Err(HandshakeError::Refused(Status::DuplicateChild))));
}

#[test]
fn a_wrong_key_is_told_apart_from_a_wrong_epoch() {
    let (address, server) = serve(2);
    let wrong = connect(address, &identity(), &HelloKey([4; 32]), PATIENCE);
    assert!(matches!(wrong, Err(HandshakeError::Refused(Status::BadKey))));
    let old = Identity { epoch: Epoch(3), ..identity() };
    let stale = connect(address, &old, &KEY, PATIENCE);
    assert!(matches!(stale, Err(HandshakeError::Refused(Status::WrongEpoch))));
    let outcomes = server.join().unwrap();
    assert!(matches!(outcomes[0], Err(HandshakeError::BadKey)));
    assert!(matches!(outcomes[1], Err(HandshakeError::Refused(Status::WrongEpoch))));
}

#[test]
fn a_child_learns_where_the_tree_is_and_the_node_what_the_child_knows() {
    let moved = Placement::FIRST.without(NodeId(0)).without(NodeId(7)).without(NodeId(7));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut door = Door { placement: moved.clone(), ..Door::default() };
    let server = thread::spawn(move || [answer(&listener, &mut door), answer(&listener, &mut door)]);
    let told = connect(address, &identity(), &KEY, PATIENCE);
    assert!(matches!(told, Err(HandshakeError::Moved(placement)) if placement == moved));
    let further = moved.without(NodeId(3));
    connect(address, &Identity { placement: further.clone(), ..identity() }, &KEY, PATIENCE).unwrap();
    let [first, second] = server.join().unwrap();
    assert!(matches!(first, Err(HandshakeError::Moved(_))));
    assert_eq!(second.unwrap().placement, further);
}

#[test]
fn a_placement_that_the_key_does_not_cover_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; Hello::LEN]).unwrap();
        let challenge = Challenge { status: Status::Accepted, epoch: Epoch(4), udp_port: 9, nonce: [1; 16] };
        stream.write_all(&challenge.to_bytes()).unwrap();
        stream.read_exact(&mut [0; Proof::LEN]).unwrap();
        stream.write_all(&Welcome { mac: [5; 32], ..Welcome::refusal(Status::Moved) }.to_bytes()).unwrap();
        stream.write_all(&placement_to_bytes(&Placement::FIRST.without(NodeId(0)))).unwrap();
    });
    assert!(matches!(connect(address, &identity(), &KEY, PATIENCE), Err(HandshakeError::BadKey)));
    server.join().unwrap();
}

#[test]
fn a_job_that_is_not_known_yet_is_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        // The first caller reaches a process that has not heard of the job.
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; Hello::LEN]).unwrap();
        let unknown = Challenge { status: Status::UnknownJob, epoch: Epoch(0), udp_port: 0, nonce: [0; 16] };
        stream.write_all(&unknown.to_bytes()).unwrap();
        drop(stream);
        answer(&listener, &mut Door::default())
    });
    connect(address, &identity(), &KEY, PATIENCE).unwrap();
    server.join().unwrap().unwrap();
}

#[test]
fn a_job_that_stays_unknown_is_reported_when_patience_ends() {
    let (address, server) = serve(1);
    let stranger = Identity { job: JobId(9), ..identity() };
    let refused = connect(address, &stranger, &KEY, Duration::from_millis(4));
    assert!(matches!(refused, Err(HandshakeError::Refused(Status::UnknownJob) | HandshakeError::TimedOut)));
    server.join().unwrap();
}

#[test]
fn a_recorded_conversation_does_not_open_the_door_again() {
    // There are two nodes with the same key, so that this child has not connected to the second one
    // yet.
    let (first, first_server) = serve(1);
    let record = relay(first);
    first_server.join().unwrap().remove(0).unwrap();
    let (address, server) = serve(1);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&record[..Hello::LEN]).unwrap();
    let mut challenge = [0; Challenge::LEN];
    stream.read_exact(&mut challenge).unwrap();
    assert_eq!(Challenge::parse(&challenge).unwrap().status, Status::Accepted);
    stream.write_all(&record[Hello::LEN..]).unwrap();
    let mut welcome = [0; Welcome::LEN];
    stream.read_exact(&mut welcome).unwrap();
    assert_eq!(Welcome::parse(&welcome).unwrap(), Welcome::refusal(Status::BadKey));
    assert!(matches!(server.join().unwrap()[0], Err(HandshakeError::BadKey)));
}

/// Lets a child through to the node and gives what the child said.
fn relay(node: SocketAddr) -> Vec<u8> {
    let (outcome, record, _) = relay_with(node, |_| ());
    outcome.unwrap();
    record
}

/// The same, with a Welcome that is changed on its way. Gives what became of the child's call, what
/// the child said, and the Welcome as it came from the node.
fn relay_with(
    node: SocketAddr,
    change: impl FnOnce(&mut [u8; Welcome::LEN]) + Send + 'static,
) -> (Result<Connected, HandshakeError>, Vec<u8>, [u8; Welcome::LEN]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let between = thread::spawn(move || {
        let (mut child, _) = listener.accept().unwrap();
        let mut node = TcpStream::connect(node).unwrap();
        let mut record = vec![0; Hello::LEN];
        child.read_exact(&mut record).unwrap();
        node.write_all(&record).unwrap();
        let mut challenge = [0; Challenge::LEN];
        node.read_exact(&mut challenge).unwrap();
        child.write_all(&challenge).unwrap();
        let mut proof = [0; Proof::LEN];
        child.read_exact(&mut proof).unwrap();
        node.write_all(&proof).unwrap();
        record.extend(proof);
        let mut welcome = [0; Welcome::LEN];
        node.read_exact(&mut welcome).unwrap();
        let mut changed = welcome;
        change(&mut changed);
        child.write_all(&changed).unwrap();
        (record, welcome)
    });
    let outcome = connect(address, &identity(), &KEY, PATIENCE);
    let (record, welcome) = between.join().unwrap();
    (outcome, record, welcome)
}

#[test]
fn a_key_that_was_changed_on_its_way_or_comes_from_another_handshake_is_not_taken() {
    let (address, server) = serve(1);
    let (outcome, _, earlier) = relay_with(address, |welcome| welcome[Welcome::LEN - 1] ^= 1);
    assert!(matches!(outcome, Err(HandshakeError::BadKey)), "a bit of the sealed key is another one");
    server.join().unwrap().remove(0).unwrap();
    // The key is the same in both handshakes, and the same ends have the same keys.
    for replayed in [0, Proof::LEN] {
        let (address, server) = serve(1);
        let (outcome, _, welcome) = relay_with(address, move |welcome| {
            welcome[replayed..].copy_from_slice(&earlier[replayed..]);
        });
        assert!(matches!(outcome, Err(HandshakeError::BadKey)), "from byte {replayed} on");
        assert_ne!(welcome[Proof::LEN..], earlier[Proof::LEN..], "it is sealed anew each time");
        server.join().unwrap().remove(0).unwrap();
    }
}

#[test]
fn a_node_without_the_key_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let impostor = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; Hello::LEN]).unwrap();
        let challenge = Challenge { status: Status::Accepted, epoch: Epoch(4), udp_port: 99, nonce: [1; 16] };
        stream.write_all(&challenge.to_bytes()).unwrap();
        stream.read_exact(&mut [0; Proof::LEN]).unwrap();
        let welcome = Welcome { mac: [8; 32], ..Welcome::refusal(Status::Accepted) };
        stream.write_all(&welcome.to_bytes()).unwrap();
    });
    let outcome = connect(address, &identity(), &KEY, PATIENCE);
    assert!(matches!(outcome, Err(HandshakeError::BadKey)));
    impostor.join().unwrap();
}

#[test]
fn both_ends_name_both_versions() {
    let (address, server) = serve(1);
    let mut stream = TcpStream::connect(address).unwrap();
    let mut newer = [0u8; 200];
    newer[..4].copy_from_slice(&trib_wire::hello::HELLO_MAGIC.to_le_bytes());
    newer[4] = 9;
    stream.write_all(&newer).unwrap();
    let mut answer = [0; Challenge::LEN];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(Challenge::parse(&answer).unwrap().status, Status::Version);
    let outcomes = server.join().unwrap();
    assert!(matches!(outcomes[0], Err(HandshakeError::Version { ours: 1, theirs: 9 })));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let future = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; Hello::LEN]).unwrap();
        stream.write_all(&newer[..8]).unwrap();
        stream
    });
    let outcome = connect(address, &identity(), &KEY, PATIENCE);
    assert!(matches!(outcome, Err(HandshakeError::Version { ours: 1, theirs: 9 })));
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("version 1") && text.contains("version 9"), "{text}");
    drop(future.join().unwrap());
}

#[test]
fn a_silent_node_costs_no_more_than_patience() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let started = Instant::now();
    let outcome = connect(listener.local_addr().unwrap(), &identity(), &KEY, Duration::from_millis(50));
    assert!(matches!(outcome, Err(HandshakeError::TimedOut)));
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn something_else_is_not_mistaken_for_a_child() {
    let (address, server) = serve(1);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: node\r\n\r\n            ").unwrap();
    assert!(matches!(server.join().unwrap()[0], Err(HandshakeError::Malformed(_))));
}

/// Answers one caller at the door of this host.
fn answer_near(door: &memory::Door, address: SocketAddr) -> Result<StreamSocket, HandshakeError> {
    let socket = loop {
        match door.accept() {
            Ok(socket) => break StreamSocket::near(socket),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    };
    let (mut caller, mut known) = (Caller::new(socket, address, Instant::now()), Door::default());
    loop {
        match caller.advance(&mut known) {
            Progress::Open(_) => return Ok(caller.into_socket()),
            Progress::Failed(error) => return Err(error),
            Progress::Reading | Progress::Writing => thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[test]
fn who_is_on_the_same_host_shares_memory_after_the_same_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let door = memory::Door::open(address).unwrap();
    let server = thread::spawn(move || {
        let mut outcomes: Vec<_> = (0..2).map(|_| answer_near(&door, address)).collect();
        (outcomes.remove(0).unwrap(), outcomes.remove(0))
    });
    let mut child = connect(address, &identity(), &KEY, PATIENCE).unwrap();
    assert!(child.apart.is_none() && child.results.tags == RESULTS);
    let wrong = connect(address, &identity(), &HelloKey([4; 32]), PATIENCE);
    assert!(matches!(wrong, Err(HandshakeError::Refused(Status::BadKey))));
    let (mut node, refused) = server.join().unwrap();
    assert!(matches!(refused, Err(HandshakeError::BadKey)));
    assert!(child.socket.take_records().is_some() && node.take_records().is_some());
    child.socket.write_all(b"over memory").unwrap();
    let mut bytes = [0; 11];
    node.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"over memory");
}

#[test]
fn where_nobody_shares_memory_the_call_goes_by_tcp() {
    let (address, server) = serve(2);
    let far = connect(address, &identity(), &KEY, PATIENCE).unwrap();
    assert!(matches!(far.apart, Some(NoDoor::Absent)));
    // Who listens at the door hangs up.
    let door = memory::Door::open(address).unwrap();
    let hangs_up = thread::spawn(move || {
        while door.accept().is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let again = Identity { child: ChildIndex(3), ..identity() };
    let far = connect(address, &again, &KEY, PATIENCE).unwrap();
    assert!(matches!(far.apart, Some(NoDoor::Closed)));
    hangs_up.join().unwrap();
    server.join().unwrap();
}
