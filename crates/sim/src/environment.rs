//! What the drivers of all cores share: clock, links, checkers, trace.
//!
//! Map: `event` (what happens, and what is said of a link), `links` (connections between actors),
//! `sending` (how frames go over them), `record` (what the trace says of it).

mod event;
mod links;
mod record;
mod sending;

pub use event::{Close, Edge, Event, Look, Word};

use std::collections::BTreeMap;
use std::rc::Rc;

use trib_proto::{Nanos, Path};
use trib_wire::{ChildIndex, Epoch, Header};

use crate::checkers::Checkers;
use crate::clock::Clock;
use crate::fabric::Tree;
use crate::network::{Cable, Frame, Partition};
use crate::options::Options;
use crate::random::Rng;
use crate::sites::Sites;
use crate::trace::Trace;
use links::Connection;

/// Frames that wait for a connection.
type Early = Vec<(Path, Rc<Frame>)>;

/// Shared by all drivers.
pub struct Environment {
    /// The logical tree.
    pub tree: Tree,
    /// Where its nodes may be.
    pub sites: Sites,
    /// The options of the run.
    pub options: Options,
    /// The first epoch of the job.
    pub first: Epoch,
    /// The clock.
    pub clock: Clock<Event>,
    /// The checkers.
    pub checkers: Checkers,
    /// The trace.
    pub trace: Trace,
    /// Both directions (down, up) of the way above each actor.
    pub cables: Vec<[Cable; 2]>,
    /// When processes fall into two parts.
    pub partitions: Vec<Partition>,
    /// All connections that ever were.
    links: Vec<Connection>,
    /// How often the process of each site has begun anew. It has the keys of those connections that
    /// it has taken itself.
    lives: Vec<u32>,
    /// For each actor, its connection to the node above, or the call for one.
    up: Vec<Option<usize>>,
    /// For each site, the confirmed connection of each child.
    down: Vec<BTreeMap<u16, usize>>,
    /// For each site, what its core has said to children that have not called yet.
    early: Vec<BTreeMap<u16, Early>>,
    /// For each actor, what its core has said to the node above before the first call.
    early_up: Vec<Early>,
    /// For each core that ever was, the buffers that wait to be written, and into how many sockets
    /// each waits to be written.
    unwritten: Vec<BTreeMap<u32, u32>>,
    /// Whether some rank has begun under a lease what had to wait for the next one.
    pub rolled_back: bool,
    rng: Rng,
    frames: u64,
    /// Datagrams of which the sender's kernel says that they are too long for the link.
    refused: Vec<(Edge, Header)>,
}

impl Environment {
    /// An environment. `cables` has both directions (down, up) of the way above each actor; the
    /// entry of the root is unused.
    pub fn new(
        (tree, sites): (Tree, Sites),
        (options, first): (Options, Epoch),
        cables: Vec<[Cable; 2]>,
        (checkers, trace): (Checkers, Trace),
        rng: Rng,
    ) -> Environment {
        let (clock, frames, refused, unwritten) = (Clock::new(), 0, Vec::new(), Vec::new());
        let (actors, nodes) = (cables.len(), sites.len());
        let (links, up) = (Vec::new(), vec![None; actors]);
        let (down, early) = (vec![BTreeMap::new(); nodes], vec![BTreeMap::new(); nodes]);
        Environment {
            tree,
            sites,
            options,
            first,
            clock,
            checkers,
            trace,
            cables,
            partitions: Vec::new(),
            links,
            lives: vec![0; nodes],
            up,
            down,
            early,
            early_up: vec![Vec::new(); actors],
            unwritten,
            rolled_back: false,
            rng,
            frames,
            refused,
        }
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Frames sent so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The actor of a rank.
    pub fn actor_of(&self, rank: u32) -> usize {
        self.sites.len() + rank as usize
    }

    /// Node and position above an actor; `None` at the root.
    pub fn parent_of(&self, actor: usize) -> Option<(usize, ChildIndex)> {
        let (node, child) = match actor.checked_sub(self.sites.len()) {
            None => self.tree.nodes[self.sites.node(actor)].parent?,
            Some(rank) => self.tree.leaves[rank],
        };
        Some((node, ChildIndex(child)))
    }

    /// Whether something that is said now gets from one actor to another.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        let now = self.now();
        let (from, to) = (self.sites.process_of_actor(from), self.sites.process_of_actor(to));
        let stands = |partition: &&Partition| partition.span.0 <= now && now < partition.span.1;
        !self.partitions.iter().filter(stands).any(|partition| partition.parts(from, to))
    }

    /// A name for traces.
    pub fn name(&self, actor: usize) -> String {
        match actor.checked_sub(self.sites.len()) {
            None => {
                let (node, candidate) = (self.sites.node(actor), self.sites.candidate(actor));
                if candidate == 0 { format!("n{node}") } else { format!("n{node}.{candidate}") }
            }
            Some(rank) => format!("r{rank}"),
        }
    }
}
