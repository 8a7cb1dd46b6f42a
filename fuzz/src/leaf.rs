//! A rank's core and its driver, which holds what the core asks for to the rules of the protocol.

use std::collections::BTreeMap;
use std::ops::Range;

use trib_proto::leaf::{GroupId, NewGroup, Note, OpId, Payload, Post, Slice, Standstill};
use trib_proto::{LeafConfig, LeafCore, LeafOutput, Limits, Nanos, Path, window};
use trib_wire::{
    Body, ChildIndex, Collective, Fault, GroupName, Header, Kind, Placement, Rank, RankList, Reason, Signature,
};

use crate::draw::Draw;
use crate::frames::{Frame, WORLD, passes, signature};
use crate::node::{EPOCH, JOB, NODE};

/// The core, and what its driver and its program know.
pub struct Leaf {
    core: LeafCore,
    /// The driver.
    pub out: Driver,
    groups: Vec<(GroupId, RankList)>,
}

/// What the core has asked for.
pub struct Driver {
    rank: Rank,
    /// Frames to the node.
    pub up: Vec<Frame>,
    operations: BTreeMap<OpId, Operation>,
    /// The groups that the program has.
    groups: BTreeMap<GroupId, bool>,
    /// Where the frame that is being handled has its payload, and whether that was used.
    incoming: Option<(u32, Option<Slice>)>,
}

/// A posted operation.
struct Operation {
    signature: Signature,
    size: u32,
    seat: u32,
    /// The elements that were delivered, each at most once.
    delivered: Vec<Range<u64>>,
    /// What of the contribution may still be read; all of it while the operation is under way.
    readable: Option<Range<u64>>,
    is_over: bool,
    is_forgotten: bool,
}

impl Leaf {
    /// A rank without groups.
    pub fn new(rank: u32, limits: Limits, (recovers, strict): (bool, bool), memory: u64) -> Leaf {
        let core = LeafCore::new(LeafConfig {
            job: JOB,
            epoch: EPOCH,
            rank: Rank(rank),
            world_size: WORLD,
            node: NODE,
            child: ChildIndex(rank as u16),
            limits,
            recovers,
            memory,
            strict,
        });
        let out = Driver {
            rank: Rank(rank),
            up: Vec::new(),
            operations: BTreeMap::new(),
            groups: BTreeMap::new(),
            incoming: None,
        };
        Leaf { core, out, groups: Vec::new() }
    }

    /// The program makes a group.
    pub fn create(&mut self, members: RankList, tag: u64, companion: bool) {
        let id = self.core.next_group();
        self.out.groups.insert(id, false);
        let group = NewGroup { members: members.clone(), tag, name: GroupName::default(), companion };
        if self.core.create_group(id, group, &mut self.out).is_ok() {
            self.groups.push((id, members));
        } else {
            self.out.groups.remove(&id);
        }
    }

    /// The program posts an operation in one of its groups.
    pub fn post(&mut self, now: Nanos, which: usize, signature: Signature, number: Option<(u64, u16)>) {
        let Some((group, members)) = self.group(which) else { return };
        let id = self.core.next_op();
        let seat = members.position(self.out.rank).expect("the core has taken the list");
        let operation = Operation {
            signature,
            size: members.len(),
            seat,
            delivered: Vec::new(),
            readable: None,
            is_over: false,
            is_forgotten: false,
        };
        self.out.operations.insert(id, operation);
        if self.core.post(now, group, &Post { id, number, signature, stretch_of: 0 }, &mut self.out).is_err() {
            self.out.operations.remove(&id);
        }
        self.check();
    }

    /// The program frees a group.
    pub fn free(&mut self, now: Nanos, which: usize) {
        let Some((group, _)) = self.group(which) else { return };
        self.groups.retain(|(id, _)| *id != group);
        self.core.free_group(now, group, &mut self.out);
        self.check();
    }

    /// The program says how its board is doing, or that a group cannot go on.
    pub fn tell(&mut self, now: Nanos, which: usize, draw: &mut Draw<'_>) {
        let Some((group, members)) = self.group(which) else { return };
        if draw.one_in(4) {
            let fault =
                Fault { reason: Reason::MemberDead, node: NODE, rank_a: Rank(0), rank_b: Rank(1), signatures: None };
            self.core.report(now, group, fault, &mut self.out);
        } else {
            let late = Standstill {
                operation: draw.number(100),
                signature: signature(draw),
                since: Nanos(0),
                late: Standstill::late(members.iter().map(|rank| rank.0).collect()),
            };
            self.core.tell_of_board(now, group, draw.one_in(2).then_some(late), &mut self.out);
        }
        self.core.done_at_boards(draw.number(100));
        self.check();
    }

    /// A frame comes, which the parsers have let through.
    pub fn frame(&mut self, now: Nanos, frame: &Frame) {
        let Frame { path, header, body } = frame;
        if self.is_detached() || self.core.is_lost() || !passes(header, body) {
            return;
        }
        let destination = self.core.destination(header);
        if let Some(slice) = destination {
            self.out.check_result(&slice);
        }
        let _ = self.core.foresee(header);
        self.out.incoming = header.kind.carries_data().then_some((header.payload_len, destination));
        self.core.on_frame(now, *path, header, body.clone(), &mut self.out);
        self.out.incoming = None;
        self.check();
    }

