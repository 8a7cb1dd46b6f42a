//! The four messages that open a stream connection of (job, node, child, channel).
//!
//! ```text
//!  child                                   node
//!    | Hello     who I am, nonce            |
//!    |------------------------------------->|
//!    | Challenge status, nonce, UDP port    |
//!    |<-------------------------------------|
//!    | Proof     MAC over both              |
//!    |------------------------------------->|
//!    | Welcome   status, MAC, a sealed key  |
//!    |<-------------------------------------|
//!
//!            0       4      5     6         8
//! Hello      magic | vers | 1   | channel u8, mode u8 | job | epoch (12) | node (16) | child
//!            | udp (20) | entries (22) | nonce (24..40) | entries of a placement
//! Challenge  magic | vers | 2   | status  | epoch (8) | udp (12) | 0 | nonce (16..32)
//! Proof      magic | vers | 3   | offers  | mac (8..40)
//!            | an offer, if offers is 1
//! Welcome    magic | vers | 4   | status  | mac (8..40) | sealed key (40..56)
//!            | a placement, if the status is `Moved`; an offer, if it is `Accepted` after one
//! ```
//! Magic and version have the same offsets in every version, so that both ends can say which
//! versions met.

use alloc::vec::Vec;
use core::fmt;

use crate::VERSION;
use crate::bytes::{Reader, Writer};
use crate::error::ParseError;
use crate::ids::{ChildIndex, Epoch, JobId, NodeId};
use crate::mode::Mode;
use crate::placement::Placement;

/// First four bytes of each handshake message.
pub const HELLO_MAGIC: u32 = 0x6f4c_7254;
/// Bytes that are enough for [`version_of`].
pub const PREFIX_LEN: usize = 8;
/// A value that is never used twice.
pub type Nonce = [u8; 16];
/// A message authentication code, HMAC-SHA256.
pub type Mac = [u8; 32];
/// Bytes of the key in a Welcome.
pub const SEALED_LEN: usize = 16;

/// The version in the first [`PREFIX_LEN`] bytes of a handshake message of any version.
pub fn version_of(bytes: &[u8]) -> Result<u8, ParseError> {
    let mut r = Reader::new(bytes);
    if r.u32()? != HELLO_MAGIC {
        return Err(ParseError::BadMagic);
    }
    r.u8()
}

/// What a node answers to a Hello or a Proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Status {
    /// The handshake goes on.
    Accepted = 0,
    /// The node speaks another protocol version.
    Version = 1,
    /// The job is not installed at the node, or no longer.
    UnknownJob = 2,
    /// The node serves the job in another epoch.
    WrongEpoch = 3,
    /// The job has no such logical node in this process.
    UnknownNode = 4,
    /// The logical node has no such child, or not such a channel.
    UnknownChild = 5,
    /// The child is connected, or was connected in this epoch and went away.
    DuplicateChild = 6,
    /// The child connects from an address that was not provisioned.
    WrongAddress = 7,
    /// The proof was not made with the key of the edge.
    BadKey = 8,
    /// The node has too many handshakes at once.
    Busy = 9,
    /// The job's tree has another placement, which follows.
    Moved = 10,
    /// The child offers UCX and the node expects a child over TCP, or the other way round.
    WrongWay = 11,
    /// The child knows another mode of the job's data path than the node does.
    WrongMode = 12,
}

impl Status {
    /// Every status.
    pub const ALL: &'static [Status] = &[
        Status::Accepted,
        Status::Version,
        Status::UnknownJob,
        Status::WrongEpoch,
        Status::UnknownNode,
        Status::UnknownChild,
        Status::DuplicateChild,
        Status::WrongAddress,
        Status::BadKey,
        Status::Busy,
        Status::Moved,
        Status::WrongWay,
        Status::WrongMode,
    ];

    /// The status with this code.
    pub fn from_code(code: u16) -> Option<Status> {
        Status::ALL.iter().copied().find(|s| *s as u16 == code)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Accepted => "accepted",
            Status::Version => "the node speaks another protocol version",
            Status::UnknownJob => "the node does not know the job: it has ended, or was never granted there",
            Status::WrongEpoch => "the node serves the job in another epoch: the ticket is out of date",
            Status::UnknownNode => "the process does not host that logical node of the job",
            Status::UnknownChild => "the logical node has no such child or channel",
            Status::DuplicateChild => "this child is connected already, or was and left in this epoch",
            Status::WrongAddress => "the node expects this child from another address",
            Status::BadKey => "the two ends have different keys for this edge of the job",
            Status::Busy => "the node has too many handshakes at once: try again",
            Status::Moved => "the node of the job's tree is in another process now",
            Status::WrongWay => "one end of this edge goes by UCX and the other does not",
            Status::WrongMode => {
                "the two ends know different modes of the job's data path (checked, signed or encrypted)"
            }
        })
    }
}

