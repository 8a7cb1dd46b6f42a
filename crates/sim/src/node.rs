//! The driver of one node core: buffers are symbolic values.

use std::ops::Range;
use std::rc::Rc;

use trib_proto::node::{self, Fold, Link, NodeOutput, Note, Part, Payload, Target};
use trib_proto::placing::View;
use trib_proto::{NodeConfig, NodeCore, Path};
use trib_wire::{Body, ChildIndex, Epoch, Header, JobId, Kind, NodeId, Placement, Way};

use crate::buffer::{Buffer, Ledger};
use crate::checkers::{Account, Holdings};
use crate::environment::{Close, Environment};
use crate::network::Frame;
use crate::symbol::Value;

/// What a core has asked of the process that hosts it.
pub enum Asked {
    /// The neighbour is gone.
    Suspect(NodeId),
    /// There is this placement.
    MoveTo(Placement),
}

/// A node core in one epoch, and the ledger of its buffers.
pub struct Node {
    core: NodeCore<Buffer>,
    identity: Identity,
    placement: Placement,
    ledger: Ledger,
    asked: Vec<Asked>,
}

/// Which core it is.
#[derive(Clone, Copy)]
struct Identity {
    /// The node of the tree, and where it is.
    node: usize,
    site: usize,
    /// Its number among all cores that ever were.
    core: usize,
    epoch: Epoch,
}

impl Node {
    /// The core of a site's node, in an epoch.
    pub fn new(site: usize, view: &View, environment: &mut Environment) -> Node {
        let epoch = view.epoch();
        let number = environment.sites.node(site);
        let core = environment.new_core();
        environment.checkers.core_begins();
        let node = &environment.tree.nodes[number];
        let config = NodeConfig {
            job: JOB,
            epoch,
            node: NodeId(number as u16),
            parent: node.parent.map(|(parent, child)| (NodeId(parent as u16), ChildIndex(child))),
            children: environment.tree.children_of(number),
            world_size: environment.options.ranks,
            limits: environment.options.limits,
            recovers: environment.options.recovers,
            strict: environment.options.strict,
            moves: epoch.0 - environment.first.0,
        };
        let identity = Identity { node: number, site, core, epoch };
        let placement = view.placement().clone();
        Node { core: NodeCore::new(config), identity, placement, ledger: Ledger::default(), asked: Vec::new() }
    }

    /// The placement in which the process hosts the node.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The epoch of the core.
    pub fn epoch(&self) -> Epoch {
        self.identity.epoch
    }

    /// What the core has asked of its process since the last call.
    pub fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// The tree has another placement, and the core says so to its neighbours.
    pub fn move_to(&mut self, placement: &Placement, environment: &mut Environment) {
        self.drive(environment, |core, out| core.move_to(placement, out));
    }

    /// When the core wants its timer.
    pub fn deadline(&self) -> trib_proto::Nanos {
        self.core.next_deadline()
    }

    /// Groups alive.
    pub fn groups(&self) -> usize {
        self.core.groups()
    }

    /// A link's stream is open.
    pub fn link_up(&mut self, link: Link, environment: &mut Environment) {
        let now = environment.now();
        self.drive(environment, |core, out| core.on_link_up(now, link, out));
    }

    /// A link's stream is closed.
    pub fn link_down(&mut self, link: Link, environment: &mut Environment) {
        let now = environment.now();
        if let (ROOT, Link::Child(child)) = (self.identity.node, link) {
            environment.checkers.root_loses(self.identity.core, child.0);
        }
        self.drive(environment, |core, out| core.on_link_down(now, link, out));
    }

    /// The process of a child that has not called is gone.
    pub fn child_gone(&mut self, child: ChildIndex, environment: &mut Environment) {
        let now = environment.now();
        self.drive(environment, |core, out| core.on_gone(now, child, out));
    }

    /// Whether no rank is left below.
    pub fn is_deserted(&self) -> bool {
        self.core.is_deserted()
    }

