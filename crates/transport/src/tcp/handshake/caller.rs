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

use trib_keys::{HelloKey, Session};
use trib_wire::auth::FrameKey;
use trib_wire::hello::{
    Challenge, Hello, PREFIX_LEN, Proof, SEALED_LEN, Status, Welcome, placement_to_bytes, version_of,
};
use trib_wire::offer::Offer;
use trib_wire::{Epoch, ParseError, Placement, VERSION};

use super::{End, HANDSHAKE_TIMEOUT, HandshakeError, Said, is_proven, nonce, parse_error, prove, stub_at};
use crate::tcp::StreamSocket;
use crate::ucx::{Stub, UcxWorker};

/// What a node answers to a Hello if it goes on with the handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// The key of the edge that the Hello names.
    pub key: HelloKey,
    /// Epoch of the job at the node.
    pub epoch: Epoch,
    /// Where the logical node takes datagrams.
    pub udp_port: u16,
    /// The worker of UCX by which the edge goes, if it does. A child that shares memory need not.
    pub ucx: Option<UcxWorker>,
}

/// What the node knows about its jobs. A child is looked up before it has proven anything, so
/// nothing may change here until `confirm`.
pub trait Admission {
    /// Whether such a child may connect. A refusal comes with the node's epoch of the job, which is
    /// 0 if the node does not know the job.
    fn admit(&mut self, hello: &Hello, peer: SocketAddr) -> Result<Admitted, (Status, Epoch)>;

    /// The child has proven that it holds the key, so its placement can be believed. Whether it may
    /// still connect; it is told that it may, and may not hear it. The answer is the key of the
    /// datagrams that the node sends to its children.
    fn confirm(&mut self, hello: &Hello, peer: SocketAddr) -> Result<FrameKey, Denied>;
}

/// Why a child that has proven itself is not let in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Denied {
    /// For this reason.
    Status(Status),
    /// The job's tree has another placement.
    Moved(Placement),
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
    heard: Vec<u8>,
    said: Vec<u8>,
    said_from: usize,
    /// This end of an edge over UCX.
    stub: Option<Stub>,
    /// The keys of the connection, in a mode that seals payloads.
    session: Option<Session>,
}

