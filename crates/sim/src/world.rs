//! One run: actors (nodes and ranks) that take events, and the loop that ends with a verdict.

use std::collections::VecDeque;
use std::rc::Rc;

use trib_proto::liveness::NODE_PATIENCE;
use trib_proto::node::Link;
use trib_proto::{Nanos, Path};
use trib_wire::{ChildIndex, Epoch};

use crate::checkers::Checkers;
use crate::environment::{Edge, Environment, Event};
use crate::fabric::Tree;
use crate::leaf::Leaf;
use crate::network::{Channel, Frame, Gate, Quality};
use crate::node::Node;
use crate::options::{Options, Trouble};
use crate::random::Rng;
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::workload::Workload;

/// What waits at an actor.
enum Input {
    Datagram(Edge, Rc<Frame>),
    Readable(Edge),
    Written(ChildIndex, Rc<Frame>),
    LinkUp(Link),
    LinkDown(Link),
    Program,
}

/// A node or a rank as a process: it has inputs, a processor that is busy at times, and one timer.
struct Actor {
    host: usize,
    inbox: VecDeque<Input>,
    datagrams: usize,
    service: Nanos,
    busy_until: Nanos,
    wake_at: Nanos,
    dead: bool,
}

/// A planned fault of one process: it stands still for a while.
struct Pause {
    start: Nanos,
    end: Nanos,
}

/// The whole run.
pub struct World {
    environment: Environment,
    actors: Vec<Actor>,
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    pauses: Vec<Vec<Pause>>,
    work: Workload,
    /// When the last planned fault is over.
    calm_at: Nanos,
    /// Since when all programs have been done.
    done_at: Option<Nanos>,
    frames_when_empty: Option<(Nanos, u64)>,
    seed: u64,
}

impl World {
    /// The run of a seed.
    pub fn random(seed: u64, printing: bool) -> World {
        let mut rng = Rng::new(seed);
        let mut options = Options::draw(&mut rng.split());
        let tree = Tree::random(&mut rng.split(), options.ranks, options.levels);
        let work = Workload::random(&mut rng.split(), &options);
        fit(&mut options, &work, &mut rng);
        World::new(seed, options, tree, work, rng, printing)
    }

    /// A run of which everything is given except the faults; those that the options ask for are
    /// drawn from `rng`.
    pub fn new(seed: u64, options: Options, tree: Tree, work: Workload, mut rng: Rng, printing: bool) -> World {
        let mut draws = rng.split();
        let channels = make_channels(&tree, &options, &mut draws);
        let checkers = Checkers::new(&tree, &work, options.recovers);
        let epoch = Epoch(1 + draws.below(3) as u32);
        let actors = make_actors(&tree, &options, &mut draws);
        let mut world = World {
            pauses: actors.iter().map(|_| Vec::new()).collect(),
            environment: Environment::new(
                tree,
                (options, epoch),
                channels,
                (checkers, Trace::new(printing)),
                rng.split(),
            ),
            actors,
            nodes: Vec::new(),
            leaves: Vec::new(),
            work,
            calm_at: Nanos(0),
            done_at: None,
            frames_when_empty: None,
            seed,
        };
        world.start(&mut draws);
        world
    }

    /// The tree of the run.
    pub fn tree(&self) -> &Tree {
        &self.environment.tree
    }

    /// Kills a rank at a time.
    pub fn kill_rank(&mut self, at: Nanos, rank: u32, orderly: bool) {
        self.calm_at = self.calm_at.max(at);
        let event = Event::KillRank { rank, orderly };
        self.environment.clock.at(at, event);
    }

    /// Stops the process of an actor from one time to another.
    pub fn pause(&mut self, actor: usize, start: Nanos, end: Nanos) {
        self.calm_at = self.calm_at.max(end);
        let host = self.actors[actor].host;
        self.pauses[host].push(Pause { start, end });
    }

    /// Stops the process of a node for longer than others wait for it.
    pub fn stop_node(&mut self, node: usize, start: Nanos, end: Nanos) {
        self.environment.checkers.node_killed();
        self.pause(node, start, end);
    }

    /// Lets nothing through the link above an actor from one time to another, in one direction.
    pub fn outage(&mut self, below: usize, up: bool, start: Nanos, end: Nanos) {
        self.calm_at = self.calm_at.max(end);
        self.environment.channel(Edge { below, up }).add_outage(start, end);
    }

