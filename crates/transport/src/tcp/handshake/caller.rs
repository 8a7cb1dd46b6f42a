//! The answering end of the handshake: one [`Caller`] per connection that is not open yet.
//!
//! ```text
//!  Hello ----> Challenge ----> Proof ----> Welcome ----> open
//!    |             |             |            |
//!    +-------------+-------------+------------+--> refused or failed, closed
//! ```

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use trib_wire::hello::{Challenge, Hello, PREFIX_LEN, Proof, Status, Welcome, version_of};
use trib_wire::{Epoch, ParseError, VERSION};

use super::{End, HANDSHAKE_TIMEOUT, HandshakeError, is_proven, nonce, parse_error, prove};
use crate::keys::HelloKey;
use crate::tcp::StreamSocket;

/// What a node answers to a Hello if it goes on with the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// The key of the edge that the Hello names.
    pub key: HelloKey,
    /// Epoch of the job at the node.
    pub epoch: Epoch,
    /// Where the logical node takes datagrams.
    pub udp_port: u16,
}

/// What the node knows about its jobs. A child is looked up before it has proven anything, so
/// nothing may change here until `confirm`.
pub trait Admission {
    /// Whether such a child may connect. A refusal comes with the node's epoch of the job, which is
    /// 0 if the node does not know the job.
    fn admit(&mut self, hello: &Hello, peer: SocketAddr) -> Result<Admitted, (Status, Epoch)>;

    /// The child has proven that it holds the key. Whether it may still connect; it is told that it
    /// may, and may not hear it.
    fn confirm(&mut self, hello: &Hello, peer: SocketAddr) -> Result<(), Status>;
}

/// What a caller needs next.
#[derive(Debug)]
pub enum Progress {
    /// More bytes from the far end.
    Reading,
    /// Room to send.
    Writing,
    /// Nothing: the child is there. The connection is taken with `into_socket`.
    Open(Hello),
    /// Nothing: the connection is to be closed.
    Failed(HandshakeError),
}

/// A connection whose far end has not proven itself yet.
#[derive(Debug)]
pub struct Caller {
    socket: StreamSocket,
    peer: SocketAddr,
    deadline: Instant,
    state: State,
    heard: [u8; HEARD_MAX],
    heard_len: usize,
    said: [u8; SAID_MAX],
    said_from: usize,
    said_to: usize,
}

#[derive(Debug)]
enum State {
    Hello,
    Proof {
        hello: Hello,
        challenge: Challenge,
        key: HelloKey,
    },
    /// The last message is on its way; when it is sent, this is the outcome.
    Last(Result<Hello, Option<HandshakeError>>),
}

impl Caller {
    /// A connection that was accepted at `now`.
    pub fn new(socket: StreamSocket, peer: SocketAddr, now: Instant) -> Caller {
        Caller {
            socket,
            peer,
            deadline: now + HANDSHAKE_TIMEOUT,
            state: State::Hello,
            heard: [0; HEARD_MAX],
            heard_len: 0,
            said: [0; SAID_MAX],
            said_from: 0,
            said_to: 0,
        }
    }

    /// When the handshake is given up.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The far end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The connection, for polling.
    pub fn socket_mut(&mut self) -> &mut StreamSocket {
        &mut self.socket
    }

    /// The connection, to be used from now on. No byte of a frame has been read.
    pub fn into_socket(self) -> StreamSocket {
        self.socket
    }

    /// Goes on with the handshake as far as that is possible without waiting.
    pub fn advance(&mut self, admission: &mut impl Admission) -> Progress {
        match self.try_advance(admission) {
            Ok(progress) => progress,
            Err(error) => Progress::Failed(error),
        }
    }

    fn try_advance(&mut self, admission: &mut impl Admission) -> Result<Progress, HandshakeError> {
        loop {
            if !self.send()? {
                return Ok(Progress::Writing);
            }
            match &mut self.state {
                State::Hello => {
                    if !self.hear(Hello::LEN)? {
                        return Ok(Progress::Reading);
                    }
                    self.on_hello(admission)?;
                }
                State::Proof { .. } => {
                    if !self.hear(Proof::LEN)? {
                        return Ok(Progress::Reading);
                    }
                    self.on_proof(admission)?;
                }
                State::Last(Ok(hello)) => return Ok(Progress::Open(*hello)),
                State::Last(Err(error)) => {
                    return Err(error.take().unwrap_or(HandshakeError::Closed));
                }
            }
        }
    }

