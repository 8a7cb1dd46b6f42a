//! The calling end of the handshake.

use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use trib_keys::{HelloKey, Results, Session};
use trib_waiting::Pause;
use trib_wire::hello::{
    Challenge, Hello, PREFIX_LEN, Proof, Status, Welcome, parse_placement, placement_entries_len, version_of,
};
use trib_wire::offer::Offer;
use trib_wire::{ChildIndex, Epoch, JobId, Mode, NodeId, Placement};

use super::{End, HandshakeError, Said, is_proven, nonce, parse_error, prove, stub_at};
use crate::memory::{self, Call, NoDoor};
use crate::tcp::StreamSocket;
use crate::ucx::{Stub, UcxWorker};

/// The child that calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The job.
    pub job: JobId,
    /// Placement epoch.
    pub epoch: Epoch,
    /// The logical node that is called.
    pub node: NodeId,
    /// Which child of it calls.
    pub child: ChildIndex,
    /// Which of several connections between the two, 0 based.
    pub channel: u8,
    /// The mode of the job's data path.
    pub mode: Mode,
    /// The port at which the caller takes datagrams.
    pub udp_port: u16,
    /// Whether it shares memory with a process of its host, if the node is in one. This is not
    /// said.
    pub shares: bool,
    /// The worker of UCX by which the edge goes, if it does and no memory is shared.
    pub ucx: Option<UcxWorker>,
    /// Where the nodes of the tree are, as the caller knows it.
    pub placement: Placement,
}

/// An open, authenticated connection.
#[derive(Debug)]
pub struct Connected {
    /// The connection.
    pub socket: StreamSocket,
    /// Where the node takes this child's datagrams.
    pub datagrams: SocketAddr,
    /// What the node sends to all its children alike.
    pub results: Results,
    /// The keys of this connection, in a mode that seals payloads. An edge over memory has none.
    pub session: Option<Session>,
    /// Why no memory is shared with the node, if it is not.
    pub apart: Option<NoDoor>,
}

/// Opens the stream connection of a child to the node at `target`. It blocks for at most
/// `patience`, and until then tries again after errors that may pass: no process listens yet, or
/// the node has not heard of the job yet.
pub fn connect(
    target: SocketAddr,
    identity: &Identity,
    key: &HelloKey,
    patience: Duration,
) -> Result<Connected, HandshakeError> {
    connect_from(None, target, identity, key, patience)
}