    /// Lets only some datagrams through the link above an actor, in one direction.
    pub fn narrow(&mut self, below: usize, up: bool, gate: Gate) {
        let Some((node, child)) = self.environment.parent_of(below) else { return };
        let ranks = self.environment.tree.children_of(node)[usize::from(child.0)].ranks.clone();
        let ends = (ranks.iter().min(), ranks.iter().max());
        if let (Some(first), Some(last)) = ends {
            self.environment.checkers.narrowed(node, (first.0, last.0));
        }
        self.environment.channel(Edge { below, up }).gate = gate;
    }

    /// Runs to the end.
    pub fn run(mut self) -> Verdict {
        while self.environment.checkers.failure().is_none() && !self.is_over() {
            let Some(event) = self.environment.clock.advance() else {
                self.end_early();
                break;
            };
            self.environment.checkers.tick(self.environment.clock.now());
            self.handle(event);
        }
        if self.environment.checkers.failure().is_none() {
            for (rank, leaf) in self.leaves.iter().enumerate() {
                let actor = self.environment.actor_of(rank as u32);
                if !self.actors[actor].dead {
                    leaf.check_empty(&mut self.environment);
                }
            }
        }
        Verdict {
            seed: self.seed,
            failure: self.environment.checkers.failure().cloned(),
            options: self.environment.options.to_string(),
            hash: self.environment.trace.hash(),
            events: self.environment.clock.scheduled(),
            frames: self.environment.frames(),
            ended_at: self.environment.now(),
            endings: self.environment.checkers.endings(),
        }
    }

    fn start(&mut self, rng: &mut Rng) {
        let environment = &mut self.environment;
        let nodes = environment.tree.nodes.len();
        self.nodes = (0..nodes).map(|n| Node::new(n, environment)).collect();
        self.leaves = (0..environment.options.ranks)
            .map(|rank| Leaf::new(rank, self.work.scripts[rank as usize].clone(), environment))
            .collect();
        for below in 1..self.actors.len() {
            let opened = Nanos::from_micros(rng.below(300));
            for up in [false, true] {
                let at = opened + Nanos::from_micros(rng.below(50));
                environment.clock.at(at, Event::LinkUp(Edge { below, up }));
            }
        }
        for rank in 0..environment.options.ranks {
            let actor = environment.actor_of(rank);
            let at = Nanos::from_micros(rng.below(400));
            environment.clock.at(at, Event::Program(actor));
        }
        self.plan_faults(rng);
    }

