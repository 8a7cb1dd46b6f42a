//! The driver of one leaf core, and the rank's program on top of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use trib_proto::leaf::{GroupId, LeafError, NewGroup, Note, OpId, Payload, Post, Slice};
use trib_proto::placing::{Caller, View};
use trib_proto::{LeafConfig, LeafCore, LeafOutput, Nanos, Path};
use trib_wire::{
    Body, ChildIndex, Epoch, Fault, Generation, GroupIndex, GroupName, Header, Kind, NodeId, Placement, Rank, RankList,
};

use crate::environment::{Close, Edge, Environment, Event};
use crate::network::Frame;
use crate::node::JOB;
use crate::symbol::{Value, contribution};
use crate::workload::{OperationPlan, Step, Workload};

/// A leaf core and its program.
pub struct Leaf {
    core: LeafCore,
    names: Names,
    script: Vec<Step>,
    next: usize,
    asleep_until: Nanos,
    groups: BTreeMap<usize, GroupId>,
    unmade: BTreeMap<usize, Fault>,
    way: Way,
}

/// What the rank knows of the placement, and how it comes to the node above.
pub struct Way {
    /// The placement.
    pub view: View,
    /// When it calls which candidate.
    pub caller: Caller,
}

/// What the core's names stand for in the program.
struct Names {
    rank: u32,
    actor: usize,
    operations: BTreeMap<OpId, usize>,
    groups: BTreeMap<GroupId, usize>,
    /// Where the rank has stopped in its groups, by their names at the node.
    stops: BTreeMap<(GroupIndex, Generation), u64>,
    /// Whether stream frames that read an operation's input may still be queued.
    may_queue: bool,
    /// The placements of which the core was told.
    told: Vec<Placement>,
}

impl Leaf {
    /// The core of a rank, with its script.
    pub fn new(rank: u32, script: Vec<Step>, calls_at: Nanos, environment: &Environment) -> Leaf {
        let (node, child) = environment.tree.leaves[rank as usize];
        let config = LeafConfig {
            job: JOB,
            epoch: environment.first,
            rank: Rank(rank),
            world_size: environment.options.ranks,
            node: NodeId(node as u16),
            child: ChildIndex(child),
            limits: environment.options.limits,
            recovers: environment.options.recovers,
            memory: environment.options.rank_memory,
            strict: environment.options.strict,
        };
        Leaf {
            core: LeafCore::new(config),
            names: Names {
                rank,
                actor: environment.actor_of(rank),
                operations: BTreeMap::new(),
                groups: BTreeMap::new(),
                stops: BTreeMap::new(),
                may_queue: false,
                told: Vec::new(),
            },
            way: Way {
                view: View::new(environment.first),
                caller: Caller::new(NodeId(node as u16), environment.sites.candidates(node), calls_at),
            },
            script,
            next: 0,
            asleep_until: Nanos(0),
            groups: BTreeMap::new(),
            unmade: BTreeMap::new(),
        }
    }

    /// When the core wants its timer.
    pub fn deadline(&self) -> Nanos {
        self.core.next_deadline()
    }

    /// How the rank comes to the node above.
    pub fn way(&mut self) -> &mut Way {
        &mut self.way
    }

    /// When it calls again, or gives up a call.
    pub fn calls_at(&self) -> Nanos {
        self.way.caller.deadline()
    }

    /// The placements of which the core was told since the last call.
    pub fn take_told(&mut self) -> Vec<Placement> {
        std::mem::take(&mut self.names.told)
    }

    /// Whether the core waits for a connection of the next epoch.
    pub fn is_detached(&self) -> bool {
        self.core.is_detached()
    }

    /// Groups that the program has freed and others have not.
    pub fn left_behind(&self) -> usize {
        self.core.groups_left_behind()
    }

    /// Whether operations are outstanding.
    pub fn is_undecided(&self) -> bool {
        self.core.outstanding() > 0
    }

    /// Whether another rank may ask how a group has ended.
    pub fn may_be_asked(&self) -> bool {
        self.core.may_be_asked()
    }

    /// Whether the program has come to its end.
    pub fn is_done(&self) -> bool {
        self.next == self.script.len()
    }

