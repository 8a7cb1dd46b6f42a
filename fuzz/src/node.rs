//! A node's core and its driver, which holds what the core asks for to the rules of the protocol.

use trib_proto::node::{self, Fold, Link, NodeChild, NodeConfig, NodeCore, NodeOutput, Note, Part, Payload, Target};
use trib_proto::{Limits, Nanos, Path};
use trib_wire::{Body, ChildIndex, ChildKind, Epoch, Header, JobId, Kind, NodeId, Placement, Rank, RankList, Way};

use crate::draw::Draw;
use crate::frames::{Frame, WORLD, passes};
use crate::ledger::{Buffer, Ledger};
use crate::limits::{PIECE, limits};
use crate::memory;

/// The job of every input.
pub const JOB: JobId = JobId(7);
/// The epoch in which it begins.
pub const EPOCH: Epoch = Epoch(1);
/// The node, and the one above it.
pub const NODE: NodeId = NodeId(1);
const PARENT: (NodeId, ChildIndex) = (NodeId(0), ChildIndex(1));
/// The ranks below it, each a child; the last child is a node with two ranks.
pub const LEAVES: u32 = 3;
const CHILDREN: u16 = 4;

/// The core, and what its driver knows.
pub struct Node {
    core: NodeCore<Buffer>,
    config: NodeConfig,
    /// The driver.
    pub out: Driver,
    /// Whether the stream of each link is open, the parent's last. One that was closed stays so.
    open: Vec<Option<bool>>,
    /// The bytes that the core has taken from the allocator.
    taken: isize,
}

/// What the core has asked for.
pub struct Driver {
    limits: Limits,
    has_parent: bool,
    ledger: Ledger,
    /// Frames to each child, and to the parent.
    pub down: Vec<Vec<Frame>>,
    /// Frames to the parent.
    pub up: Vec<Frame>,
    /// Results that wait to be written into a child's socket.
    written: Vec<(ChildIndex, Header)>,
    /// Datagrams that may still be sent down and up, for those that came.
    may_answer: u64,
    may_ask: u64,
    /// What the driver has taken from the allocator for itself.
    own: isize,
}

impl Node {
    /// A node without groups.
    pub fn new(draw: &mut Draw<'_>) -> Node {
        let limits = limits(draw);
        let has_parent = draw.one_in(2);
        let recovers = draw.one_in(2);
        let rank = |rank| NodeChild { kind: ChildKind::Rank(Rank(rank)), ranks: RankList::from_ranks([rank]) };
        let below = NodeChild { kind: ChildKind::Node(NodeId(2)), ranks: RankList::from_ranks([LEAVES, LEAVES + 1]) };
        let config = NodeConfig {
            job: JOB,
            epoch: EPOCH,
            node: NODE,
            parent: has_parent.then_some(PARENT),
            children: (0..LEAVES).map(rank).chain([below]).collect(),
            world_size: if has_parent { WORLD } else { LEAVES + 2 },
            limits,
            recovers,
            strict: recovers && draw.one_in(2),
            moves: u32::from(recovers && draw.one_in(4)),
        };
        let core = NodeCore::new(config.clone());
        let out = Driver {
            limits,
            has_parent,
            ledger: Ledger::default(),
            down: (0..CHILDREN).map(|_| Vec::new()).collect(),
            up: Vec::new(),
            written: Vec::new(),
            may_answer: 0,
            may_ask: 0,
            own: 0,
        };
        Node { core, config, out, open: vec![None; usize::from(CHILDREN) + 1], taken: 0 }
    }

    /// What it was told.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// One of its links.
    pub fn link(&self, draw: &mut Draw<'_>) -> Link {
        match draw.below(u32::from(CHILDREN) + 1) as u16 {
            child if child < CHILDREN => Link::Child(ChildIndex(child)),
            _ if self.config.parent.is_some() => Link::Parent,
            _ => Link::Child(ChildIndex(0)),
        }
    }

    /// A header that a frame over a link begins as.
    pub fn edge(&self, link: Link) -> Header {
        let (node, child) = match link {
            Link::Child(child) => (NODE, child),
            Link::Parent => PARENT,
        };
        Header::new(Kind::Heartbeat, JOB, EPOCH, node, child)
    }

