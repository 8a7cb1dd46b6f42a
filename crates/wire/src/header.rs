//! The fixed header of every frame, datagram or stream.
//!
//! ```text
//!  byte  0        2       3       4               8
//!       +--------+-------+-------+---------------+---------------+
//!     0 | magic  |version| kind  | job           | epoch         | 8..12
//!       +--------+-------+-------+---------------+---------------+
//!    12 | node   | child         | group         | generation    | 20..24
//!       +--------+---------------+---------------+---------------+
//!    24 | flags  | lane  | coll  | dtype | op | wire format | root | 32..36
//!       +--------+-------+-------+-------+----+-------------+------+
//!    36 | witness        | count (40..48)                        |
//!       +----------------+---------------------------------------+
//!    48 | op_seq                         | seq (56..64)          |
//!       +--------------------------------+-----------------------+
//!    64 | first                          | elements | skip       | 72, 76
//!       +--------------------------------+----------+------------+
//!    80 | payload length | payload crc   | mark (88..96)         |
//!       +----------------+---------------+-----------------------+
//!    96 | tag                            |
//!       +--------------------------------+
//! ```
//! Little-endian throughout; fields sit at multiples of their size so that a packet filter can
//! read them with single loads.

use core::fmt;
use core::ops::Range;

use crate::VERSION;
use crate::bytes::{Reader, Writer};
use crate::datatype::DataType;
use crate::error::ParseError;
use crate::format::{Way, WireFormat};
use crate::ids::{ChildIndex, Epoch, Generation, GroupIndex, JobId, NodeId};
use crate::operation::{Collective, ReduceOp, Signature};

/// Bytes of the header.
pub const HEADER_LEN: usize = 104;
/// The offset of the tag, which covers everything before it.
pub const TAG_OFFSET: usize = 96;
/// First two bytes of every frame.
pub const MAGIC: u16 = 0x7254;
/// The largest number of payload bytes of one frame.
pub const PAYLOAD_MAX: usize = 1 << 20;
/// Most bytes of vector in one datagram: what UDP over IPv4 carries, less our header, a multiple of
/// 8.
pub const DATAGRAM_MAX: u32 = (65_507 - HEADER_LEN as u32) / 8 * 8;
/// The largest number of an operation, of a piece, or where one is meant. No group gets so far;
/// with it, all numbers can be added up without a thought.
pub const NUMBER_MAX: u64 = 1 << 62;
/// Largest window of datagrams: acknowledgement maps are 64 bits wide.
pub const WINDOW_MAX: u32 = 64;

/// Set when `payload_crc` covers the payload (always on datagrams).
pub const FLAG_CRC: u16 = 1;
/// The frame belongs to the streaming protocol (SAT), else to the datagram protocol (LLT).
pub const FLAG_STREAM: u16 = 2;
/// The contribution, or one of those folded into it, was sent in an earlier epoch, too.
pub const FLAG_REPLAYED: u16 = 4;
/// The frame waits for its turn among the segments of its group, instead of overtaking them as
/// control frames do.
pub const FLAG_IN_TURN: u16 = 8;
/// A seal is behind the header, and the payload behind that (`mode`).
pub const FLAG_SEALED: u16 = 16;

/// What a frame is. `up` goes to the parent, `down` to children.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// up: a child's (folded) part of a fragment or segment.
    Contribution = 1,
    /// down: the result of a fragment or segment; header-only for ranks that receive no data.
    Result = 2,
    /// up, datagram: what is the state of fragment `seq`?
    Probe = 3,
    /// down, datagram: the contribution is here, the result is not; body names the missing
    /// children.
    Held = 4,
    /// down, datagram: refused; body says why.
    Nack = 5,
    /// up: make a group; body lists its members.
    Join = 16,
    /// down: the group exists; header has its index and generation.
    Ready = 17,
    /// down: the group could not be made; body says why.
    Refused = 18,
    /// up: this child is done with the group.
    Leave = 19,
    /// down: all members are done with the group.
    Freed = 20,
    /// down: somebody resumes this group. A rank that has begun its creation and is done with it
    /// says so with a Join.
    Ask = 21,
    /// up: every rank below wants to stream.
    Intent = 24,
    /// down: lease number `seq` on a stream context; `count` operations, 0 = until revoked.
    Grant = 25,
    /// down: other groups wait for the lock; asks how far this one is.
    Revoke = 27,
    /// up: every rank below has started what lies before segment `seq`; the lease may end there.
    StopAt = 28,
    /// down: the lease ends at segment `seq`.
    LeaseEnd = 29,
    /// up: the stream context is free everywhere below.
    Released = 30,
    /// down: segments below `seq` may be sent.
    Credit = 32,
    /// both: the sender is still there.
    Heartbeat = 33,
    /// both: the group has failed; body says why and names ranks.
    GroupError = 34,
    /// up: these ranks are gone and will never join anything again; body lists them.
    Lost = 35,
    /// both: the tree has a new placement, and the sender goes there.
    Move = 36,
    /// both: all ranks below (up), or all of the group (down), hold the results below `mark`.
    Mark = 37,
    /// up: the group works in memory that its members share; body says which ranks are late there
    /// with operation `op_seq`, if any.
    Late = 38,
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Kind] = &[
        Kind::Contribution,
        Kind::Result,
        Kind::Probe,
        Kind::Held,
        Kind::Nack,
        Kind::Join,
        Kind::Ready,
        Kind::Refused,
        Kind::Leave,
        Kind::Freed,
        Kind::Ask,
        Kind::Intent,
        Kind::Grant,
        Kind::Revoke,
        Kind::StopAt,
        Kind::LeaseEnd,
        Kind::Released,
        Kind::Credit,
        Kind::Heartbeat,
        Kind::GroupError,
        Kind::Lost,
        Kind::Move,
        Kind::Mark,
        Kind::Late,
    ];

    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|k| *k as u8 == code)
    }

    /// Whether the payload is a slice of the vector rather than a typed body.
    pub fn carries_data(self) -> bool {
        matches!(self, Kind::Contribution | Kind::Result)
    }
}