    /// When the program goes on, if it sleeps.
    pub fn asleep_until(&self) -> Nanos {
        self.asleep_until
    }

    /// The link's stream is open.
    pub fn link_up(&mut self, epoch: Epoch, environment: &mut Environment) {
        let now = environment.now();
        environment.checkers.linked(self.names.rank);
        let mut driver = self.names.driver(environment, None);
        self.core.on_link_up(now, epoch, &mut driver);
    }

    /// The link's stream is closed.
    pub fn link_down(&mut self, environment: &mut Environment) {
        let mut driver = self.names.driver(environment, None);
        self.core.on_link_down(&mut driver);
    }

    /// A frame came; its payload is read straight to where the core says.
    pub fn frame(&mut self, path: Path, frame: &Frame, environment: &mut Environment) {
        let now = environment.now();
        // In a later epoch a group begins anew, and results come again that are here.
        let comes_again = environment.checkers.has_moved();
        match frame.header.kind {
            Kind::Ready if comes_again => environment.checkers.goes_on(self.names.rank),
            Kind::Result if comes_again || frame.header.payload_len == 0 => {
                environment.checkers.goes_on(self.names.rank);
            }
            _ => {}
        }
        if frame.header.kind == Kind::LeaseEnd {
            let stop = self.names.stops.remove(&(frame.header.group, frame.header.generation));
            environment.rolled_back |= stop.is_some_and(|stop| stop > frame.header.seq);
        }
        let destination = frame.data.as_ref().and_then(|_| self.core.destination(&frame.header));
        if let (Some(slice), Some(value)) = (destination, &frame.data) {
            self.placed(slice, value, environment);
        }
        let mut driver = self.names.driver(environment, frame.data.as_ref());
        driver.destination = destination;
        let (header, body) = (&frame.header, frame.body.clone());
        self.core.on_frame(now, path, header, body, &mut driver);
        if header.kind == Kind::Refused {
            environment.checkers.refused(self.names.rank);
        }
    }

    /// The kernel refuses a datagram as too long for the way.
    pub fn too_long(&mut self, header: &Header, environment: &mut Environment) {
        let now = environment.now();
        let mut driver = self.names.driver(environment, None);
        self.core.on_too_long(now, header, &mut driver);
    }

    /// The timer is due; the link to a silent node is closed.
    pub fn timer(&mut self, environment: &mut Environment) {
        let now = environment.now();
        let had_link = !self.core.is_lost() && !self.core.is_detached();
        let mut driver = self.names.driver(environment, None);
        self.core.on_timer(now, &mut driver);
        let Some(link) = environment.above(self.names.actor).filter(|_| had_link) else { return };
        if self.core.is_lost() {
            environment.close(link, Close::Reset);
        } else if self.core.is_detached() {
            self.way.caller.on_lost(now, &mut self.way.view);
            let mut driver = self.names.driver(environment, None);
            self.core.move_to(self.way.view.placement(), &mut driver);
            environment.close(link, Close::Orderly);
            environment.forget(Edge { link, up: false });
        }
    }

    /// Goes on with the program as far as that is possible without waiting.
    pub fn run(&mut self, work: &Workload, environment: &mut Environment) {
        while environment.now() >= self.asleep_until {
            let Some(step) = self.script.get(self.next) else {
                return;
            };
            let rank = self.names.rank;
            match step.clone() {
                Step::Sleep(span) => {
                    self.asleep_until = environment.now() + span;
                    let actor = self.names.actor;
                    environment.clock.at(self.asleep_until, Event::Program(actor));
                }
                Step::Wait(operations) => {
                    let checkers = &environment.checkers;
                    if !operations.iter().all(|op| checkers.is_complete(*op, rank)) {
                        return;
                    }
                }
                Step::Create(group) => self.create(group, work, environment),
                Step::Post(operation) => self.post(operation, &work.operations, environment),
                Step::Free(group) => self.free(group, environment),
            }
            self.next += 1;
        }
    }

    /// Checks that nothing is outstanding.
    pub fn check_empty(&self, environment: &mut Environment) {
        let (outstanding, behind) = (self.core.outstanding(), self.core.groups_left_behind());
        environment.checkers.check_leaf_empty(self.names.rank, outstanding, behind);
        environment.checkers.check_nothing_kept(self.names.rank);
    }

