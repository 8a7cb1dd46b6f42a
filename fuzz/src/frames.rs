//! Headers and bodies that a peer may send who holds the right keys and obeys no other rule: what
//! the parser lets through, with numbers near those that are in use.

use trib_proto::Path;
use trib_wire::body::{Held, LATE_MAX, Late};
use trib_wire::header::{HEADER_LEN, NUMBER_MAX};
use trib_wire::standing::MARK_MAX;
use trib_wire::{
    Body, Collective, DataType, Fault, Generation, GroupIndex, GroupKey, GroupName, Header, Kind, Marks, NodeId,
    Placement, Rank, RankList, Reason, ReduceOp, Signature, Standing, Way, WireFormat,
};

use crate::draw::Draw;
use crate::limits::PIECE;

/// The number of ranks of the job. Lists name some beyond it, too.
pub const WORLD: u32 = 6;

/// A frame as it comes from a connection.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The path.
    pub path: Path,
    /// The header.
    pub header: Header,
    /// The body, if it carries no vector data.
    pub body: Body,
}

/// Any frame over the edge that `edge` names; `None` where the parser would refuse it, or no buffer
/// is long enough.
pub fn frame(draw: &mut Draw<'_>, edge: Header) -> Option<Frame> {
    let kind = draw.pick(Kind::ALL);
    let mut header = Header {
        kind,
        group: GroupIndex(draw.below(6)),
        generation: Generation(draw.below(3)),
        flags: u16::from(draw.byte()) & 0xf,
        signature: signature(draw),
        witness: draw.below(WORLD + 1),
        op_seq: draw.number(NUMBER_MAX),
        seq: draw.number(NUMBER_MAX),
        mark: draw.number(u64::MAX),
        ..edge
    };
    if kind.carries_data() {
        piece(draw, &mut header);
    }
    let path = if header.is_stream() != draw.one_in(16) { Path::Stream } else { Path::Datagram };
    let body = body(draw, kind);
    header.payload_len = if kind.carries_data() { header.payload_len } else { body.to_bytes().len() as u32 };
    passes(&header, &body).then_some(Frame { path, header, body })
}

/// Changes something about a frame that was right.
pub fn change(draw: &mut Draw<'_>, frame: &mut Frame) {
    let header = &mut frame.header;
    match draw.below(14) {
        0 => header.group = GroupIndex(draw.below(6)),
        1 => header.generation = Generation(draw.below(3)),
        2 => header.flags = u16::from(draw.byte()) & 0xf,
        3 => header.signature = signature(draw),
        4 => header.witness = draw.below(WORLD + 1),
        5 => header.op_seq = draw.number(NUMBER_MAX),
        6 => header.seq = draw.number(NUMBER_MAX),
        7 => header.mark = draw.number(u64::MAX),
        8 => piece(draw, header),
        9 => header.kind = draw.pick(Kind::ALL),
        10 => frame.path = draw.pick(&[Path::Datagram, Path::Stream]),
        11 => frame.body = body(draw, header.kind),
        12 => header.lane = draw.below(3) as u16,
        _ => header.epoch.0 += draw.below(2),
    }
}

/// Whether this would have been sent on: the parsers take header and body, and the payload fits
/// into a buffer.
pub fn passes(header: &Header, body: &Body) -> bool {
    let mut bytes = [0; HEADER_LEN];
    header.emit(0, &mut bytes);
    let is_body = Body::parse(header.kind, &body.to_bytes()).as_ref() == Ok(body);
    let fits = !header.kind.carries_data() || header.payload_len <= PIECE;
    fits && is_body && Header::parse(&bytes).is_ok()
}

/// What an operation may be.
pub fn signature(draw: &mut Draw<'_>) -> Signature {
    let collective = draw.pick(Collective::ALL);
    let dtype = draw.pick(&[DataType::U8, DataType::F32, DataType::F64]);
    let op = draw.pick(ReduceOp::ALL);
    let (root, count) = (draw.below(WORLD), draw.number(u64::MAX));
    // Sums of floating-point numbers travel in every form.
    let format = match op {
        ReduceOp::Sum if dtype.value().is_float() => WireFormat::ALL[(count % WireFormat::ALL.len() as u64) as usize],
        _ => WireFormat::Plain,
    };
    Signature { collective, dtype, op, format, root, count }
}