/// As `connect`, from a given address of this host: the one at which the caller takes its
/// datagrams.
pub fn connect_from(
    local: Option<IpAddr>,
    target: SocketAddr,
    identity: &Identity,
    key: &HelloKey,
    patience: Duration,
) -> Result<Connected, HandshakeError> {
    let deadline = Instant::now() + patience;
    let mut pause = PAUSE.first();
    loop {
        let error = match try_until(local, target, identity, key, deadline) {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        if !error.is_transient() || Instant::now() + pause >= deadline {
            return Err(error);
        }
        thread::sleep(pause);
        pause = PAUSE.after_pause(pause);
    }
}

/// As `connect_from`, but whatever goes wrong is the end of it.
pub fn connect_once(
    local: Option<IpAddr>,
    target: SocketAddr,
    identity: &Identity,
    key: &HelloKey,
    patience: Duration,
) -> Result<Connected, HandshakeError> {
    try_until(local, target, identity, key, Instant::now() + patience)
}

fn try_until(
    local: Option<IpAddr>,
    target: SocketAddr,
    identity: &Identity,
    key: &HelloKey,
    deadline: Instant,
) -> Result<Connected, HandshakeError> {
    // If nobody takes the call, half of the time is left for TCP.
    let half = Instant::now() + left(deadline)? / 2;
    let apart = match if identity.shares { memory::call(target, half) } else { Err(NoDoor::Unwanted) } {
        Ok(call) => match shake(Line::near(call, deadline), target, identity, key, None) {
            // Over TCP the same may go better: a process that is in the way here is not there.
            Err(HandshakeError::Io(_) | HandshakeError::Closed | HandshakeError::Malformed(_)) => NoDoor::Closed,
            Err(HandshakeError::Refused(Status::WrongAddress)) => NoDoor::Closed,
            outcome => return outcome,
        },
        Err(why) => why,
    };
    let stream = dial(local, target, left(deadline)?)?;
    stream.set_nodelay(true)?;
    let stub = identity.ucx.as_ref().map(stub_at).transpose()?;
    let connected = shake(Line::far(stream, deadline), target, identity, key, stub)?;
    Ok(Connected { apart: Some(apart), ..connected })
}

/// The conversation over a connection. `stub` is this end of an edge over UCX.
fn shake(
    mut line: Line,
    target: SocketAddr,
    identity: &Identity,
    key: &HelloKey,
    stub: Option<Stub>,
) -> Result<Connected, HandshakeError> {
    let hello = Hello {
        job: identity.job,
        epoch: identity.epoch,
        node: identity.node,
        child: identity.child,
        channel: identity.channel,
        mode: identity.mode,
        udp_port: identity.udp_port,
        nonce: nonce()?,
        placement: identity.placement.clone(),
    };
    line.say(&hello.to_bytes())?;
    let challenge = Challenge::parse(&line.hear::<{ Challenge::LEN }>()?).map_err(parse_error)?;
    accepted(challenge.status)?;
    if challenge.udp_port == 0 {
        return Err(HandshakeError::Malformed(trib_wire::ParseError::BadField("udp port")));
    }
    let said = Said { hello: &hello, challenge: &challenge, tail: &[] };
    let offer = stub.as_ref().map(Stub::offer).transpose()?.map_or_else(Vec::new, |offer| offer.to_bytes());
    let mac = prove(key, End::Child, Said { tail: &offer, ..said });
    line.prove(&[&Proof { offers: stub.is_some(), mac }.to_bytes()[..], &offer].concat())?;
    let welcome = Welcome::parse(&line.hear::<{ Welcome::LEN }>()?).map_err(parse_error)?;
    let rest = match (welcome.status, &stub) {
        (Status::Moved, _) => line.hear_placement()?,
        (Status::Accepted, Some(_)) => line.hear_offer()?,
        (status, _) => accepted(status).map(|()| Vec::new())?,
    };
    let tail = [&welcome.sealed[..], &rest].concat();
    if !is_proven(key, End::Node, Said { tail: &tail, ..said }, &welcome.mac) {
        return Err(HandshakeError::BadKey);
    }
    if welcome.status == Status::Moved {
        return Err(HandshakeError::Moved(parse_placement(&rest).map_err(parse_error)?));
    }
    if let Some(stub) = &stub {
        stub.meet(&Offer::parse(&rest).map_err(parse_error)?)?;
    }
    // Datagrams come from the IPv4 address itself, also where the call goes to a mapped one.
    let datagrams = SocketAddr::new(target.ip().to_canonical(), challenge.udp_port);
    let socket = line.into_socket(datagrams, stub)?;
    let session = if socket.is_near() { None } else { key.session(&hello, &challenge) };
    Ok(Connected {
        socket,
        datagrams,
        results: Results::of(&key.open(&hello, &challenge, &welcome.sealed), hello.mode),
        session,
        apart: None,
    })
}

fn dial(local: Option<IpAddr>, target: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    in_tries(patience, |patience| {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM.cloexec(), Some(Protocol::TCP))?;
        if let Some(local) = local {
            socket.bind(&SocketAddr::new(local, 0).into())?;
        }
        socket.connect_timeout(&target.into(), patience)?;
        Ok(socket.into())
    })
}

/// Tries to connect, each time for longer, until somebody answers or `patience` is over. When the
/// first packet of a connection is lost, the kernel says it again after a second only, as it knows
/// nothing of the way yet, and by then others may have counted this call as without an answer.
fn in_tries<T>(patience: Duration, mut connect: impl FnMut(Duration) -> io::Result<T>) -> io::Result<T> {
    let (mut left, mut span) = (patience, TRY.first());
    loop {
        // A last try that is shorter than those before would be in vain.
        let is_last = left < 2 * span;
        match connect(if is_last { left } else { span }) {
            Err(error) if error.kind() == ErrorKind::TimedOut && !is_last => left -= span,
            outcome => return outcome,
        }
        span = TRY.after_pause(span);
    }
}

fn accepted(status: Status) -> Result<(), HandshakeError> {
    match status {
        Status::Accepted => Ok(()),
        refusal => Err(HandshakeError::Refused(refusal)),
    }
}

fn left(deadline: Instant) -> Result<Duration, HandshakeError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(HandshakeError::TimedOut) } else { Ok(left) }
}

/// A blocking connection with a deadline.
struct Line {
    stream: Stream,
    deadline: Instant,
}

enum Stream {
    Tcp(TcpStream),
    Near(Call),
}

impl Line {
    fn far(stream: TcpStream, deadline: Instant) -> Line {
        Line { stream: Stream::Tcp(stream), deadline }
    }

    fn near(call: Call, deadline: Instant) -> Line {
        Line { stream: Stream::Near(call), deadline }
    }