    fn create(&mut self, group: usize, work: &Workload, environment: &mut Environment) {
        let plan = &work.groups[group];
        environment.checkers.creates();
        let members = RankList::from_ranks(plan.members.iter().copied());
        let id = self.core.next_group();
        self.names.groups.insert(id, group);
        let mut driver = self.names.driver(environment, None);
        let new = NewGroup { members, tag: plan.tag, name: GroupName::default(), companion: false };
        match self.core.create_group(id, new, &mut driver) {
            Ok(()) => {
                self.groups.insert(group, id);
            }
            Err(LeafError::Failed(fault)) => {
                let checkers = &mut environment.checkers;
                checkers.group_failed(group, self.names.rank, &fault);
                self.unmade.insert(group, fault);
            }
            Err(error) => self.refused(group, &error, environment),
        }
    }

    fn post(&mut self, operation: usize, plans: &[OperationPlan], environment: &mut Environment) {
        let now = environment.now();
        let rank = self.names.rank;
        let plan = &plans[operation];
        environment.checkers.posted(operation, rank);
        let signature = match plan.odd {
            Some((odd, signature)) if odd == rank => signature,
            _ => plan.signature,
        };
        let outcome = match self.groups.get(&plan.group) {
            None => Err(match self.unmade.get(&plan.group) {
                Some(fault) => LeafError::Failed(*fault),
                None => LeafError::UnknownGroup,
            }),
            Some(group) => {
                let id = self.core.next_op();
                self.names.operations.insert(id, operation);
                let mut driver = self.names.driver(environment, None);
                let post = Post { id, number: None, signature, stretch_of: plan.stretch_of(operation) };
                self.core.post(now, *group, &post, &mut driver)
            }
        };
        match outcome {
            Ok(_) => {}
            Err(LeafError::Failed(fault)) => {
                let checkers = &mut environment.checkers;
                checkers.completed(operation, rank, Err(fault), false);
            }
            Err(error) => self.refused(plan.group, &error, environment),
        }
    }

    fn free(&mut self, group: usize, environment: &mut Environment) {
        let now = environment.now();
        environment.checkers.freed(group, self.names.rank);
        if let Some(id) = self.groups.remove(&group) {
            let mut driver = self.names.driver(environment, None);
            self.core.free_group(now, id, &mut driver);
        }
    }

    fn refused(&self, group: usize, error: &LeafError, environment: &mut Environment) {
        let what = format!("rank {}, group {group}: {error:?}", self.names.rank);
        environment.checkers.fail("calls", what);
    }

    fn placed(&mut self, slice: Slice, value: &Value, environment: &mut Environment) {
        let rank = self.names.rank;
        match self.names.operations.get(&slice.op) {
            Some(operation) if slice.elements == value.len() => {
                environment.checkers.placed(*operation, rank, slice.first, value);
            }
            _ => {
                let what = format!("rank {rank} places {} elements at {slice:?}", value.len());
                environment.checkers.fail("calls", what);
            }
        }
    }
}

impl Names {
    fn driver<'a>(&'a mut self, environment: &'a mut Environment, data: Option<&'a Rc<Value>>) -> Driver<'a> {
        Driver { environment, names: self, data, destination: None }
    }
}

struct Driver<'a> {
    environment: &'a mut Environment,
    names: &'a mut Names,
    data: Option<&'a Rc<Value>>,
    destination: Option<Slice>,
}

impl Driver<'_> {
    fn fail(&mut self, what: &str) {
        let what = format!("rank {} {what}", self.names.rank);
        self.environment.checkers.fail("calls", what);
    }

    fn operation(&mut self, id: OpId, what: &str) -> Option<usize> {
        let operation = self.names.operations.get(&id).copied();
        if operation.is_none() {
            self.fail(&format!("{what} unknown operation {id:?}"));
        }
        operation
    }

    /// Whether vector data of this operation waits to be written.
    fn is_queued(&mut self, operation: usize) -> bool {
        if !self.names.may_queue {
            return false;
        }
        let Some(link) = self.environment.above(self.names.actor) else { return false };
        let (edge, expr) = (Edge { link, up: true }, contribution(self.names.rank, operation as u32));
        let mut queued = self.environment.channel(edge).queued();
        queued.any(|frame| {
            let runs = frame.data.iter().flat_map(|value| value.runs());
            runs.into_iter().any(|run| run.expr == expr)
        })
    }

    fn program(&mut self) {
        let (now, actor) = (self.environment.now(), self.names.actor);
        self.environment.clock.at(now, Event::Program(actor));
    }

    fn record(&mut self, verb: &str, number: u64, details: std::fmt::Arguments<'_>) {
        let (now, rank) = (self.environment.now(), self.names.rank);
        self.environment.trace.event(
            now,
            [u64::from(rank), verb.len() as u64, number],
            format_args!("  r{rank:<2}    {:<6} {verb:<6} {details}", ""),
        );
    }
}

