//! Typed payloads of the frames that carry no vector data. One type per message.
//!
//! ```text
//! key         tag u64 | creation u32 | ranks
//! ranks       runs u32 | runs x (first u32, count u32, stride i32)
//! fault       reason u16 (0: none), node u16 | rank a u32 | rank b u32 | signed u32
//!             | 2 x signature
//! signature   collective u8, datatype u8, operator u8, wire format u8 | root u32 | count u64
//! Join        fault | key | standing | nodes as ranks | name length u16, name
//! Ready       key | marks
//! Refused     fault | key
//! Held        node u16, reserved u16, reserved u32 | missing u64 | have u64 | have_base u64
//! Nack        reason u16
//! GroupError  fault
//! Lost        ranks
//! Ask         key
//! Move        placement
//! Late        waited u32 | ranks
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use smallvec::SmallVec;

use crate::bytes::{Reader, Writer};
use crate::datatype::DataType;
use crate::directory::{Directory, GroupName, Numbers};
use crate::error::ParseError;
use crate::format::WireFormat;
use crate::header::Kind;
use crate::ids::{NodeId, Rank};
use crate::operation::{Collective, ReduceOp, Signature};
use crate::placement::Placement;
use crate::ranks::RankList;
use crate::standing::{Marks, Standing};

/// What distinguishes one creation of a group from any other of the job; all its members give the
/// same key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupKey {
    /// The caller's own number, 0 if it has none.
    pub tag: u64,
    /// How many creations with this tag and these members each member has begun before.
    pub creation: u32,
    /// The members; the index of one is its rank in the group.
    pub members: RankList,
}

/// Why a group failed or was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[repr(u16)]
pub enum Reason {
    /// The job's quota of groups is used up at a node.
    GroupQuota = 1,
    /// The job's quota of outstanding transactions (slots) is used up at a node.
    OstQuota = 2,
    /// Some members are outside the job, or twice in the list.
    BadMembers = 3,
    /// A member's connection closed, or its heartbeats stopped, before it left.
    MemberDead = 4,
    /// A member left the group while others still use it.
    MemberLeft = 5,
    /// Two ranks disagree about the operation.
    Mismatch = 6,
    /// A node of the tree is gone.
    NodeDead = 7,
    /// The job was ended.
    JobEnded = 8,
    /// A frame broke the protocol (window, credit or order).
    Protocol = 9,
    /// The node has no such group, generation or epoch.
    Unknown = 10,
    /// A node met an error of its own program and gave the job up.
    NodeFailed = 11,
    /// Datagrams of the job's length do not get through to a node, shorter ones do.
    DatagramTooLong = 12,
    /// A node answers on its stream and leaves datagrams without an answer.
    DatagramsBlocked = 13,
    /// A node is asked for a result again and again, however often it sends it.
    ResultLost = 14,
    /// The job's groups have used up the memory for them at a node.
    GroupMemory = 15,
}

impl Reason {
    /// Every reason.
    pub const ALL: &'static [Reason] = &[
        Reason::GroupQuota,
        Reason::OstQuota,
        Reason::BadMembers,
        Reason::MemberDead,
        Reason::MemberLeft,
        Reason::Mismatch,
        Reason::NodeDead,
        Reason::JobEnded,
        Reason::Protocol,
        Reason::Unknown,
        Reason::NodeFailed,
        Reason::DatagramTooLong,
        Reason::DatagramsBlocked,
        Reason::ResultLost,
        Reason::GroupMemory,
    ];

    /// The reason with this code.
    pub fn from_code(code: u16) -> Option<Reason> {
        Reason::ALL.iter().copied().find(|r| *r as u16 == code)
    }
}

/// A reason, where it arose, and which ranks it concerns. It has the same size whatever it says, in
/// a frame and in a control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fault {
    /// Why.
    pub reason: Reason,
    /// The node that found the fault.
    pub node: NodeId,
    /// A rank on one side: the dead one, one that posted `signatures.0`, or the first at or below
    /// the lower end of the edge that datagrams do not pass.
    pub rank_a: Rank,
    /// A rank on the other side, or the last one below; equal to `rank_a` where there is only one.
    pub rank_b: Rank,
    /// For `Mismatch`: what each of the two posted.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub signatures: Option<(Signature, Signature)>,
}