    fn socket(&self) -> SockRef<'_> {
        match &self.stream {
            Stream::Tcp(stream) => SockRef::from(stream),
            Stream::Near(call) => SockRef::from(&call.stream),
        }
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.socket().set_write_timeout(Some(left(self.deadline)?))?;
        // This does not block: the messages of one direction always fit the socket's buffer.
        let sent = self.socket().send_with_flags(bytes, libc::MSG_NOSIGNAL).map_err(io_error)?;
        if sent == bytes.len() { Ok(()) } else { Err(io::Error::from(ErrorKind::WriteZero).into()) }
    }

    /// Says the proof. Over a Unix socket the memory of the edge goes with it.
    fn prove(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        match &self.stream {
            Stream::Tcp(_) => self.say(bytes),
            Stream::Near(call) => call.say_with_memory(bytes).map_err(io_error),
        }
    }

    fn into_socket(self, datagrams: SocketAddr, stub: Option<Stub>) -> io::Result<StreamSocket> {
        self.socket().set_read_timeout(None)?;
        self.socket().set_write_timeout(None)?;
        match self.stream {
            Stream::Tcp(stream) => Ok(StreamSocket::new(stream)?.opened(datagrams, stub)),
            Stream::Near(call) => Ok(StreamSocket::near(call.open(datagrams)?)),
        }
    }

    /// Reads a message of `N` bytes. If its first bytes show another version, what follows may have
    /// any length.
    fn hear<const N: usize>(&mut self) -> Result<[u8; N], HandshakeError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes[..PREFIX_LEN])?;
        let theirs = version_of(&bytes).map_err(parse_error)?;
        if theirs != trib_wire::VERSION {
            return Err(HandshakeError::Version { ours: trib_wire::VERSION, theirs });
        }
        self.fill(&mut bytes[PREFIX_LEN..])?;
        Ok(bytes)
    }

    /// Reads the placement behind a Welcome, as bytes.
    fn hear_placement(&mut self) -> Result<Vec<u8>, HandshakeError> {
        let mut head = [0; 2];
        self.fill(&mut head)?;
        let mut bytes = vec![0; head.len() + placement_entries_len(head)];
        bytes[..head.len()].copy_from_slice(&head);
        self.fill(&mut bytes[head.len()..])?;
        Ok(bytes)
    }

    /// Reads the node's offer, as bytes.
    fn hear_offer(&mut self) -> Result<Vec<u8>, HandshakeError> {
        let mut head = [0; Offer::LEN];
        self.fill(&mut head)?;
        let mut bytes = vec![0; Offer::len_of(&head).map_err(parse_error)?];
        bytes[..head.len()].copy_from_slice(&head);
        self.fill(&mut bytes[head.len()..])?;
        Ok(bytes)
    }

    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), HandshakeError> {
        while !bytes.is_empty() {
            self.socket().set_read_timeout(Some(left(self.deadline)?))?;
            match (&*self.socket()).read(bytes) {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(got) => bytes = &mut bytes[got..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(io_error(e)),
            }
        }
        Ok(())
    }
}

fn io_error(error: io::Error) -> HandshakeError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => HandshakeError::TimedOut,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => HandshakeError::Closed,
        _ => HandshakeError::Io(error),
    }
}

/// Between two tries. The first is short, because nodes hear of a job as late as its ranks; the
/// last is short beside what people take to start a node.
const PAUSE: Pause = Pause::doubling(Duration::from_millis(5), Duration::from_millis(200));
/// How long a try to connect takes at first: longer than any way through a machine room and back.
const TRY: Pause = Pause::doubling(Duration::from_millis(200), Duration::from_millis(1600));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_first_packet_is_said_again_soon_and_ever_later() {
        let tries = |patience| {
            let mut spans = Vec::new();
            let outcome: io::Result<()> = in_tries(Duration::from_millis(patience), |span| {
                spans.push(span.as_millis() as u64);
                Err(ErrorKind::TimedOut.into())
            });
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TimedOut);
            assert_eq!(spans.iter().sum::<u64>(), patience);
            spans
        };
        assert_eq!(tries(100), [100]);
        assert_eq!(tries(1_000), [200, 400, 400]);
        assert_eq!(tries(5_000), [200, 400, 800, 1_600, 2_000]);
    }

    #[test]
    fn what_is_refused_is_not_tried_again() {
        let mut count = 0;
        let refused: io::Result<()> = in_tries(Duration::from_secs(5), |_| {
            count += 1;
            Err(ErrorKind::ConnectionRefused.into())
        });
        assert_eq!((refused.unwrap_err().kind(), count), (ErrorKind::ConnectionRefused, 1));
    }
}