/// The child's opening message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The job.
    pub job: JobId,
    /// Placement epoch of the child's ticket or grant.
    pub epoch: Epoch,
    /// The logical node that is called.
    pub node: NodeId,
    /// Which child of it calls; [`ChildIndex::ALL`] for another candidate of the node, which wants
    /// no connection, but to tell its placement and hear the other one's.
    pub child: ChildIndex,
    /// Which of several connections between the two, 0 based.
    pub channel: u8,
    /// The mode of the job's data path, as the child knows it.
    pub mode: Mode,
    /// The port at which the child takes datagrams; the address is that of the connection. A
    /// candidate has none: 0.
    pub udp_port: u16,
    /// The child's nonce.
    pub nonce: Nonce,
    /// Where the nodes of the tree are, as the child knows it.
    pub placement: Placement,
}

impl Hello {
    /// Bytes of the message without the placement's entries.
    pub const LEN: usize = 40;

    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![0; Self::LEN + 4 * usize::from(self.placement.entries())];
        let mut w = prefix(&mut bytes, 1, u16::from_le_bytes([self.channel, self.mode.code()]));
        w.u32(self.job.0);
        w.u32(self.epoch.0);
        w.u16(self.node.0);
        w.u16(self.child.0);
        w.u16(self.udp_port);
        w.u16(self.placement.entries());
        bytes[24..Self::LEN].copy_from_slice(&self.nonce);
        self.placement.emit_entries(&mut Writer::new(&mut bytes[Self::LEN..]));
        bytes
    }

    /// The bytes of the whole message that begins with these.
    pub fn len_of(head: &[u8; Self::LEN]) -> Result<usize, ParseError> {
        open(head, 1)?;
        let entries = Reader::new(&head[22..]).u16()?;
        Ok(Self::LEN + Placement::entries_len(entries))
    }

    /// Reads the message.
    pub fn parse(bytes: &[u8]) -> Result<Hello, ParseError> {
        let (mut r, word) = open(bytes, 1)?;
        let [channel, mode] = word.to_le_bytes();
        let mode = Mode::from_code(mode).ok_or(ParseError::BadField("mode"))?;
        let (job, epoch, node) = (JobId(r.u32()?), Epoch(r.u32()?), NodeId(r.u16()?));
        let (child, udp_port, entries) = (ChildIndex(r.u16()?), r.u16()?, r.u16()?);
        let mut tail = Reader::new(bytes.get(Self::LEN..).ok_or(ParseError::Truncated)?);
        let placement = Placement::parse_entries(&mut tail, entries)?;
        tail.end()?;
        let hello = Hello { job, epoch, node, child, channel, mode, udp_port, nonce: nonce_at(bytes, 24)?, placement };
        if hello.job.0 == 0 {
            return Err(ParseError::BadField("job"));
        }
        let is_child = hello.child != ChildIndex::ALL;
        if is_child && usize::from(hello.child.0) >= crate::ids::CHILDREN_MAX {
            return Err(ParseError::BadField("child"));
        }
        if (hello.udp_port != 0) != is_child {
            return Err(ParseError::BadField("udp port"));
        }
        Ok(hello)
    }
}

/// The node's answer to a Hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// Whether the handshake goes on.
    pub status: Status,
    /// The node's epoch of the job, 0 if it does not know the job.
    pub epoch: Epoch,
    /// The port at which the logical node takes datagrams; the address is that of the connection.
    pub udp_port: u16,
    /// The node's nonce.
    pub nonce: Nonce,
}

impl Challenge {
    /// Bytes of the message.
    pub const LEN: usize = 32;

    /// The message as bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut w = prefix(&mut bytes, 2, self.status as u16);
        w.u32(self.epoch.0);
        w.u16(self.udp_port);
        w.u16(0);
        bytes[16..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads the message.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Challenge, ParseError> {
        let (mut r, status) = open(bytes, 2)?;
        Ok(Challenge {
            status: Status::from_code(status).ok_or(ParseError::BadField("status"))?,
            epoch: Epoch(r.u32()?),
            udp_port: r.u16()?,
            nonce: nonce_at(bytes, 16)?,
        })
    }
}

/// The child's proof that it holds the key of the edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Whether the child goes by UCX, and its offer follows.
    pub offers: bool,
    /// The MAC over Hello and Challenge, and over the offer.
    pub mac: Mac,
}