impl Fault {
    /// In words, with the names by which people know nodes and ranks.
    pub fn told(&self, by: &dyn Directory) -> String {
        let (node, a, b) = (by.node(self.node), by.rank(self.rank_a), by.rank(self.rank_b));
        match self.reason {
            Reason::GroupQuota => {
                format!("the job's quota of groups is used up at node {node}: free a group or ask for more")
            }
            Reason::OstQuota => format!(
                "the job's quota of outstanding transactions is used up at node {node}: free a group or ask for more"
            ),
            Reason::GroupMemory => format!(
                "the job's groups have used up the memory for them at node {node}: free a group or ask for more control_memory"
            ),
            Reason::BadMembers => {
                format!("the member list names a rank twice or outside the job (seen at node {node})")
            }
            Reason::MemberDead => format!("{a} died or lost its connection to node {node}"),
            Reason::MemberLeft if self.rank_a == self.rank_b => {
                format!("{a} left the group while it was in use")
            }
            Reason::MemberLeft => format!("{a} left the group while {b} still uses it"),
            Reason::Mismatch => match &self.signatures {
                Some((one, other)) => format!(
                    "ranks disagree about the operation: {a} called {}, {b} called {}",
                    one.told(by),
                    other.told(by)
                ),
                None => format!("ranks disagree about the operation: {a} and {b}"),
            },
            Reason::NodeDead => format!("node {node} of the reduction tree is gone or does not answer"),
            Reason::JobEnded => "the job was ended by the manager".to_string(),
            Reason::Protocol => format!("a frame broke the protocol at node {node} ({a} or below)"),
            Reason::Unknown => format!("node {node} does not know this group"),
            Reason::NodeFailed => format!(
                "node {node} of the reduction tree gave the job up after an error of its own: its log says more, please report it"
            ),
            Reason::DatagramTooLong => format!(
                "datagrams of this job's length do not get through between {} and node {node}, shorter ones do: the way between them carries less than the topology's `mtu` says; correct either, or ask for a smaller `payload`",
                self.lower_end(by)
            ),
            Reason::DatagramsBlocked => format!(
                "node {node} answers {} on its connection, but not by datagram: is UDP blocked between them, or does the way carry less than the topology's `mtu` says?",
                self.lower_end(by)
            ),
            Reason::ResultLost => format!(
                "{} asks node {node} by datagram for a result that never gets there, however often the node sends it: is UDP blocked that way, or does it carry less than the topology's `mtu` says?",
                self.lower_end(by)
            ),
        }
    }

    /// The lower end of an edge: a rank, or a node that has a name only where it stands.
    fn lower_end(&self, by: &dyn Directory) -> String {
        if self.rank_a == self.rank_b {
            return by.rank(self.rank_a);
        }
        format!("the node above {} to rank {}", by.rank(self.rank_a), self.rank_b.0)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&Numbers))
    }
}

/// The answer to a contribution or a probe while the result is not there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The node whose children are named: where the fragment waits.
    pub node: NodeId,
    /// Children of that node that have not contributed.
    pub missing: u64,
    /// Bit i: the contribution to fragment `have_base + i` of the asking child is here.
    pub have: u64,
    /// The first fragment to which `have` refers.
    pub have_base: u64,
}

/// What a member says of a group that works over a board, and with it every node above that member
/// up to the group's root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Late {
    /// For how long the member has waited, in milliseconds.
    pub waited_ms: u32,
    /// For which world ranks, the lowest [`LATE_MAX`] of them; none if the group goes on.
    pub ranks: RankList,
}

/// The largest number of ranks that are named as late. People need no more, and a node has room for
/// so many.
pub const LATE_MAX: u32 = 16;

