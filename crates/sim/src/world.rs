//! One run: actors (nodes and ranks) that take events, and the loop that ends with a verdict.
//!
//! Map: `setting` (what a run begins with), `actor` (what waits at each, and when it has time),
//! `intake` (what it does with that), `placing` (how actors come to each other, epoch by epoch),
//! `probes` (whether those that hosted a node before are still there), `harm` (what can be done to
//! them), `faults` (what is, as the options say), `deaths` (how processes end and begin anew),
//! `leaving` (how ranks do that have done), `ending` (when the run is over), `met` (what it has
//! met).

mod actor;
mod deaths;
mod ending;
mod faults;
mod harm;
mod intake;
mod leaving;
mod met;
mod placing;
mod probes;
mod setting;

use trib_proto::Nanos;
use trib_proto::placing::Host;
use trib_wire::{Epoch, NodeId};

use crate::checkers::Checkers;
use crate::environment::{Edge, Environment, Event};
use crate::fabric::Tree;
use crate::leaf::Leaf;
use crate::node::Node;
use crate::options::Options;
use crate::random::Rng;
use crate::sites::Sites;
use crate::trace::Trace;
use crate::verdict::Verdict;
use crate::workload::Workload;
use actor::{Actor, Input, Pause};
use faults::Out;
use leaving::Leaving;
use setting::{fit, make_actors, make_cables, make_host};

/// Apart from what a seed draws besides, so that seeds mean the same with it and without it.
const POLICY: u64 = 0x7374_7269_6374_0011;
const HOSTS: u64 = 0x686f_7374_7300_0012;

/// The whole run.
pub struct World {
    environment: Environment,
    actors: Vec<Actor>,
    /// The core of each site, while its process hosts the node.
    cores: Vec<Option<Node>>,
    /// What each process knows that may host nodes, as a rank's may, and whether calls to it are
    /// refused when it is dead.
    hosts: Vec<(Host, bool)>,
    leaves: Vec<Leaf>,
    /// The ranks that leave the job.
    leaving: Vec<Leaving>,
    /// The processes that are planned to be missing, for good or for long.
    out: Out,
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
        options.under_policy(&mut Rng::new(seed.rotate_left(32) ^ POLICY));
        let mut hosts = Rng::new(seed.rotate_left(32) ^ HOSTS);
        options.on_hosts(&mut hosts);
        let tree = Tree::random(&mut rng.split(), options.ranks, options.levels);
        let tree = if options.hosts { tree.with_hosts(&mut hosts) } else { tree };
        let mut work = Workload::random(&mut rng.split(), &options);
        if Rng::new(!seed).chance(100) {
            work = work.with_rest(Nanos::from_millis(1_500));
        }
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
        let processes = sites.processes() + tree.leaves.len();
        let mut world = World {
            pauses: (0..processes).map(|_| Vec::new()).collect(),
            cores: (0..sites.len()).map(|_| None).collect(),
            hosts: (0..processes).map(|process| (make_host(&tree, &sites, process, epoch), true)).collect(),
            environment: Environment::new(
                (tree, sites),
                (options, epoch),
                cables,
                (checkers, Trace::new(printing)),
                rng.split(),
            ),
            actors,
            leaves: Vec::new(),
            leaving: vec![Leaving::default(); work.scripts.len()],
            out: Out::default(),
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

    /// Runs to the end.
    pub fn run(mut self) -> Verdict {
        while self.environment.checkers.failure().is_none() && !self.is_over() {
            let Some(event) = self.environment.clock.advance() else {
                self.end_early();
                break;
            };
            self.environment.checkers.tick(self.environment.clock.now(), self.calm_at);
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
            met: self.met(),
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
            Event::Depart(process) => self.depart_now(process),
            Event::Look { site, look } => self.give(site, Input::Look(look)),
            Event::Restart(process) => self.restart(process),
        }
    }
}