    /// A frame came.
    pub fn frame(&mut self, link: Link, path: Path, frame: &Frame, environment: &mut Environment) {
        let now = environment.now();
        let (core, node) = (self.identity.core, self.identity.node);
        environment.checkers.core_hears((core, node), link, path, &frame.header);
        if let (ROOT, Link::Child(child), Path::Stream) = (node, link, path) {
            environment.checkers.root_hears(core, child.0, &frame.header);
        }
        let data = frame.data.as_ref().map(|value| self.ledger.enter(Rc::clone(value), path));
        let frame = node::Frame { path, header: &frame.header, body: &frame.body, data };
        self.drive(environment, |core, out| core.on_frame(now, link, frame, out));
    }

    /// A result is in a child's socket.
    pub fn written(&mut self, child: ChildIndex, header: &Header, environment: &mut Environment) {
        let now = environment.now();
        self.drive(environment, |core, out| core.on_written(now, child, header, out));
    }

    /// The kernel refuses a datagram as too long for a link.
    pub fn too_long(&mut self, link: Link, header: &Header, environment: &mut Environment) {
        let now = environment.now();
        self.drive(environment, |core, out| core.on_too_long(now, link, header, out));
    }

    /// The timer is due; silent links are closed.
    pub fn timer(&mut self, environment: &mut Environment) {
        let now = environment.now();
        self.drive(environment, |core, out| core.on_timer(now, out));
        for link in self.core.take_dead_links() {
            let link = match link {
                Link::Parent => environment.above(self.identity.site),
                Link::Child(child) => environment.below(self.identity.site, child),
            };
            if let Some(link) = link {
                environment.close(link, Close::Reset);
            }
        }
    }

    /// Checks that nothing is left.
    pub fn check_empty(&self, environment: &mut Environment) {
        let checkers = &mut environment.checkers;
        checkers.check_node_empty(self.identity.node, self.core.groups(), self.ledger.held());
    }

    fn drive(&mut self, environment: &mut Environment, call: impl FnOnce(&mut NodeCore<Buffer>, &mut Driver<'_>)) {
        let mut driver = Driver { environment, identity: self.identity, ledger: &self.ledger, asked: &mut self.asked };
        call(&mut self.core, &mut driver);
        let account = Account {
            buffers: self.core.buffers_held(),
            datagram_groups: self.core.datagram_groups(),
            streams: self.core.streams_held(),
        };
        let kept = environment.unwritten(self.identity.core).filter(|buffer| !self.ledger.has(**buffer)).count();
        let held = Holdings { kept, ..self.ledger.held() };
        let limits = environment.options.limits;
        environment.checkers.check_memory(self.identity.node, &limits, held, account);
    }
}

fn len(elements: &Range<u64>) -> u64 {
    elements.end.saturating_sub(elements.start)
}

/// The root of every tree.
const ROOT: usize = 0;

/// The job of every run.
pub const JOB: JobId = JobId(7);

struct Driver<'a> {
    environment: &'a mut Environment,
    identity: Identity,
    ledger: &'a Ledger,
    asked: &'a mut Vec<Asked>,
}

impl Driver<'_> {
    fn fail(&mut self, what: &str) {
        let what = format!("node {} {what}", self.identity.node);
        self.environment.checkers.fail("buffers", what);
    }

    /// The elements of a buffer that a frame carries from byte `from` on. Often they are all.
    fn part(&mut self, buffer: &Buffer, from: u32, header: &Header) -> Option<Rc<Value>> {
        let layout = header.signature.layout();
        let way = if header.kind == Kind::Result { Way::Down } else { Way::BetweenNodes };
        let before = layout.run(0, from.into(), way);
        let sent = before.and_then(|before| layout.run(before.end, header.payload_len.into(), way));
        let Some(sent) = sent else {
            self.fail(&format!("cuts an element of buffer {}", buffer.number));
            return None;
        };
        if sent == (0..u64::from(buffer.value.len())) {
            return Some(Rc::clone(&buffer.value));
        }
        let part = buffer.value.slice(sent.start as u32, (sent.end - sent.start) as u32).map(Rc::new);
        if part.is_none() {
            self.fail(&format!("sends beyond the end of buffer {}", buffer.number));
        }
        part
    }

    fn check_fold(&mut self, fold: &Fold, parts: &[Part<Buffer>]) {
        let inside = |part: &Part<Buffer>| {
            (1..=part.buffer.value.len().into()).contains(&len(&part.elements))
                && part.elements.start >= fold.elements.start
                && part.elements.end <= fold.elements.end
        };
        if !parts.iter().all(inside) {
            self.fail(&format!("folds parts outside of {fold:?}"));
        }
        if fold.reduce && !parts.iter().all(|part| part.elements == fold.elements) {
            self.fail(&format!("reduces different elements in {fold:?}"));
        }
        let layout = fold.signature.layout();
        let fits = |elements: &Range<u64>, bytes: u32| {
            Way::ALL.iter().any(|way| layout.bytes(elements, *way) == u64::from(bytes))
        };
        if !fits(&fold.elements, fold.bytes) || !parts.iter().all(|part| fits(&part.elements, part.bytes)) {
            self.fail(&format!("miscounts the bytes of elements in {fold:?}"));
        }
    }
}