/// A typed payload; `None` for header-only frames. Vector data is not a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Header-only.
    None,
    /// `Kind::Join`.
    Join {
        /// Which group.
        key: GroupKey,
        /// Set when something below has failed already.
        fault: Option<Fault>,
        /// What the ranks below have of it.
        standing: Standing,
        /// The numbers of the nodes below that fold for this group, and that of the sender if it is
        /// a node.
        nodes: RankList,
        /// What the program calls the group.
        name: GroupName,
    },
    /// `Kind::Ready`: the pieces with which each path begins in this epoch.
    Ready(GroupKey, Marks),
    /// `Kind::Refused`.
    Refused(GroupKey, Fault),
    /// `Kind::Held`.
    Held(Held),
    /// `Kind::Nack`.
    Nack(Reason),
    /// `Kind::GroupError`.
    GroupError(Fault),
    /// `Kind::Lost`: world ranks.
    Lost(RankList),
    /// `Kind::Ask`.
    Ask(GroupKey),
    /// `Kind::Move`.
    Move(Placement),
    /// `Kind::Late`.
    Late(Late),
}

/// A body as it travels. All bodies except those that name ranks fit inside without allocation.
pub type BodyBytes = SmallVec<[u8; FAULT_LEN]>;

impl Body {
    /// The body as bytes; empty for `None`. Bodies that are sent while operations run need no
    /// memory from the allocator.
    pub fn to_bytes(&self) -> BodyBytes {
        let mut bytes = BodyBytes::from_elem(0, self.wire_len());
        let mut w = Writer::new(&mut bytes);
        match self {
            Body::None => {}
            Body::Join { key, fault, standing, nodes, name } => {
                emit_fault(&mut w, fault.as_ref());
                emit_key(&mut w, key);
                standing.emit(&mut w);
                nodes.emit(&mut w);
                name.emit(&mut w);
            }
            Body::Ready(key, marks) => {
                emit_key(&mut w, key);
                marks.emit(&mut w);
            }
            Body::Ask(key) => emit_key(&mut w, key),
            Body::Refused(key, fault) => {
                emit_fault(&mut w, Some(fault));
                emit_key(&mut w, key);
            }
            Body::Held(held) => {
                w.u16(held.node.0);
                w.u16(0);
                w.u32(0);
                w.u64(held.missing);
                w.u64(held.have);
                w.u64(held.have_base);
            }
            Body::Nack(reason) => w.u16(*reason as u16),
            Body::GroupError(fault) => emit_fault(&mut w, Some(fault)),
            Body::Lost(ranks) => ranks.emit(&mut w),
            Body::Move(placement) => placement.emit(&mut w),
            Body::Late(late) => {
                w.u32(late.waited_ms);
                late.ranks.emit(&mut w);
            }
        }
        debug_assert_eq!(w.at(), bytes.len());
        bytes
    }

    fn wire_len(&self) -> usize {
        let key_len = |key: &GroupKey| 12 + key.members.wire_len();
        match self {
            Body::None => 0,
            Body::Join { key, nodes, name, .. } => {
                FAULT_LEN + key_len(key) + Standing::LEN + nodes.wire_len() + name.wire_len()
            }
            Body::Refused(key, _) => FAULT_LEN + key_len(key),
            Body::Ready(key, _) => key_len(key) + Marks::LEN,
            Body::Ask(key) => key_len(key),
            Body::Held(_) => 32,
            Body::Nack(_) => 2,
            Body::GroupError(_) => FAULT_LEN,
            Body::Lost(ranks) => ranks.wire_len(),
            Body::Move(placement) => placement.wire_len(),
            Body::Late(late) => 4 + late.ranks.wire_len(),
        }
    }