    /// The stream is open in the next epoch, or in the first.
    pub fn link_up(&mut self, now: Nanos, epoch: trib_wire::Epoch) {
        self.core.on_link_up(now, epoch, &mut self.out);
        self.check();
    }

    /// The stream is closed.
    pub fn link_down(&mut self) {
        if self.is_detached() || self.core.is_lost() {
            return;
        }
        self.core.on_link_down(&mut self.out);
        self.check();
    }

    /// Whether it waits for a stream of the next epoch.
    pub fn is_detached(&self) -> bool {
        self.core.is_detached()
    }

    /// A datagram with this header was too long.
    pub fn too_long(&mut self, now: Nanos, header: &Header) {
        self.core.on_too_long(now, header, &mut self.out);
        self.check();
    }

    /// When the core wants to be called.
    pub fn deadline(&self) -> Nanos {
        self.core.next_deadline()
    }

    /// The clock has come so far.
    pub fn time(&mut self, now: Nanos) {
        if now < self.core.next_deadline() {
            return;
        }
        self.core.on_timer(now, &mut self.out);
        assert!(self.core.next_deadline() > now, "a timer that is due at once again");
        self.check();
    }

    fn group(&self, which: usize) -> Option<(GroupId, RankList)> {
        self.groups.get(which % self.groups.len().max(1)).cloned()
    }

    /// What the core says of itself is what was seen.
    fn check(&self) {
        let open = self.out.operations.values().filter(|operation| !operation.is_over).count();
        assert_eq!(self.core.outstanding(), open, "other operations are outstanding than were completed");
        let _ = (self.core.results_due(), self.core.may_be_revoked(), self.core.may_be_asked());
        assert!(!self.core.is_lost() || open == 0, "a rank without a node waits for operations");
    }
}

impl Driver {
    fn operation(&mut self, id: OpId) -> &mut Operation {
        self.operations.get_mut(&id).unwrap_or_else(|| panic!("{id:?} was never posted"))
    }

    /// A result goes only where the operation has room for it.
    fn check_result(&mut self, slice: &Slice) {
        let operation = self.operation(slice.op);
        let gets = window::gotten(&operation.signature, operation.size, operation.seat);
        let range = slice.range();
        assert!(!operation.is_over, "a result for an operation that is over: {slice:?}");
        assert!(range.start >= gets.start && range.end <= gets.end, "{slice:?} is not in {gets:?}");
        let overlaps = operation.delivered.iter().any(|old| old.start < range.end && range.start < old.end);
        assert!(!overlaps, "{slice:?} comes twice");
    }
}

impl LeafOutput for Driver {
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>) {
        let mut header = *header;
        let body = match payload {
            Payload::None => Body::None,
            Payload::Body(body) => body.clone(),
            Payload::Data(slice) => {
                let operation = self.operation(slice.op);
                let gives = window::given(&operation.signature, operation.size, operation.seat);
                let readable = operation.readable.clone().unwrap_or(gives);
                let range = slice.range();
                assert!(!operation.is_forgotten, "{slice:?} was forgotten");
                assert!(range.start >= readable.start && range.end <= readable.end, "{slice:?} is not in {readable:?}");
                assert_eq!(slice.bytes, header.payload_len);
                Body::None
            }
        };
        if !header.kind.carries_data() {
            header.payload_len = body.to_bytes().len() as u32;
        }
        assert_ne!(header.kind, Kind::Result, "a rank has no results to give");
        assert!(passes(&header, &body), "no parser takes {header:?} with {body:?}");
        self.up.push(Frame { path, header, body });
    }

    fn deliver(&mut self, slice: Slice) {
        let (bytes, destination) = self.incoming.take().expect("one delivery for a frame with data");
        assert_eq!((slice.bytes, Some(slice)), (bytes, destination), "the payload was read to elsewhere");
        self.check_result(&slice);
        self.operation(slice.op).delivered.push(slice.range());
    }

    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>) {
        let operation = self.operation(op);
        assert!(!operation.is_over, "{op:?} is over twice");
        operation.is_over = true;
        let Ok(kept) = result else { return };
        let gets = window::gotten(&operation.signature, operation.size, operation.seat);
        // What this rank gives to an allgather it has, and little of it comes.
        let own = match operation.signature.collective {
            Collective::Allgather => window::given(&operation.signature, operation.size, operation.seat),
            _ => gets.start..gets.start,
        };
        let beside = |range: &Range<u64>| {
            let inside = range.end.min(own.end).saturating_sub(range.start.max(own.start));
            range.end - range.start - inside
        };
        let delivered: u64 = operation.delivered.iter().map(beside).sum();
        assert_eq!(delivered, beside(&gets), "{op:?} succeeds without all of its result");
        operation.readable = Some(kept);
    }

    fn forget(&mut self, op: OpId) {
        let operation = self.operation(op);
        assert!(operation.is_over && !operation.is_forgotten, "{op:?} is forgotten at a wrong time");
        operation.is_forgotten = true;
    }

    fn move_to(&mut self, _: &Placement) {}

    fn group_ready(&mut self, group: GroupId) {
        assert!(self.groups.contains_key(&group), "{group:?} was never made");
    }

    fn group_failed(&mut self, group: GroupId, _: Fault) {
        let failed = self.groups.get_mut(&group).unwrap_or_else(|| panic!("{group:?} was never made"));
        assert!(!std::mem::replace(failed, true), "{group:?} fails twice");
    }

    fn note(&mut self, _: Note) {}
}
