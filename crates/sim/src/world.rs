//! One run: actors (nodes and ranks) that take events, and the loop that ends with a verdict.
//!
//! Map: `placing` (how actors come to each other, epoch by epoch), `faults` (what is done to them).

mod faults;
mod placing;

use std::collections::VecDeque;
use std::rc::Rc;

use trib_proto::liveness::NODE_PATIENCE;
use trib_proto::node::Link;
use trib_proto::placing::{Host, Hosting};
use trib_proto::{Nanos, Path};
use trib_wire::{Epoch, NodeId, Placement};

use crate::checkers::Checkers;
use crate::environment::{Close, Edge, Environment, Event, Word};
use crate::fabric::Tree;
use crate::leaf::Leaf;
use crate::network::{Cable, Frame, Gate, Quality};
use crate::node::Node;
use crate::options::{Options, Trouble};
use crate::random::Rng;
use crate::sites::Sites;
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::workload::Workload;

/// What waits at an actor.
enum Input {
    Datagram(Edge, Rc<Frame>),
    Readable(Edge),
    Written(Edge, Rc<Frame>),
    Word(Edge, Word),
    FirstCall,
    Tell { other: usize, placement: Placement, answers: bool },
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
    /// The core of each site, while its process hosts the node.
    cores: Vec<Option<Node>>,
    /// What each process knows that may host nodes, and whether calls to it are refused when it is
    /// dead.
    hosts: Vec<(Host, bool)>,
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
        let candidates = if options.recovers { options.candidates.max(1) as usize } else { 1 };
        let sites = Sites::new(&tree, candidates, &mut rng.split());
        let cables = make_cables(&tree, &sites, &options, &mut draws);
        let checkers = Checkers::new(&tree, &work, &options);
        let epoch = Epoch(1 + draws.below(3) as u32);
        let actors = make_actors(&tree, &sites, &options, &mut draws);
        let mut world = World {
            pauses: (0..sites.processes() + tree.leaves.len()).map(|_| Vec::new()).collect(),
            cores: (0..sites.len()).map(|_| None).collect(),
            hosts: (0..sites.processes()).map(|process| (make_host(&tree, &sites, process, epoch), true)).collect(),
            environment: Environment::new(
                (tree, sites),
                (options, epoch),
                cables,
                (checkers, Trace::new(printing)),
                rng.split(),
            ),
            actors,
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
        if !self.environment.options.recovers {
            self.environment.checkers.node_killed();
        }
        self.pause(node, start, end);
    }

    /// Kills the process of a candidate of a node. It begins anew at another time, perhaps.
    pub fn crash(&mut self, (node, candidate): (usize, usize), at: Nanos, again: Option<Nanos>, refuses: bool) {
        let process = self.environment.sites.process(self.environment.sites.site(node, candidate));
        self.calm_at = self.calm_at.max(again.unwrap_or(at));
        self.environment.clock.at(at, Event::KillProcess { process, refuses });
        if let Some(again) = again {
            self.environment.clock.at(again, Event::Restart(process));
        }
    }

    /// Lets nothing through the way above an actor from one time to another, in one direction.
    pub fn outage(&mut self, below: usize, up: bool, start: Nanos, end: Nanos) {
        self.calm_at = self.calm_at.max(end);
        self.environment.cables[below][usize::from(up)].outages.push((start, end));
    }