impl Proof {
    /// Bytes of the message.
    pub const LEN: usize = 40;

    /// The message as bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        prefix(&mut bytes, 3, self.offers.into());
        bytes[8..].copy_from_slice(&self.mac);
        bytes
    }

    /// Reads the message.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Proof, ParseError> {
        let offers = match open(bytes, 3)? {
            (_, 0) => false,
            (_, 1) => true,
            _ => return Err(ParseError::BadField("offers")),
        };
        Ok(Proof { offers, mac: mac_at(bytes)? })
    }
}

/// The node's proof that it holds the key of the edge, or its refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// Whether the connection is open now. After `Moved` a placement follows the message.
    pub status: Status,
    /// The MAC over Hello and Challenge, and over all that follows it; zeros in a refusal other
    /// than `Moved`.
    pub mac: Mac,
    /// The key of the datagrams that the node sends down, sealed for this child; zeros in a
    /// refusal.
    pub sealed: [u8; SEALED_LEN],
}

/// The placement behind a Welcome that says `Moved`, as bytes.
pub fn placement_to_bytes(placement: &Placement) -> Vec<u8> {
    let mut bytes = alloc::vec![0; placement.wire_len()];
    placement.emit(&mut Writer::new(&mut bytes));
    bytes
}

/// The bytes of the entries of a placement that begins with these two.
pub fn placement_entries_len(head: [u8; 2]) -> usize {
    Placement::entries_len(u16::from_le_bytes(head))
}

/// Reads the placement behind a Welcome that says `Moved`.
pub fn parse_placement(bytes: &[u8]) -> Result<Placement, ParseError> {
    let mut r = Reader::new(bytes);
    let placement = Placement::parse(&mut r)?;
    r.end()?;
    Ok(placement)
}

impl Welcome {
    /// Bytes of the message without a placement.
    pub const LEN: usize = 56;

    /// The message of a node that refuses without a proof.
    pub fn refusal(status: Status) -> Welcome {
        Welcome { status, mac: [0; 32], sealed: [0; SEALED_LEN] }
    }

    /// The message as bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        prefix(&mut bytes, 4, self.status as u16);
        bytes[8..40].copy_from_slice(&self.mac);
        bytes[40..].copy_from_slice(&self.sealed);
        bytes
    }

    /// Reads the message.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Welcome, ParseError> {
        let (_, status) = open(bytes, 4)?;
        let status = Status::from_code(status).ok_or(ParseError::BadField("status"))?;
        let (_, sealed) = bytes.split_last_chunk().ok_or(ParseError::Truncated)?;
        Ok(Welcome { status, mac: mac_at(bytes)?, sealed: *sealed })
    }
}

/// Writes the first eight bytes, which all four messages share.
fn prefix(bytes: &mut [u8], kind: u8, word: u16) -> Writer<'_> {
    let mut w = Writer::new(bytes);
    w.u32(HELLO_MAGIC);
    w.u8(VERSION);
    w.u8(kind);
    w.u16(word);
    w
}

/// Checks the first eight bytes; the reader continues after them.
fn open(bytes: &[u8], kind: u8) -> Result<(Reader<'_>, u16), ParseError> {
    let mut r = Reader::new(bytes);
    if r.u32()? != HELLO_MAGIC {
        return Err(ParseError::BadMagic);
    }
    let version = r.u8()?;
    if version != VERSION {
        return Err(ParseError::BadVersion(version));
    }
    if r.u8()? != kind {
        return Err(ParseError::BadField("kind"));
    }
    let word = r.u16()?;
    Ok((r, word))
}

fn nonce_at(bytes: &[u8], at: usize) -> Result<Nonce, ParseError> {
    let (nonce, _) = bytes.get(at..).and_then(|rest| rest.split_first_chunk()).ok_or(ParseError::Truncated)?;
    Ok(*nonce)
}