    /// Reads the body of a frame of this kind. Kinds that carry vector data or nothing give `None`.
    pub fn parse(kind: Kind, bytes: &[u8]) -> Result<Body, ParseError> {
        let mut r = Reader::new(bytes);
        let body = match kind {
            Kind::Join => {
                let fault = parse_fault(&mut r)?;
                let (key, standing) = (parse_key(&mut r)?, Standing::parse(&mut r)?);
                Body::Join { key, fault, standing, nodes: RankList::parse(&mut r)?, name: GroupName::parse(&mut r)? }
            }
            Kind::Ready => Body::Ready(parse_key(&mut r)?, Marks::parse(&mut r)?),
            Kind::Ask => Body::Ask(parse_key(&mut r)?),
            Kind::Move => Body::Move(Placement::parse(&mut r)?),
            Kind::Refused => {
                let fault = parse_fault(&mut r)?.ok_or(ParseError::BadField("fault"))?;
                Body::Refused(parse_key(&mut r)?, fault)
            }
            Kind::Held => {
                let node = NodeId(r.u16()?);
                r.u16()?;
                r.u32()?;
                Body::Held(Held { node, missing: r.u64()?, have: r.u64()?, have_base: r.u64()? })
            }
            Kind::Nack => Body::Nack(parse_reason(&mut r)?.ok_or(ParseError::BadField("reason"))?),
            Kind::Lost => Body::Lost(RankList::parse(&mut r)?),
            Kind::GroupError => Body::GroupError(parse_fault(&mut r)?.ok_or(ParseError::BadField("fault"))?),
            Kind::Late => {
                let late = Late { waited_ms: r.u32()?, ranks: RankList::parse(&mut r)? };
                if late.ranks.len() > LATE_MAX {
                    return Err(ParseError::BadField("late ranks"));
                }
                Body::Late(late)
            }
            _ => Body::None,
        };
        r.end()?;
        Ok(body)
    }
}

const FAULT_LEN: usize = 12 + 4 + 2 * SIGNATURE_LEN;
const SIGNATURE_LEN: usize = 16;

fn emit_key(w: &mut Writer<'_>, key: &GroupKey) {
    w.u64(key.tag);
    w.u32(key.creation);
    key.members.emit(w);
}

fn parse_key(r: &mut Reader<'_>) -> Result<GroupKey, ParseError> {
    Ok(GroupKey { tag: r.u64()?, creation: r.u32()?, members: RankList::parse(r)? })
}

fn emit_fault(w: &mut Writer<'_>, fault: Option<&Fault>) {
    let none = Signature {
        collective: Collective::Barrier,
        dtype: DataType::U8,
        op: ReduceOp::BitOr,
        format: WireFormat::Plain,
        root: 0,
        count: 0,
    };
    let (a, b) = fault.and_then(|f| f.signatures).unwrap_or((none, none));
    w.u16(fault.map_or(0, |f| f.reason as u16));
    w.u16(fault.map_or(0, |f| f.node.0));
    w.u32(fault.map_or(0, |f| f.rank_a.0));
    w.u32(fault.map_or(0, |f| f.rank_b.0));
    w.u32(u32::from(fault.is_some_and(|f| f.signatures.is_some())));
    for s in [a, b] {
        w.u8(s.collective.code());
        w.u8(s.dtype.code());
        w.u8(s.op.code());
        w.u8(s.format.code());
        w.u32(s.root);
        w.u64(s.count);
    }
}

fn parse_reason(r: &mut Reader<'_>) -> Result<Option<Reason>, ParseError> {
    match r.u16()? {
        0 => Ok(None),
        code => Reason::from_code(code).map(Some).ok_or(ParseError::BadField("reason")),
    }
}

fn parse_fault(r: &mut Reader<'_>) -> Result<Option<Fault>, ParseError> {
    let reason = parse_reason(r)?;
    let node = NodeId(r.u16()?);
    let (rank_a, rank_b) = (Rank(r.u32()?), Rank(r.u32()?));
    let signed = r.u32()? != 0;
    let (a, b) = (parse_signature(r)?, parse_signature(r)?);
    let signatures = signed.then_some((a, b));
    Ok(reason.map(|reason| Fault { reason, node, rank_a, rank_b, signatures }))
}

fn parse_signature(r: &mut Reader<'_>) -> Result<Signature, ParseError> {
    let collective = Collective::from_code(r.u8()?).ok_or(ParseError::BadField("collective"))?;
    let dtype = DataType::from_code(r.u8()?).ok_or(ParseError::BadField("dtype"))?;
    let op = ReduceOp::from_code(r.u8()?).ok_or(ParseError::BadField("op"))?;
    let format = WireFormat::from_code(r.u8()?).ok_or(ParseError::BadField("wire format"))?;
    Ok(Signature { collective, dtype, op, format, root: r.u32()?, count: r.u64()? })
}