    fn plan_faults(&mut self, rng: &mut Rng) {
        let options = self.environment.options.clone();
        let span = |rng: &mut Rng| {
            let start = Nanos::from_micros(rng.scaled(1, 200_000));
            (start, start + Nanos(rng.scaled(1000, options.fault_max.0.max(1000))))
        };
        for _ in 0..options.outages {
            let (start, end) = span(rng);
            let below = rng.between(1, self.actors.len() as u64 - 1) as usize;
            let both = rng.chance(600);
            let first = rng.chance(500);
            self.outage(below, first, start, end);
            if both {
                self.outage(below, !first, start, end);
            }
        }
        for _ in 0..options.pauses {
            let (start, end) = span(rng);
            let actor = rng.below(self.actors.len() as u64) as usize;
            self.pause(actor, start, end);
        }
        let at = Nanos::from_micros(rng.scaled(100, 100_000));
        match options.trouble {
            Trouble::KillRank(orderly) => {
                let rank = rng.below(u64::from(options.ranks)) as u32;
                self.kill_rank(at, rank, orderly);
            }
            Trouble::KillNode => {
                let node = rng.below(self.nodes.len() as u64) as usize;
                self.calm_at = self.calm_at.max(at);
                self.environment.clock.at(at, Event::KillNode(node));
            }
            trouble if trouble.is_of_the_way() => {
                let below = rng.between(1, self.actors.len() as u64 - 1) as usize;
                let most = rng.below(u64::from(options.limits.payload));
                let gate = match trouble {
                    Trouble::ShortPath(false) => Gate::UpTo(most),
                    Trouble::ShortPath(true) => Gate::Known(most),
                    _ => Gate::Shut,
                };
                let first = rng.chance(500);
                self.narrow(below, first, gate);
                if rng.chance(500) {
                    self.narrow(below, !first, gate);
                }
            }
            _ => {}
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Datagram { edge, frame } => self.arrive(edge, Input::Datagram(edge, frame)),
            Event::Readable(edge) => self.arrive(edge, Input::Readable(edge)),
            Event::Written { edge, frame } => {
                if let Some((node, child)) = self.environment.parent_of(edge.below) {
                    self.give(node, Input::Written(child, frame));
                }
            }
            Event::LinkUp(edge) => {
                let near = Edge { up: !edge.up, ..edge };
                if self.environment.channel(near).is_cut() {
                    return;
                }
                self.environment.channel(near).open();
                let (actor, link) = self.environment.far_end(edge);
                self.give(actor, Input::LinkUp(link));
                self.environment.write(near);
            }
            Event::LinkDown(edge) => {
                let (actor, link) = self.environment.far_end(edge);
                self.give(actor, Input::LinkDown(link));
            }
            Event::Wake(actor) => {
                if self.environment.now() >= self.actors[actor].wake_at {
                    self.actors[actor].wake_at = Nanos::NEVER;
                    self.work_off(actor);
                }
            }
            Event::Program(actor) => self.give(actor, Input::Program),
            Event::KillRank { rank, orderly } => {
                let actor = self.environment.actor_of(rank);
                self.actors[actor].dead = true;
                self.environment.checkers.rank_killed(rank);
                if orderly {
                    self.environment.close(actor, true);
                } else {
                    let edge = Edge { below: actor, up: true };
                    self.environment.channel(edge).cut(false);
                }
            }
            Event::KillNode(node) => self.kill_node(node),
        }
    }

    fn kill_node(&mut self, node: usize) {
        self.actors[node].dead = true;
        self.environment.checkers.node_killed();
        if node > 0 {
            self.environment.close(node, true);
        }
        let children = self.environment.tree.nodes[node].children.len() as u16;
        for child in (0..children).map(ChildIndex) {
            if let Some(below) = self.environment.child_actor(node, child) {
                self.environment.close(below, true);
            }
        }
    }

    fn arrive(&mut self, edge: Edge, input: Input) {
        let (actor, _) = self.environment.far_end(edge);
        let room = self.environment.options.datagram_room;
        let actor_state = &mut self.actors[actor];
        if matches!(input, Input::Datagram(..)) {
            if actor_state.datagrams >= room {
                return;
            }
            actor_state.datagrams += 1;
        }
        self.give(actor, input);
    }

    fn give(&mut self, actor: usize, input: Input) {
        if !self.actors[actor].dead {
            self.actors[actor].inbox.push_back(input);
            self.work_off(actor);
        }
    }

    /// Lets an actor do what it has time for; asks for another wake-up if something is left.
    fn work_off(&mut self, actor: usize) {
        let now = self.environment.now();
        if self.actors[actor].dead {
            return;
        }
        let free_at = self.free_at(actor);
        if free_at > now {
            return self.wake_at(actor, free_at);
        }
        if let Some(input) = self.actors[actor].inbox.pop_front() {
            self.take(actor, input);
            self.tell_refused();
            self.actors[actor].busy_until = now + self.actors[actor].service;
            if !self.actors[actor].inbox.is_empty() {
                return self.wake_at(actor, self.actors[actor].busy_until);
            }
        }
        if self.deadline(actor) <= now {
            self.fire_timer(actor);
            self.tell_refused();
            if self.deadline(actor) <= now {
                let name = self.environment.name(actor);
                let what = format!("the timer of {name} is due again at once");
                self.environment.checkers.fail("liveness", what);
            }
        }
        let deadline = self.deadline(actor);
        if deadline != Nanos::NEVER {
            self.wake_at(actor, deadline.max(self.actors[actor].busy_until));
        }
    }

    /// When the actor's process runs and its processor has time.
    fn free_at(&self, actor: usize) -> Nanos {
        let mut at = self.environment.now().max(self.actors[actor].busy_until);
        let pauses = &self.pauses[self.actors[actor].host];
        while let Some(pause) = pauses.iter().find(|p| p.start <= at && at < p.end) {
            at = pause.end;
        }
        at
    }