/// The position, length and payload of a piece.
fn piece(draw: &mut Draw<'_>, header: &mut Header) {
    let layout = header.signature.layout();
    header.first = draw.number(u64::MAX - u64::from(PIECE));
    header.elements = draw.below(layout.within(PIECE) + 2);
    header.skip = draw.below(header.elements + 1);
    let most = header.elements - header.skip;
    let carried = if draw.one_in(4) { draw.below(most + 1) } else { most };
    header.payload_len = layout.bytes(&(0..u64::from(carried)), Way::Down) as u32;
}

/// A body of a kind.
pub fn body(draw: &mut Draw<'_>, kind: Kind) -> Body {
    match kind {
        Kind::Join => Body::Join {
            key: key(draw),
            fault: draw.one_in(8).then(|| fault(draw)),
            standing: standing(draw),
            nodes: ranks(draw),
            name: GroupName::new(draw.pick(&["", "sums"])),
        },
        Kind::Ready => Body::Ready(key(draw), marks(draw)),
        Kind::Ask => Body::Ask(key(draw)),
        Kind::Move => {
            let moves = draw.below(3);
            Body::Move((0..moves).fold(Placement::FIRST, |now, _| now.without(NodeId(draw.below(3) as u16))))
        }
        Kind::Refused => Body::Refused(key(draw), fault(draw)),
        Kind::Held => Body::Held(Held {
            node: NodeId(draw.below(3) as u16),
            missing: draw.number(u64::MAX),
            have: draw.number(u64::MAX),
            have_base: draw.number(u64::MAX),
        }),
        Kind::Nack => Body::Nack(draw.pick(Reason::ALL)),
        Kind::Lost => Body::Lost(ranks(draw)),
        Kind::GroupError => Body::GroupError(fault(draw)),
        Kind::Late => {
            let list = RankList::from_ranks(ranks(draw).iter().take(LATE_MAX as usize).map(|rank| rank.0));
            Body::Late(Late { waited_ms: draw.word() as u32, ranks: list })
        }
        _ => Body::None,
    }
}

/// The key of one of a few groups.
pub fn key(draw: &mut Draw<'_>) -> GroupKey {
    GroupKey { tag: draw.below(3).into(), creation: draw.below(3), members: ranks(draw) }
}

/// The ranks whose bits are set, and sometimes one that the job does not have, or has twice.
pub fn ranks(draw: &mut Draw<'_>) -> RankList {
    let bits = draw.byte();
    let named = (0..WORLD).filter(|rank| bits >> rank & 1 != 0);
    let odd = (bits >> 6 == 3).then(|| draw.below(WORLD + 2));
    RankList::from_ranks(named.chain(odd))
}

fn fault(draw: &mut Draw<'_>) -> Fault {
    Fault {
        reason: draw.pick(Reason::ALL),
        node: NodeId(draw.below(3) as u16),
        rank_a: Rank(draw.below(WORLD)),
        rank_b: Rank(draw.below(WORLD)),
        signatures: draw.one_in(4).then(|| (signature(draw), signature(draw))),
    }
}

fn marks(draw: &mut Draw<'_>) -> Marks {
    Marks { fragments: draw.number(MARK_MAX), segments: draw.number(MARK_MAX) }
}

fn standing(draw: &mut Draw<'_>) -> Standing {
    let bits = draw.byte();
    let is = |bit: u8| bits >> bit & 1 != 0;
    let all_left = is(2) && is(3);
    Standing {
        resumed: is(0),
        exists: is(1),
        some_left: is(2),
        all_left,
        freed: is(4) || all_left,
        waits: is(5),
        companion: is(6),
        marks: if is(7) { marks(draw) } else { Marks::default() },
    }
}
