//! What a node sends has a cause: it has no timers but heartbeats, and answers what it gets. So its
//! traffic is bounded by that of the ranks, whatever is lost.
//!
//! ```text
//!   a datagram from a child     at most one down, and at most one up
//!   an answer from above        at most one up
//!   a result from above         one to each child
//!   so many segments as the group has children    one aggregate up; at the group's root one result
//!                               to each child
//! ```
//! Without loss this is one fragment up and one result to each child; a datagram that is lost or
//! late costs as many as it is asked about.

use std::collections::BTreeMap;

use trib_proto::node::Link;
use trib_proto::{Nanos, Path};
use trib_wire::{Generation, GroupIndex, Header, Kind};

use super::Checkers;

const NAME: &str = "causes";
/// A node asks upward at most this often about one fragment.
const ASKS_EVERY: Nanos = Nanos::from_millis(1);

/// What one core of a node may still send for what it got.
#[derive(Default)]
pub(super) struct Causes {
    datagrams_up: u64,
    datagrams_down: u64,
    segments_up: u64,
    segments_down: u64,
    /// When the node last asked about each fragment.
    asked: BTreeMap<(GroupIndex, Generation, u64), Nanos>,
    /// Heartbeats to each neighbour since the core began.
    beats: BTreeMap<Option<u16>, u64>,
    began: Nanos,
}

impl Checkers {
    /// A core begins, with the next number.
    pub fn core_begins(&mut self) {
        self.causes.push(Causes { began: self.now, ..Causes::default() });
    }

    /// A core gets a frame.
    pub fn core_hears(&mut self, (core, node): (usize, usize), link: Link, path: Path, header: &Header) {
        let children = self.tree.nodes[node].children.len() as u64;
        let causes = &mut self.causes[core];
        match (link, path, header.kind) {
            (Link::Child(_), Path::Datagram, _) => {
                causes.datagrams_up += 1;
                causes.datagrams_down += 1;
            }
            (Link::Child(_), Path::Stream, Kind::Contribution) => {
                causes.segments_up += 1;
                causes.segments_down += 1;
            }
            (Link::Parent, Path::Datagram, Kind::Result) => causes.datagrams_down += children,
            (Link::Parent, Path::Datagram, _) => causes.datagrams_up += 1,
            (Link::Parent, Path::Stream, Kind::Result) => causes.segments_down += children,
            (Link::Parent, Path::Stream, _) | (Link::Child(_), Path::Stream, _) => {}
        }
    }

    /// A core sends a frame; `child` is whether down to one, else up.
    pub fn core_says(&mut self, (core, node): (usize, usize), child: Option<u16>, path: Path, header: &Header) {
        let (now, heartbeat) = (self.now, self.limits.heartbeat);
        let causes = &mut self.causes[core];
        let purse = match (child, path, header.kind) {
            (_, Path::Stream, Kind::Heartbeat) => {
                let beats = causes.beats.entry(child).or_default();
                *beats += 1;
                // Four while the other end is in doubt, and two answers.
                let most = 6 * (1 + now.since(causes.began).0.div_ceil(heartbeat.0));
                if *beats > most {
                    let what = format!("node {node} sends heartbeat {beats} on a link, {most} are enough");
                    self.fail(NAME, what);
                }
                return;
            }
            (None, Path::Datagram, kind) => {
                if kind == Kind::Probe {
                    let last = causes.asked.insert((header.group, header.generation, header.seq), now);
                    if let Some(last) = last.filter(|last| now.since(*last) < ASKS_EVERY) {
                        let what = format!("node {node} asks upward about {header} at {now} and at {last}");
                        return self.fail(NAME, what);
                    }
                }
                &mut causes.datagrams_up
            }
            (Some(_), Path::Datagram, _) => &mut causes.datagrams_down,
            (None, Path::Stream, Kind::Contribution) => &mut causes.segments_up,
            (Some(_), Path::Stream, Kind::Result) => &mut causes.segments_down,
            (_, Path::Stream, _) => return,
        };
        match purse.checked_sub(1) {
            Some(rest) => *purse = rest,
            None => self.fail(NAME, format!("node {node} sends {header} by {path:?} without a cause")),
        }
    }
}