    fn wake_at(&mut self, actor: usize, at: Nanos) {
        if at < self.actors[actor].wake_at {
            self.actors[actor].wake_at = at;
            self.environment.clock.at(at, Event::Wake(actor));
        }
    }

    fn deadline(&self, actor: usize) -> Nanos {
        match actor.checked_sub(self.nodes.len()) {
            None => self.nodes[actor].deadline(),
            Some(rank) => self.leaves[rank].deadline(),
        }
    }

    fn fire_timer(&mut self, actor: usize) {
        match actor.checked_sub(self.nodes.len()) {
            None => self.nodes[actor].timer(&mut self.environment),
            Some(rank) => self.leaves[rank].timer(&mut self.environment),
        }
    }

    /// Tells the cores what their kernels have refused to send.
    fn tell_refused(&mut self) {
        while let Some((edge, header)) = self.environment.take_refused() {
            // The sender of a frame is the actor that gets what is sent the other way.
            let (sender, link) = self.environment.far_end(Edge { up: !edge.up, ..edge });
            match sender.checked_sub(self.nodes.len()) {
                None => self.nodes[sender].too_long(link, &header, &mut self.environment),
                Some(rank) => self.leaves[rank].too_long(&header, &mut self.environment),
            }
        }
    }

    fn take(&mut self, actor: usize, input: Input) {
        let environment = &mut self.environment;
        let rank = actor.checked_sub(self.nodes.len());
        match input {
            Input::Datagram(edge, frame) => {
                self.actors[actor].datagrams -= 1;
                self.take_frame(actor, edge, Path::Datagram, &frame);
            }
            Input::Readable(edge) => {
                if let Some(frame) = environment.read(edge) {
                    self.take_frame(actor, edge, Path::Stream, &frame);
                }
            }
            Input::Written(child, frame) => {
                if rank.is_none() {
                    self.nodes[actor].written(child, &frame.header, environment);
                }
            }
            Input::LinkUp(link) => match rank {
                None => self.nodes[actor].link_up(link, environment),
                Some(rank) => self.leaves[rank].link_up(environment),
            },
            Input::LinkDown(link) => {
                let below = match link {
                    Link::Parent => Some(actor),
                    Link::Child(child) => environment.child_actor(actor, child),
                };
                if let Some(below) = below {
                    // The end that hears of it closes its own side too, and the far end hears of
                    // that.
                    self.close_once(below);
                }
                match rank {
                    None => self.nodes[actor].link_down(link, &mut self.environment),
                    Some(rank) => self.leaves[rank].link_down(&mut self.environment),
                }
            }
            Input::Program => {
                if let Some(rank) = rank {
                    self.leaves[rank].run(&self.work, environment);
                }
            }
        }
    }

    fn close_once(&mut self, below: usize) {
        for up in [false, true] {
            self.environment.channel(Edge { below, up }).cut(true);
        }
    }

    fn take_frame(&mut self, actor: usize, edge: Edge, path: Path, frame: &Frame) {
        let environment = &mut self.environment;
        environment.record(edge, path, &frame.header, "brings");
        let (_, link) = environment.far_end(edge);
        match actor.checked_sub(self.nodes.len()) {
            None => self.nodes[actor].frame(link, path, frame, environment),
            Some(rank) => self.leaves[rank].frame(path, frame, environment),
        }
    }

    /// Whether the run is over: all programs are done, all nodes are empty, and the links have been
    /// silent for a while. It also finds out that a run will never be over.
    fn is_over(&mut self) -> bool {
        let now = self.environment.now();
        if self.environment.clock.scheduled() > EVENTS_MAX {
            self.stuck("the run has no end (livelock)");
            return true;
        }
        if self.done_at.is_none() {
            let nodes = self.nodes.len();
            let mut ranks = self.leaves.iter().zip(&self.actors[nodes..]);
            if ranks.all(|(leaf, actor)| leaf.is_done() || actor.dead) {
                self.done_at = Some(now);
            }
        }
        match self.done_at {
            Some(since) => self.is_silent(now, since),
            None => {
                let asleep = self.leaves.iter().map(Leaf::asleep_until).max();
                let since = self.environment.checkers.last_progress();
                let since = since.max(self.calm_at).max(asleep.unwrap_or(now));
                if now.since(since) > STUCK_AFTER {
                    self.stuck("nothing has gone forward for a minute");
                }
                false
            }
        }
    }