    /// A frame comes, which the parsers have let through.
    pub fn frame(&mut self, now: Nanos, link: Link, frame: &Frame) {
        let Frame { path, header, body } = frame;
        if self.open[index(link)] != Some(true) || !passes(header, body) {
            return;
        }
        let children = u64::from(CHILDREN);
        match (link, path, header.kind) {
            (Link::Child(_), Path::Datagram, _) => {
                (self.out.may_ask, self.out.may_answer) = (self.out.may_ask + 1, self.out.may_answer + 1)
            }
            (Link::Parent, Path::Datagram, Kind::Result) => self.out.may_answer += children,
            (Link::Parent, Path::Datagram, _) => self.out.may_ask += 1,
            _ => {}
        }
        let has_data = header.kind.carries_data() && header.payload_len > 0;
        let data = has_data.then(|| self.out.ledger.enter(header.payload_len, *path));
        let frame = node::Frame { path: *path, header, body, data };
        self.drive(|core, out| core.on_frame(now, link, frame, out));
    }

    /// The stream of a link opens, if it never did, or closes, if it is open. Returns whether it is
    /// open.
    pub fn link_is(&mut self, now: Nanos, link: Link, up: bool) -> bool {
        match (self.open[index(link)], up) {
            (None, true) => self.drive(|core, out| core.on_link_up(now, link, out)),
            (Some(true), false) => self.drive(|core, out| core.on_link_down(now, link, out)),
            (open, _) => return open == Some(true),
        }
        self.open[index(link)] = Some(up);
        up
    }

    /// A child's process is gone, which may never have called.
    pub fn gone(&mut self, now: Nanos, child: ChildIndex) {
        self.link_is(now, Link::Child(child), false);
        self.drive(|core, out| core.on_gone(now, child, out));
    }

    /// A datagram with this header was too long.
    pub fn too_long(&mut self, now: Nanos, link: Link, header: &Header) {
        self.drive(|core, out| core.on_too_long(now, link, header, out));
    }

    /// A result, or all of them, has gone into its socket.
    pub fn write(&mut self, now: Nanos, all: bool) {
        while !self.out.written.is_empty() {
            let (child, header) = self.out.written.remove(0);
            self.drive(|core, out| core.on_written(now, child, &header, out));
            if !all {
                return;
            }
        }
    }

    /// The clock has come so far. Links that the core gives up are closed.
    pub fn time(&mut self, now: Nanos) {
        if now < self.core.next_deadline() {
            return;
        }
        self.drive(|core, out| core.on_timer(now, out));
        assert!(self.core.next_deadline() > now, "a timer that is due at once again");
        for link in self.core.take_dead_links() {
            self.link_is(now, link, false);
        }
    }

    /// Everything that is asked about it by people.
    pub fn explain(&self) {
        assert!(self.core.group_reports().count() <= self.core.groups());
        let _ = (self.core.at_boards(), self.core.is_deserted());
    }

    /// Tells the neighbours of another placement, at the end.
    pub fn move_to(&mut self, placement: &Placement) {
        self.drive(|core, out| core.move_to(placement, out));
    }

    fn drive(&mut self, call: impl FnOnce(&mut NodeCore<Buffer>, &mut Driver)) {
        let (before, own) = (memory::now(), self.out.own);
        call(&mut self.core, &mut self.out);
        self.taken += memory::now() - before - (self.out.own - own);
        self.check_memory();
    }

    /// The core holds no more than its grant, in buffers and in bytes of its own.
    fn check_memory(&self) {
        let (held, limits) = (self.out.ledger.held(), &self.config.limits);
        let children = self.config.children.len();
        assert_eq!(held, self.core.buffers_held(), "it holds other buffers than it knows of");
        let slots = limits.window as usize * (children + 1);
        assert!(held.0 <= self.core.datagram_groups() * slots, "{} datagrams", held.0);
        assert!(
            self.core.datagram_groups() * limits.window as usize <= limits.osts as usize,
            "more slots than granted"
        );
        let streams = self.core.streams_held();
        assert!(streams <= limits.streams as usize, "{streams} stream contexts");
        let context = children * limits.staging as usize + limits.flight as usize;
        assert!(held.1 <= streams * context, "{} segments in {streams} contexts", held.1);
        assert!(self.taken <= CORE_BYTES_MAX, "the core has taken {} bytes", self.taken);
    }
}