#[derive(Debug)]
enum State {
    Hello,
    Proof {
        hello: Hello,
        challenge: Challenge,
        key: HelloKey,
        ucx: Option<UcxWorker>,
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
            heard: Vec::new(),
            said: Vec::new(),
            said_from: 0,
            stub: None,
            session: None,
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

    /// The bytes that it keeps of what its far end has said and is to hear.
    pub fn kept(&self) -> usize {
        let placement = match &self.state {
            State::Hello | State::Last(Err(_)) => 0,
            State::Proof { hello, .. } | State::Last(Ok(hello)) => hello.placement.wire_len(),
        };
        self.heard.capacity() + self.said.capacity() + placement
    }

    /// The connection, for polling.
    pub fn socket_mut(&mut self) -> &mut StreamSocket {
        &mut self.socket
    }

    /// The keys of the open connection, in a mode that seals payloads. An edge over memory has
    /// none.
    pub fn take_session(&mut self) -> Option<Session> {
        self.session.take().filter(|_| !self.socket.is_near())
    }

    /// The connection, to be used from now on. No byte of a frame has been read.
    pub fn into_socket(self) -> StreamSocket {
        match self.state {
            State::Last(Ok(hello)) => self.socket.opened(SocketAddr::new(self.peer.ip(), hello.udp_port), self.stub),
            _ => self.socket,
        }
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
                    if !self.hear(Hello::LEN)? || !self.hear_rest_of_hello()? {
                        return Ok(Progress::Reading);
                    }
                    self.on_hello(admission)?;
                }
                State::Proof { .. } => {
                    if !self.hear(Proof::LEN)? || !self.hear_offer()? {
                        return Ok(Progress::Reading);
                    }
                    self.on_proof(admission)?;
                }
                State::Last(Ok(hello)) => {
                    return Ok(Progress::Open(hello.clone()));
                }
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
        let hello = Hello::parse(&self.heard).map_err(parse_error)?;
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
                self.state = State::Proof { hello, challenge, key: admitted.key, ucx: admitted.ucx };
            }
        }
        self.heard.clear();
        Ok(())
    }

    fn on_proof(&mut self, admission: &mut impl Admission) -> Result<(), HandshakeError> {
        let State::Proof { hello, challenge, key, ucx } = &self.state else {
            unreachable!("called in state Proof");
        };
        let (hello, challenge, key, ucx) = (hello.clone(), *challenge, *key, ucx.clone());
        let (bytes, offer) = self.heard.split_first_chunk().ok_or(HandshakeError::Malformed(ParseError::Truncated))?;
        let proof = Proof::parse(bytes).map_err(parse_error)?;
        let said = Said { hello: &hello, challenge: &challenge, tail: offer };
        let verdict = if !is_proven(&key, End::Child, said, &proof.mac) {
            Err(Denied::Status(Status::BadKey))
        } else if proof.offers == (ucx.is_some() && !self.socket.is_near()) {
            // This comes first, so that no child relies on memory that the node cannot map, or on
            // a way that it cannot find.
            self.socket.share()?;
            if let Some(worker) = ucx.filter(|_| proof.offers) {
                let stub = stub_at(&worker)?;
                stub.meet(&Offer::parse(offer).map_err(parse_error)?)?;
                self.stub = Some(stub);
            }
            admission.confirm(&hello, self.peer)
        } else {
            Err(Denied::Status(Status::WrongWay))
        };
        let said = Said { tail: &[], ..said };
        let (status, sealed, rest, outcome) = match verdict {
            Ok(results) => {
                let offer = self.stub.as_ref().map(Stub::offer).transpose()?;
                let offer = offer.map_or_else(Vec::new, |offer| offer.to_bytes());
                self.session = key.session(&hello, &challenge);
                (Status::Accepted, key.seal(&hello, &challenge, &results), offer, Ok(hello.clone()))
            }
            Err(Denied::Moved(placement)) => {
                let bytes = placement_to_bytes(&placement);
                (Status::Moved, [0; SEALED_LEN], bytes, Err(Some(HandshakeError::Moved(placement))))
            }
            Err(Denied::Status(refusal)) => {
                self.refuse_proof(refusal);
                return Ok(());
            }
        };
        let mac = prove(&key, End::Node, Said { tail: &[&sealed[..], &rest].concat(), ..said });
        self.say(&Welcome { status, mac, sealed }.to_bytes());
        self.said.extend(rest);
        self.state = State::Last(outcome);
        Ok(())
    }

    fn refuse_proof(&mut self, status: Status) {
        self.say(&Welcome::refusal(status).to_bytes());
        self.state = State::Last(Err(Some(match status {
            Status::BadKey => HandshakeError::BadKey,
            refusal => HandshakeError::Refused(refusal),
        })));
    }

    fn refuse_hello(&mut self, status: Status, epoch: Epoch, error: HandshakeError) {
        let refusal = Challenge { status, epoch, udp_port: 0, nonce: [0; 16] };
        self.say(&refusal.to_bytes());
        self.state = State::Last(Err(Some(error)));
    }

    fn say(&mut self, bytes: &[u8]) {
        self.said.clear();
        self.said.extend(bytes);
        self.said_from = 0;
    }

    /// Sends what waits; true when all of it is in the socket.
    fn send(&mut self) -> Result<bool, HandshakeError> {
        while self.said_from < self.said.len() {
            match self.socket.write(&self.said[self.said_from..]) {
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
        while self.heard.len() < len {
            let before = self.heard.len();
            // Memory is taken for what comes, and not for what a stranger announces.
            let more = (len - before).min(PIECE);
            self.heard.reserve_exact(more);
            self.heard.resize(before + more, 0);
            let got = self.socket.read(&mut self.heard[before..]);
            self.heard.truncate(before + got.as_ref().copied().unwrap_or(0));
            match got {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
            if self.is_of_another_version()? {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Reads what belongs to the Hello behind its first part.
    fn hear_rest_of_hello(&mut self) -> Result<bool, HandshakeError> {
        match self.heard.first_chunk() {
            Some(head) if !self.is_of_another_version()? => {
                let len = Hello::len_of(head).map_err(parse_error)?;
                self.hear(len)
            }
            _ => Ok(true),
        }
    }

    /// Reads the offer behind a Proof, if one follows.
    fn hear_offer(&mut self) -> Result<bool, HandshakeError> {
        let Some(proof) = self.heard.first_chunk().filter(|_| self.heard.len() >= Proof::LEN) else { return Ok(true) };
        if self.is_of_another_version()? || !Proof::parse(proof).map_err(parse_error)?.offers {
            return Ok(true);
        }
        if !self.hear(Proof::LEN + Offer::LEN)? {
            return Ok(false);
        }
        match self.heard.get(Proof::LEN..).and_then(|offer| offer.first_chunk()) {
            Some(head) => self.hear(Proof::LEN + Offer::len_of(head).map_err(parse_error)?),
            None => Ok(true),
        }
    }

    fn is_of_another_version(&self) -> Result<bool, HandshakeError> {
        Ok(self.heard.len() >= PREFIX_LEN && version_of(&self.heard).map_err(parse_error)? != VERSION)
    }
}

/// The bytes that are read at once, of which most messages have fewer.
const PIECE: usize = 4096;