    /// Lets only some datagrams through the link above an actor, in one direction.
    pub fn narrow(&mut self, below: usize, up: bool, gate: Gate) {
        let Some((node, child)) = self.environment.parent_of(below) else { return };
        let ranks = self.environment.tree.children_of(node)[usize::from(child.0)].ranks.clone();
        let ends = (ranks.iter().min(), ranks.iter().max());
        if let (Some(first), Some(last)) = ends {
            self.environment.checkers.narrowed(node, (first.0, last.0));
        }
        self.environment.cables[below][usize::from(up)].gate = gate;
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
        let nodes = self.environment.tree.nodes.len();
        let opened: Vec<Nanos> = self.actors.iter().map(|_| Nanos::from_micros(rng.below(300))).collect();
        for (node, at) in opened.iter().enumerate().take(nodes) {
            let process = self.environment.sites.process(node);
            self.hosts[process].0.begin(*at, NodeId(node as u16));
            self.begin(node);
            self.environment.clock.at(*at, Event::FirstCall(node));
        }
        let environment = &mut self.environment;
        for rank in 0..environment.options.ranks {
            let actor = environment.actor_of(rank);
            let script = self.work.scripts[rank as usize].clone();
            self.leaves.push(Leaf::new(rank, script, opened[actor], environment));
            environment.clock.at(opened[actor], Event::FirstCall(actor));
            let at = Nanos::from_micros(rng.below(400));
            environment.clock.at(at, Event::Program(actor));
        }
        faults::plan(self, rng);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Datagram { edge, frame } => self.arrive(edge, Input::Datagram(edge, frame)),
            Event::Readable(edge) => self.arrive(edge, Input::Readable(edge)),
            Event::Written { edge, frame } => {
                let upward = Edge { up: true, ..edge };
                let (site, _) = self.environment.far_end(upward);
                self.give(site, Input::Written(upward, frame));
            }
            Event::Word(edge, word) => self.bring(edge, word),
            Event::FirstCall(actor) => self.give(actor, Input::FirstCall),
            Event::Tell { from, to, placement, answers } => {
                let (told, other) = if answers { (from, to) } else { (to, from) };
                self.give(told, Input::Tell { other, placement, answers });
            }
            Event::Wake(actor) => {
                if self.environment.now() >= self.actors[actor].wake_at {
                    self.actors[actor].wake_at = Nanos::NEVER;
                    self.work_off(actor);
                }
            }
            Event::Program(actor) => self.give(actor, Input::Program),
            Event::KillRank { rank, orderly } => self.kill_now(rank, orderly),
            Event::KillProcess { process, refuses } => self.kill_process(process, refuses),
            Event::Restart(process) => self.restart(process),
        }
    }

    /// A dead process begins anew. It may have been killed twice, and have begun anew already.
    fn restart(&mut self, process: usize) {
        let sites = self.environment.sites.of_process(process);
        if !sites.iter().all(|site| self.actors[*site].dead) {
            return;
        }
        let (tree, first) = (&self.environment.tree, self.environment.first);
        self.hosts[process] = (make_host(tree, &self.environment.sites, process, first), true);
        for site in sites {
            self.actors[site].dead = false;
            self.environment.begin_life(site);
        }
    }

    fn kill_now(&mut self, rank: u32, orderly: bool) {
        let actor = self.environment.actor_of(rank);
        let link = self.environment.above(actor);
        let is_confirmed = link.is_some_and(|link| self.environment.is_current(Edge { link, up: true }));
        if !is_confirmed && !self.leaves[rank as usize].way().view.has_moved() {
            // A rank that dies before it has joined is not the protocol's matter.
            let later = self.environment.now() + Nanos::from_millis(1);
            return self.environment.clock.at(later, Event::KillRank { rank, orderly });
        }
        self.actors[actor].dead = true;
        self.environment.checkers.rank_killed(rank);
        if let Some(link) = link {
            if orderly {
                self.environment.close(link, Close::Killed);
            } else {
                self.environment.channel(Edge { link, up: true }).cut(false);
            }
        }
    }

    fn kill_process(&mut self, process: usize, refuses: bool) {
        if !self.environment.options.recovers {
            let is_whole = |site: usize| self.environment.is_connected(site);
            if !self.environment.sites.of_process(process).into_iter().all(is_whole) {
                // A job that has not come together is not the protocol's matter.
                let later = self.environment.now() + Nanos::from_millis(1);
                return self.environment.clock.at(later, Event::KillProcess { process, refuses });
            }
            self.environment.checkers.node_killed();
        }
        self.hosts[process].1 = refuses;
        for site in self.environment.sites.of_process(process) {
            self.actors[site].dead = true;
            self.actors[site].inbox.clear();
            self.actors[site].datagrams = 0;
            self.drop_core(site, Close::Killed);
        }
    }

    /// A word about a link arrives. Where nobody lives, the kernel answers a call.
    fn bring(&mut self, edge: Edge, word: Word) {
        let (actor, _) = self.environment.far_end(edge);
        if self.actors[actor].dead && matches!(word, Word::Call(_)) {
            let refuses = self.hosts[self.actors[actor].host].1 || !self.environment.options.recovers;
            if refuses {
                self.environment.say(Edge { up: false, ..edge }, Word::Refuse);
            }
            return;
        }
        self.give(actor, Input::Word(edge, word));
    }

    fn arrive(&mut self, edge: Edge, input: Input) {
        let (actor, _) = self.environment.far_end(edge);
        if self.actors[actor].dead {
            return;
        }
        if matches!(input, Input::Datagram(..)) && !self.environment.is_of_this_life(edge) {
            return;
        }
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
            self.tell_refused(actor);
            self.actors[actor].busy_until = now + self.actors[actor].service;
            if !self.actors[actor].inbox.is_empty() {
                return self.wake_at(actor, self.actors[actor].busy_until);
            }
        }
        if self.deadline(actor) <= now {
            self.fire_timer(actor);
            self.tell_refused(actor);
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
        let recovers = self.environment.options.recovers;
        match self.rank_of(actor) {
            None => {
                let core = self.cores[actor].as_ref().map_or(Nanos::NEVER, Node::deadline);
                let host = self.hosts[self.actors[actor].host].0.deadline();
                if recovers { core.min(host) } else { core }
            }
            Some(rank) => {
                let leaf = &self.leaves[rank];
                if recovers { leaf.deadline().min(leaf.calls_at()) } else { leaf.deadline() }
            }
        }
    }

    fn fire_timer(&mut self, actor: usize) {
        match self.rank_of(actor) {
            None => {
                if let Some(core) = &mut self.cores[actor] {
                    core.timer(&mut self.environment);
                }
                self.serve(self.actors[actor].host);
            }
            Some(rank) => {
                self.leaves[rank].timer(&mut self.environment);
                self.call(rank);
            }
        }
    }

    fn rank_of(&self, actor: usize) -> Option<usize> {
        actor.checked_sub(self.cores.len())
    }

    /// Tells the cores what their kernels have refused to send, and the processes what their cores
    /// have heard of the placement.
    fn tell_refused(&mut self, actor: usize) {
        while let Some((edge, header)) = self.environment.take_refused() {
            // The sender of a frame is the actor that gets what is sent the other way.
            let (sender, link) = self.environment.far_end(Edge { up: !edge.up, ..edge });
            match self.rank_of(sender) {
                None => {
                    if let Some(core) = &mut self.cores[sender] {
                        core.too_long(link, &header, &mut self.environment);
                    }
                }
                Some(rank) => self.leaves[rank].too_long(&header, &mut self.environment),
            }
        }
        match self.rank_of(actor) {
            None => self.hear_core(actor),
            Some(rank) => {
                for placement in self.leaves[rank].take_told() {
                    self.move_rank(rank, &placement);
                }
            }
        }
    }

    fn take(&mut self, actor: usize, input: Input) {
        match input {
            Input::Datagram(edge, frame) => {
                self.actors[actor].datagrams -= 1;
                self.take_frame(actor, edge, Path::Datagram, &frame);
            }
            Input::Readable(edge) => {
                if let Some(frame) = self.environment.read(edge).filter(|_| self.environment.is_current(edge)) {
                    self.take_frame(actor, edge, Path::Stream, &frame);
                }
            }
            Input::Written(edge, frame) => {
                let (_, link) = self.environment.far_end(edge);
                let core = self.cores.get_mut(actor).and_then(Option::as_mut);
                if let (Some(core), Link::Child(child)) = (core, link)
                    && self.environment.is_current(edge)
                {
                    core.written(child, &frame.header, &mut self.environment);
                }
            }
            Input::Word(edge, word) => self.take_word(actor, edge, word),
            Input::FirstCall => match self.rank_of(actor) {
                None => self.serve(self.actors[actor].host),
                Some(rank) => self.call(rank),
            },
            Input::Tell { other, placement, answers } => self.take_tell(actor, other, &placement, answers),
            Input::Program => {
                if let Some(rank) = self.rank_of(actor) {
                    self.leaves[rank].run(&self.work, &mut self.environment);
                }
            }
        }
    }

    fn take_frame(&mut self, actor: usize, edge: Edge, path: Path, frame: &Frame) {
        self.environment.record(edge, path, &frame.header, "brings");
        let (_, link) = self.environment.far_end(edge);
        match self.rank_of(actor) {
            None => {
                let node = NodeId(self.environment.sites.node(actor) as u16);
                if link == Link::Parent && path == Path::Stream {
                    self.hosts[self.actors[actor].host].0.on_fruit(node);
                }
                if let Some(core) = &mut self.cores[actor] {
                    core.frame(link, path, frame, &mut self.environment);
                }
            }
            Some(rank) => {
                if path == Path::Stream {
                    self.leaves[rank].way().caller.on_fruit();
                }
                self.leaves[rank].frame(path, frame, &mut self.environment);
            }
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
            let mut ranks = self.leaves.iter().zip(&self.actors[self.cores.len()..]);
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
        let empty = self.cores.iter().flatten().all(|core| core.groups() == 0);
        let may_wait = self.environment.checkers.may_fail();
        let gone = may_wait || self.leaves.iter().all(|leaf| leaf.left_behind() == 0);
        if !empty || !gone {
            // A rank may have died unseen.
            let patience = LEAK_AFTER + self.environment.options.limits.dead_after;
            if now.since(done_at.max(self.calm_at)) > patience {
                self.check_nodes_empty();
                for leaf in &self.leaves {
                    leaf.check_empty(&mut self.environment);
                }
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
        for core in self.cores.iter().flatten() {
            core.check_empty(&mut self.environment);
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
        let name = |site: usize| self.environment.name(site);
        let groups: Vec<String> = self
            .cores
            .iter()
            .enumerate()
            .filter_map(|(site, core)| {
                core.as_ref().map(|c| format!("{}: {} in epoch {}", name(site), c.groups(), c.epoch().0))
            })
            .collect();
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

fn make_cables(tree: &Tree, sites: &Sites, options: &Options, rng: &mut Rng) -> Vec<[Cable; 2]> {
    let actors = sites.len() + tree.leaves.len();
    let mut cable = || {
        let mut quality: Quality = options.quality.clone();
        if rng.chance(options.bad_links) {
            quality.loss = 500;
        }
        Cable::new(quality)
    };
    (0..actors).map(|_| [cable(), cable()]).collect()
}

/// A process as it begins.
fn make_host(tree: &Tree, sites: &Sites, process: usize, first: Epoch) -> Host {
    let candidates = sites.candidates();
    let hosting = |site: usize| {
        let node = sites.node(site);
        let parent = tree.nodes[node].parent.map(|(parent, _)| (NodeId(parent as u16), candidates));
        Hosting { node: NodeId(node as u16), candidates, me: sites.candidate(site), parent }
    };
    Host::new(first, sites.of_process(process).into_iter().map(hosting))
}

fn make_actors(tree: &Tree, sites: &Sites, options: &Options, rng: &mut Rng) -> Vec<Actor> {
    let actors = sites.len() + tree.leaves.len();
    let slow = options.slow.map(|times| (rng.below(actors as u64) as usize, times));
    (0..actors)
        .map(|actor| Actor {
            host: match actor.checked_sub(sites.len()) {
                None => sites.process(actor),
                Some(rank) => sites.processes() + rank,
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