impl NodeOutput for Driver<'_> {
    type Buffer = Buffer;

    fn transmit(&mut self, target: Target, path: Path, header: &Header, payload: Payload<'_, Buffer>) {
        let source = match payload {
            Payload::Data { buffer, .. } if path == Path::Stream => Some((self.identity.core, buffer.number)),
            _ => None,
        };
        let (body, data) = match payload {
            Payload::None => (Body::None, None),
            Payload::Body(body) => (body.clone(), None),
            Payload::Data { buffer, from } => match self.part(buffer, from, header) {
                Some(part) => (Body::None, Some(part)),
                None => return,
            },
        };
        let Some(frame) = self.environment.frame(header, body, data) else { return };
        let frame = Rc::new(Frame { source, ..frame });
        let at = (self.identity.core, self.identity.node);
        if let (ROOT, Path::Stream) = (self.identity.node, path) {
            self.environment.checkers.root_says(self.identity.core, header, &frame.body);
        }
        let children = match target {
            Target::Parent => {
                self.environment.checkers.core_says(at, None, path, header);
                return self.environment.send_up(self.identity.site, path, frame);
            }
            Target::Child(child) => 1u64 << child.0,
            Target::Children(bits) => bits,
        };
        for child in (0..64).filter(|c| children & (1 << c) != 0).map(ChildIndex) {
            if usize::from(child.0) < self.environment.tree.nodes[self.identity.node].children.len() {
                self.environment.checkers.core_says(at, Some(child.0), path, header);
                self.environment.send_down(self.identity.site, child, path, Rc::clone(&frame));
            } else {
                self.fail(&format!("sends to {child}, which it does not have"));
            }
        }
    }

    fn fold(&mut self, fold: &Fold, parts: impl Iterator<Item = Part<Buffer>>) -> Buffer {
        let parts: Vec<Part<Buffer>> = parts.collect();
        self.check_fold(fold, &parts);
        let path = parts.first().map_or(Path::Datagram, |part| part.buffer.path);
        let pieces: Vec<(u32, Value)> = parts
            .iter()
            .filter_map(|part| {
                let value = part.buffer.value.slice(0, len(&part.elements) as u32)?;
                Some((part.elements.start.wrapping_sub(fold.elements.start) as u32, value))
            })
            .collect();
        let value = if fold.reduce {
            let values: Vec<&Value> = pieces.iter().map(|(_, value)| value).collect();
            Value::reduce(&fold.signature, &values)
        } else {
            let laid: Vec<(u32, &Value)> = pieces.iter().map(|(at, value)| (*at, value)).collect();
            Value::merge(len(&fold.elements) as u32, &laid).unwrap_or_else(|at| {
                let what = format!("node {}: two parts meet at element {at} of {fold:?}", self.identity.node);
                self.environment.checkers.fail("exactly_once", what);
                Value::uniform(0, 0, len(&fold.elements) as u32)
            })
        };
        self.ledger.enter(Rc::new(value), path)
    }

    fn suspect(&mut self, node: NodeId) {
        self.asked.push(Asked::Suspect(node));
    }

    fn move_to(&mut self, placement: &Placement) {
        self.asked.push(Asked::MoveTo(placement.clone()));
    }

    fn note(&mut self, note: Note) {
        let now = self.environment.now();
        if self.environment.trace.is_printing() {
            let number = self.identity.node;
            let line = format_args!("  n{number:<2}    {:<6} notes  {note:?}", "");
            self.environment.trace.event(now, [note as u64; 3], line);
        } else {
            self.environment.trace.event(now, [note as u64; 3], format_args!(""));
        }
    }
}