impl LeafOutput for Driver<'_> {
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>) {
        let rank = self.names.rank;
        if path == Path::Datagram {
            self.environment.checkers.datagram_sent(rank, header);
        }
        if header.kind == Kind::StopAt {
            self.names.stops.insert((header.group, header.generation), header.seq);
        }
        let (body, data) = match payload {
            Payload::None => (Body::None, None),
            Payload::Body(body) => (body.clone(), None),
            Payload::Data(slice) => {
                let Some(operation) = self.operation(slice.op, "sends data of") else {
                    return;
                };
                self.environment.checkers.reads(operation, rank, slice.range(), header);
                self.names.may_queue |= path == Path::Stream;
                let expr = contribution(rank, operation as u32);
                let value = Value::uniform(expr, slice.first, slice.elements);
                (Body::None, Some(Rc::new(value)))
            }
        };
        if let Some(frame) = self.environment.frame(header, body, data) {
            self.environment.send_up(self.names.actor, path, Rc::new(frame));
        }
    }

    fn deliver(&mut self, slice: Slice) {
        let Some(operation) = self.operation(slice.op, "delivers to") else {
            return;
        };
        let elsewhere = self.destination.is_some_and(|destination| destination != slice);
        match self.data.take() {
            Some(value) if value.len() == slice.elements && !elsewhere => {
                let rank = self.names.rank;
                self.environment.checkers.delivered(operation, rank, slice.first, value);
            }
            data => {
                let len = data.map(|value| value.len());
                let destination = self.destination;
                self.fail(&format!("delivers {len:?} elements as {slice:?}, placed at {destination:?}"));
            }
        }
    }

    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>) {
        let Some(operation) = self.operation(op, "completes") else {
            return;
        };
        let queued = result.is_ok() && self.is_queued(operation);
        let rank = self.names.rank;
        let ok = result.is_ok();
        self.environment.checkers.completed(operation, rank, result, queued);
        let verb = if ok { "ends" } else { "fails" };
        self.record(verb, operation as u64, format_args!("operation {operation}"));
        self.program();
    }

    fn forget(&mut self, op: OpId) {
        if let Some(operation) = self.operation(op, "forgets") {
            let rank = self.names.rank;
            self.environment.checkers.forgotten(operation, rank);
        }
    }

    fn move_to(&mut self, placement: &Placement) {
        self.names.told.push(placement.clone());
    }

    fn stable(&mut self, group: GroupId, path: Path, seq: u64) {
        if let Some(group) = self.names.groups.get(&group).copied() {
            let rank = self.names.rank;
            self.environment.checkers.stable(group, rank, path, seq);
        }
    }

    fn group_ready(&mut self, group: GroupId) {
        match self.names.groups.get(&group).copied() {
            Some(group) => {
                let rank = self.names.rank;
                self.environment.checkers.ready(rank);
                self.record("ready", group as u64, format_args!("group {group}"));
            }
            None => self.fail("hears of an unknown group"),
        }
    }

    fn group_failed(&mut self, group: GroupId, fault: Fault) {
        match self.names.groups.get(&group).copied() {
            Some(group) => {
                let rank = self.names.rank;
                self.environment.checkers.group_failed(group, rank, &fault);
                self.record("broken", group as u64, format_args!("group {group}: {fault}"));
                self.program();
            }
            None => self.fail("hears of an unknown group"),
        }
    }

    fn note(&mut self, note: Note) {
        self.record("notes", note as u64, format_args!("{note:?}"));
    }
}