/// A parsed header; see the module for the picture and the fields' meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the frame is.
    pub kind: Kind,
    /// The job.
    pub job: JobId,
    /// The placement of the job's tree to which the sender belongs.
    pub epoch: Epoch,
    /// The node at the upper end of the edge that the frame crosses.
    pub node: NodeId,
    /// The child at the lower end; `ChildIndex::ALL` where one frame serves every child.
    pub child: ChildIndex,
    /// Index of the group in the table of `node`.
    pub group: GroupIndex,
    /// Generation of that index.
    pub generation: Generation,
    /// `FLAG_*`.
    pub flags: u16,
    /// The lane of the group (rule R13); 0 while a group has one lane.
    pub lane: u16,
    /// What the operation is.
    pub signature: Signature,
    /// A world rank below the sender that posted this signature.
    pub witness: u32,
    /// Number of the operation in its group, counted over both protocols.
    pub op_seq: u64,
    /// Number of the fragment (LLT) or segment (SAT) in its group; or the frame's own number, see
    /// `Kind`.
    pub seq: u64,
    /// The piece (the fragment or segment): its first element in the operation's vector.
    pub first: u64,
    /// The elements of the piece.
    pub elements: u32,
    /// The elements of the piece that lie before those of the payload.
    pub skip: u32,
    /// Bytes that follow the header.
    pub payload_len: u32,
    /// CRC-32C of the payload when `FLAG_CRC` is set.
    pub payload_crc: u32,
    /// up: every result below this number is held by all ranks below; down: ... by all ranks of the
    /// group.
    pub mark: u64,
}

impl Header {
    /// A header in which every field that is not named here is zero.
    pub fn new(kind: Kind, job: JobId, epoch: Epoch, node: NodeId, child: ChildIndex) -> Header {
        Header {
            kind,
            job,
            epoch,
            node,
            child,
            group: GroupIndex(0),
            generation: Generation(0),
            flags: 0,
            lane: 0,
            signature: Signature {
                collective: Collective::Barrier,
                dtype: DataType::U8,
                op: ReduceOp::BitOr,
                format: WireFormat::Plain,
                root: 0,
                count: 0,
            },
            witness: 0,
            op_seq: 0,
            seq: 0,
            first: 0,
            elements: 0,
            skip: 0,
            payload_len: 0,
            payload_crc: 0,
            mark: 0,
        }
    }

    /// Whether the frame belongs to the streaming protocol.
    pub fn is_stream(&self) -> bool {
        self.flags & FLAG_STREAM != 0
    }

    /// Whether the frame waits for its turn in the stream of its group; other control frames
    /// overtake.
    pub fn keeps_turn(&self) -> bool {
        self.kind.carries_data() || self.flags & FLAG_IN_TURN != 0
    }

    /// Whether a seal is behind the header.
    pub fn is_sealed(&self) -> bool {
        self.flags & FLAG_SEALED != 0
    }

    /// Whether the contribution, or one of those folded into it, was sent in an earlier epoch, too.
    pub fn is_replayed(&self) -> bool {
        self.flags & FLAG_REPLAYED != 0
    }

    /// The elements of the vector that a data frame is about.
    pub fn piece(&self) -> Range<u64> {
        self.first..self.first.saturating_add(u64::from(self.elements))
    }

    /// The same header above these elements of the piece, which take this many bytes.
    pub fn carrying(self, elements: &Range<u64>, bytes: u32) -> Header {
        let skip = if elements.is_empty() { 0 } else { (elements.start - self.first) as u32 };
        Header { skip, payload_len: bytes, ..self }
    }

    /// Whether the payload is exactly these elements of the piece, which take this many bytes.
    pub fn carries(&self, elements: &Range<u64>, bytes: u64) -> bool {
        let starts = self.first.checked_add(u64::from(self.skip)) == Some(elements.start);
        u64::from(self.payload_len) == bytes && (starts || elements.is_empty())
    }