    fn on_hello(&mut self, admission: &mut impl Admission) -> Result<(), HandshakeError> {
        let theirs = version_of(&self.heard).map_err(parse_error)?;
        if theirs != VERSION {
            let error = HandshakeError::Version { ours: VERSION, theirs };
            self.refuse_hello(Status::Version, Epoch(0), error);
            return Ok(());
        }
        let bytes: [u8; Hello::LEN] =
            self.heard[..Hello::LEN].try_into().map_err(|_| HandshakeError::Malformed(ParseError::Truncated))?;
        let hello = Hello::parse(&bytes).map_err(parse_error)?;
        match admission.admit(&hello, self.peer) {
            Err((status, epoch)) => {
                self.refuse_hello(status, epoch, HandshakeError::Refused(status));
            }
            Ok(admitted) => {
                let challenge = Challenge {
                    status: Status::Accepted,
                    epoch: admitted.epoch,
                    udp_port: admitted.udp_port,
                    nonce: nonce()?,
                };
                self.say(&challenge.to_bytes());
                self.state = State::Proof { hello, challenge, key: admitted.key };
            }
        }
        self.heard_len = 0;
        Ok(())
    }

    fn on_proof(&mut self, admission: &mut impl Admission) -> Result<(), HandshakeError> {
        let State::Proof { hello, challenge, key } = self.state else {
            unreachable!("called in state Proof");
        };
        let bytes: [u8; Proof::LEN] =
            self.heard[..Proof::LEN].try_into().map_err(|_| HandshakeError::Malformed(ParseError::Truncated))?;
        let proof = Proof::parse(&bytes).map_err(parse_error)?;
        let verdict = if is_proven(&key, End::Child, &hello, &challenge, &proof.mac) {
            admission.confirm(&hello, self.peer)
        } else {
            Err(Status::BadKey)
        };
        let status = verdict.err().unwrap_or(Status::Accepted);
        let (mac, outcome) = match status {
            Status::Accepted => (prove(&key, End::Node, &hello, &challenge), Ok(hello)),
            Status::BadKey => ([0; 32], Err(Some(HandshakeError::BadKey))),
            refusal => ([0; 32], Err(Some(HandshakeError::Refused(refusal)))),
        };
        self.say(&Welcome { status, mac }.to_bytes());
        self.state = State::Last(outcome);
        Ok(())
    }

    fn refuse_hello(&mut self, status: Status, epoch: Epoch, error: HandshakeError) {
        let refusal = Challenge { status, epoch, udp_port: 0, nonce: [0; 16] };
        self.say(&refusal.to_bytes());
        self.state = State::Last(Err(Some(error)));
    }

    fn say(&mut self, bytes: &[u8]) {
        self.said[..bytes.len()].copy_from_slice(bytes);
        self.said_from = 0;
        self.said_to = bytes.len();
    }

    /// Sends what waits; true when all of it is in the socket.
    fn send(&mut self) -> Result<bool, HandshakeError> {
        while self.said_from < self.said_to {
            match self.socket.write(&self.said[self.said_from..self.said_to]) {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(sent) => self.said_from += sent,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(true)
    }

    /// Reads; true when `len` bytes have come, or enough to know that they are of another version.
    /// It never reads beyond those: what follows the handshake belongs to the frames.
    fn hear(&mut self, len: usize) -> Result<bool, HandshakeError> {
        while self.heard_len < len {
            match self.socket.read(&mut self.heard[self.heard_len..len]) {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(got) => self.heard_len += got,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
            if self.heard_len >= PREFIX_LEN && version_of(&self.heard).map_err(parse_error)? != VERSION {
                return Ok(true);
            }
        }
        Ok(true)
    }
}

const HEARD_MAX: usize = 40;
const SAID_MAX: usize = 40;
const _: () = assert!(Hello::LEN <= HEARD_MAX && Proof::LEN <= HEARD_MAX);
const _: () = assert!(Challenge::LEN <= SAID_MAX && Welcome::LEN <= SAID_MAX);