fn mac_at(bytes: &[u8]) -> Result<Mac, ParseError> {
    let (mac, _) = bytes.get(PREFIX_LEN..).and_then(|rest| rest.split_first_chunk()).ok_or(ParseError::Truncated)?;
    Ok(*mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            job: JobId(7),
            epoch: Epoch(2),
            node: NodeId(3),
            child: ChildIndex(5),
            channel: 1,
            mode: Mode::Checked,
            udp_port: 4711,
            nonce: [9; 16],
            placement: Placement::FIRST,
        }
    }

    #[test]
    fn every_message_survives_the_wire() {
        assert_eq!(Hello::parse(&hello().to_bytes()), Ok(hello()));
        let moved = Placement::FIRST.without(NodeId(4)).without(NodeId(2)).without(NodeId(4));
        let later = Hello { placement: moved.clone(), ..hello() };
        let bytes = later.to_bytes();
        assert_eq!(Hello::len_of(bytes.first_chunk().unwrap()), Ok(bytes.len()));
        assert_eq!(Hello::parse(&bytes), Ok(later));
        assert_eq!(Hello::parse(&bytes[..bytes.len() - 1]), Err(ParseError::Truncated));
        let bytes = placement_to_bytes(&moved);
        assert_eq!(placement_entries_len([bytes[0], bytes[1]]), bytes.len() - 2);
        assert_eq!(parse_placement(&bytes), Ok(moved));
        for status in Status::ALL {
            let challenge = Challenge { status: *status, epoch: Epoch(2), udp_port: 4712, nonce: [8; 16] };
            assert_eq!(Challenge::parse(&challenge.to_bytes()), Ok(challenge));
            let welcome = Welcome { status: *status, mac: [6; 32], sealed: [5; SEALED_LEN] };
            assert_eq!(Welcome::parse(&welcome.to_bytes()), Ok(welcome));
        }
        for offers in [false, true] {
            let proof = Proof { offers, mac: [7; 32] };
            assert_eq!(Proof::parse(&proof.to_bytes()), Ok(proof));
        }
    }

    #[test]
    fn bytes_on_the_wire_stay_what_they_are() {
        let bytes = hello().to_bytes();
        assert_eq!(
            bytes[..24],
            [0x54, 0x72, 0x4c, 0x6f, 1, 1, 1, 0, 7, 0, 0, 0, 2, 0, 0, 0, 3, 0, 5, 0, 0x67, 0x12, 0, 0]
        );
        assert_eq!(bytes[24..], [9; 16], "a tree that has not moved adds nothing");
    }

    #[test]
    fn the_mode_is_said_beside_the_channel_and_an_unknown_one_is_refused() {
        for mode in Mode::ALL {
            let hello = Hello { mode: *mode, ..hello() };
            assert_eq!(hello.to_bytes()[6..8], [1, mode.code()]);
            assert_eq!(Hello::parse(&hello.to_bytes()), Ok(hello));
        }
        let mut bytes = hello().to_bytes();
        bytes[7] = 3;
        assert_eq!(Hello::parse(&bytes), Err(ParseError::BadField("mode")));
    }

    #[test]
    fn another_version_is_named_and_no_message_passes_for_another() {
        let mut bytes = hello().to_bytes();
        bytes[4] = 9;
        assert_eq!(version_of(&bytes), Ok(9));
        assert_eq!(Hello::parse(&bytes), Err(ParseError::BadVersion(9)));
        let mut longer = [0; Welcome::LEN];
        longer[..Proof::LEN].copy_from_slice(&Proof { offers: false, mac: [7; 32] }.to_bytes());
        assert_eq!(Welcome::parse(&longer), Err(ParseError::BadField("kind")));
        assert_eq!(version_of(&[0; 8]), Err(ParseError::BadMagic));
        assert_eq!(version_of(&[0x54]), Err(ParseError::Truncated));
    }

    #[test]
    fn values_that_no_child_sends_are_refused() {
        for broken in [
            Hello { job: JobId(0), ..hello() },
            Hello { child: ChildIndex(64), ..hello() },
            Hello { udp_port: 0, ..hello() },
        ] {
            assert!(matches!(Hello::parse(&broken.to_bytes()), Err(ParseError::BadField(_))));
        }
        let mut bytes = hello().to_bytes();
        bytes[22..24].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(Hello::parse(&bytes), Err(ParseError::Truncated));
        // The highest number is no node's.
        let nobody = Hello { placement: Placement::FIRST.without(NodeId(u16::MAX)), ..hello() };
        assert_eq!(Hello::parse(&nobody.to_bytes()), Err(ParseError::BadField("placement")));
    }
}