    /// Writes the header with this tag.
    pub fn emit(&self, tag: u64, bytes: &mut [u8; HEADER_LEN]) {
        let mut w = Writer::new(bytes);
        w.u16(MAGIC);
        w.u8(VERSION);
        w.u8(self.kind as u8);
        w.u32(self.job.0);
        w.u32(self.epoch.0);
        w.u16(self.node.0);
        w.u16(self.child.0);
        w.u32(self.group.0);
        w.u32(self.generation.0);
        w.u16(self.flags);
        w.u16(self.lane);
        w.u8(self.signature.collective.code());
        w.u8(self.signature.dtype.code());
        w.u8(self.signature.op.code());
        w.u8(self.signature.format.code());
        w.u32(self.signature.root);
        w.u32(self.witness);
        w.u64(self.signature.count);
        w.u64(self.op_seq);
        w.u64(self.seq);
        w.u64(self.first);
        w.u32(self.elements);
        w.u32(self.skip);
        w.u32(self.payload_len);
        w.u32(self.payload_crc);
        w.u64(self.mark);
        debug_assert_eq!(w.at(), TAG_OFFSET);
        w.u64(tag);
    }

    /// Reads a header and its tag (which the caller still has to check, see `auth`).
    ///
    /// Only values that some sender may write are accepted: codes are known, the payload consists
    /// of whole elements of the piece, and sizes are below their limits.
    pub fn parse(bytes: &[u8]) -> Result<(Header, u64), ParseError> {
        let bytes = bytes.get(..HEADER_LEN).ok_or(ParseError::Truncated)?;
        let mut r = Reader::new(bytes);
        if r.u16()? != MAGIC {
            return Err(ParseError::BadMagic);
        }
        let version = r.u8()?;
        if version != VERSION {
            return Err(ParseError::BadVersion(version));
        }
        let kind = Kind::from_code(r.u8()?).ok_or(ParseError::BadField("kind"))?;
        let (job, epoch) = (JobId(r.u32()?), Epoch(r.u32()?));
        let (node, child) = (NodeId(r.u16()?), ChildIndex(r.u16()?));
        let (group, generation) = (GroupIndex(r.u32()?), Generation(r.u32()?));
        let (flags, lane) = (r.u16()?, r.u16()?);
        let collective = Collective::from_code(r.u8()?).ok_or(ParseError::BadField("collective"))?;
        let dtype = DataType::from_code(r.u8()?).ok_or(ParseError::BadField("dtype"))?;
        let op = ReduceOp::from_code(r.u8()?).ok_or(ParseError::BadField("op"))?;
        let format = WireFormat::from_code(r.u8()?).ok_or(ParseError::BadField("wire format"))?;
        let (root, witness, count) = (r.u32()?, r.u32()?, r.u64()?);
        let header = Header {
            kind,
            job,
            epoch,
            node,
            child,
            group,
            generation,
            flags,
            lane,
            signature: Signature { collective, dtype, op, format, root, count },
            witness,
            op_seq: r.u64()?,
            seq: r.u64()?,
            first: r.u64()?,
            elements: r.u32()?,
            skip: r.u32()?,
            payload_len: r.u32()?,
            payload_crc: r.u32()?,
            mark: r.u64()?,
        };
        let tag = r.u64()?;
        header.check()?;
        Ok((header, tag))
    }

    fn check(&self) -> Result<(), ParseError> {
        if self.payload_len as usize > PAYLOAD_MAX {
            return Err(ParseError::BadField("payload length"));
        }
        if self.seq.max(self.op_seq) > NUMBER_MAX {
            return Err(ParseError::BadField("seq"));
        }
        if self.child != ChildIndex::ALL && usize::from(self.child.0) >= crate::ids::CHILDREN_MAX {
            return Err(ParseError::BadField("child"));
        }
        if self.kind.carries_data() { self.check_piece() } else { Ok(()) }
    }

    /// The piece has a position in some vector, no frame is too short for it, and the payload
    /// consists of whole elements of it.
    fn check_piece(&self) -> Result<(), ParseError> {
        let layout = self.signature.layout();
        let Some(end) = self.first.checked_add(u64::from(self.elements)) else {
            return Err(ParseError::BadField("first"));
        };
        if layout.most(&(self.first..end)) > PAYLOAD_MAX as u64 {
            return Err(ParseError::BadField("elements"));
        }
        if self.skip > self.elements {
            return Err(ParseError::BadField("skip"));
        }
        let start = self.first + u64::from(self.skip);
        let mut runs = Way::of(self.kind).iter().filter_map(|way| layout.run(start, u64::from(self.payload_len), *way));
        if runs.any(|run| run.end <= end) { Ok(()) } else { Err(ParseError::BadField("payload length")) }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.is_stream() { "sat" } else { "llt" };
        write!(f, "{:?} {path} job{}{} {} ", self.kind, self.job.0, self.epoch, self.node)?;
        match self.child {
            ChildIndex::ALL => f.write_str("c*")?,
            child => write!(f, "{child}")?,
        }
        write!(
            f,
            " {}{} op {} seq {} {} @{}+{} [+{}, {} B] mark {}",
            self.group,
            self.generation,
            self.op_seq,
            self.seq,
            self.signature,
            self.first,
            self.elements,
            self.skip,
            self.payload_len,
            self.mark
        )?;
        f.write_str(if self.is_replayed() { " replayed" } else { "" })
    }
}