/// Where a link is in lists of all.
fn index(link: Link) -> usize {
    match link {
        Link::Child(child) => usize::from(child.0),
        Link::Parent => usize::from(CHILDREN),
    }
}

impl Driver {
    /// Checks a frame that the core sends, and files it.
    fn send(&mut self, target: Target, frame: Frame) {
        let children = match target {
            Target::Parent => {
                assert!(self.has_parent, "a frame to a parent that is not there");
                self.spend(false, &frame);
                return self.up.push(frame);
            }
            Target::Child(child) => 1u64.checked_shl(child.0.into()).expect("a child of at most 64"),
            Target::Children(bits) => bits,
        };
        assert!(children != 0 && children < 1 << CHILDREN, "a frame to children {children:b}");
        for child in (0..CHILDREN).filter(|child| children >> child & 1 != 0) {
            self.spend(true, &frame);
            if (frame.path, frame.header.kind) == (Path::Stream, Kind::Result) {
                self.written.push((ChildIndex(child), frame.header));
            }
            self.down[usize::from(child)].push(frame.clone());
        }
    }

    /// A node sends no datagram for which it was not asked.
    fn spend(&mut self, down: bool, frame: &Frame) {
        if frame.path == Path::Datagram {
            let purse = if down { &mut self.may_answer } else { &mut self.may_ask };
            *purse = purse.checked_sub(1).unwrap_or_else(|| panic!("sent without a cause: {}", frame.header));
        }
    }
}

impl NodeOutput for Driver {
    type Buffer = Buffer;

    fn transmit(&mut self, target: Target, path: Path, header: &Header, payload: Payload<'_, Buffer>) {
        let before = memory::now();
        let mut header = *header;
        let body = match payload {
            Payload::None => Body::None,
            Payload::Body(body) => body.clone(),
            Payload::Data { buffer, from } => {
                let end = from.checked_add(header.payload_len).expect("a part of a buffer");
                assert!(end <= buffer.len, "bytes {from}..{end} of a buffer of {}", buffer.len);
                Body::None
            }
        };
        if !header.kind.carries_data() {
            header.payload_len = body.to_bytes().len() as u32;
        }
        assert!(passes(&header, &body), "no parser takes {header:?} with {body:?}");
        assert_eq!((header.job, header.epoch), (JOB, EPOCH));
        self.send(target, Frame { path, header, body });
        self.own += memory::now() - before;
    }

    fn fold(&mut self, fold: &Fold, parts: impl Iterator<Item = Part<Buffer>>) -> Buffer {
        let layout = fold.signature.layout();
        let fits = |elements: &std::ops::Range<u64>, bytes: u32| {
            Way::ALL.iter().any(|way| layout.bytes(elements, *way) == u64::from(bytes))
        };
        assert!(fits(&fold.elements, fold.bytes) && fold.bytes <= PIECE, "{fold:?}");
        let (mut count, mut path) = (0, Path::Datagram);
        for Part { buffer, elements, bytes } in parts {
            assert!(bytes <= buffer.len && fits(&elements, bytes), "{bytes} bytes of {elements:?} in {buffer:?}");
            assert!(!elements.is_empty() && elements.start >= fold.elements.start && elements.end <= fold.elements.end);
            assert!(!fold.reduce || elements == fold.elements, "{elements:?} in {fold:?}");
            (count, path) = (count + 1, buffer.path);
        }
        assert!(count >= 2, "a fold of {count} parts");
        self.ledger.enter(fold.bytes, path)
    }

    fn note(&mut self, _: Note) {}

    fn suspect(&mut self, node: NodeId) {
        assert!(node == NodeId(2) || (self.has_parent && node == PARENT.0), "{node} is no neighbour");
        assert!(self.limits.are_valid());
    }

    fn move_to(&mut self, _: &Placement) {}
}

/// The bytes of a core's own memory: the control memory of the quotas here, and what is there
/// without a group.
const CORE_BYTES_MAX: isize = 96 << 10;