    fn is_silent(&mut self, now: Nanos, done_at: Nanos) -> bool {
        let live = |node: &usize| !self.actors[*node].dead;
        let empty = (0..self.nodes.len()).filter(live).all(|n| self.nodes[n].groups() == 0);
        if !empty {
            if now.since(done_at.max(self.calm_at)) > LEAK_AFTER {
                self.check_nodes_empty();
            }
            return false;
        }
        let (since, _) = *self.frames_when_empty.get_or_insert((now, self.environment.frames()));
        if now.since(since) <= SILENCE {
            return false;
        }
        self.check_nodes_empty();
        true
    }

    /// Nothing will happen any more. That is right if no rank waits and nothing is left.
    fn end_early(&mut self) {
        if self.done_at.is_none() {
            return self.stuck("nothing will ever happen again");
        }
        self.check_nodes_empty();
    }

    fn check_nodes_empty(&mut self) {
        for node in (0..self.nodes.len()).filter(|n| !self.actors[*n].dead) {
            self.nodes[node].check_empty(&mut self.environment);
        }
    }

    fn stuck(&mut self, why: &str) {
        let waiting: Vec<String> = self
            .leaves
            .iter()
            .enumerate()
            .filter(|(_, leaf)| !leaf.is_done())
            .map(|(rank, _)| format!("r{rank}"))
            .collect();
        let groups: Vec<usize> = self.nodes.iter().map(Node::groups).collect();
        let details = format!("programs that wait: {}; groups at the nodes: {groups:?}", waiting.join(" "));
        self.environment.checkers.stuck(why, &details);
    }
}

/// Makes the quota fit the program, or not, as the options say, and keeps faults shorter than the
/// time after which a process counts as dead.
fn fit(options: &mut Options, work: &Workload, rng: &mut Rng) {
    let most = work.groups_alive_max().max(1);
    options.limits.groups = match options.trouble {
        // If the program were far beyond the quota, a node would take so many creations for a
        // flood, which is another fault.
        Trouble::TightQuota => rng.between(u64::from(most).div_ceil(4), u64::from(most)) as u32,
        _ => most,
    };
    options.limits.osts = most * options.limits.window;
    let faults = options.outages + options.pauses;
    let room = options.limits.dead_after.min(NODE_PATIENCE).0 / 2 / (faults + 1);
    options.fault_max = Nanos(options.fault_max.0.min(room));
}

fn make_channels(tree: &Tree, options: &Options, rng: &mut Rng) -> Vec<[Channel; 2]> {
    let actors = tree.nodes.len() + tree.leaves.len();
    let mut channel = || {
        let mut quality: Quality = options.quality.clone();
        if rng.chance(options.bad_links) {
            quality.loss = 500;
        }
        Channel::new(quality)
    };
    (0..actors).map(|_| [channel(), channel()]).collect()
}

fn make_actors(tree: &Tree, options: &Options, rng: &mut Rng) -> Vec<Actor> {
    let nodes = tree.nodes.len();
    let actors = nodes + tree.leaves.len();
    let slow = options.slow.map(|times| (rng.below(actors as u64) as usize, times));
    (0..actors)
        .map(|actor| Actor {
            host: match actor.checked_sub(nodes) {
                None => tree.nodes[actor].host,
                Some(rank) => tree.node_hosts + rank,
            },
            inbox: VecDeque::new(),
            datagrams: 0,
            service: match slow {
                Some((who, times)) if who == actor => Nanos(options.service.0 * times),
                _ => options.service,
            },
            busy_until: Nanos(0),
            wake_at: Nanos::NEVER,
            dead: false,
        })
        .collect()
}

/// A run that schedules more events than this will not end.
const EVENTS_MAX: u64 = 20_000_000;
/// A run without progress for this long after the last fault hangs.
const STUCK_AFTER: Nanos = Nanos::from_millis(60_000);
/// Groups that still exist this long after the last program ended have leaked.
const LEAK_AFTER: Nanos = Nanos::from_millis(30_000);
/// How long a run goes on after everything is freed, so that strays arrive.
const SILENCE: Nanos = Nanos::from_millis(600);
