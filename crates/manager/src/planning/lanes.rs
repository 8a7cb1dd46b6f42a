//! The lanes of a job: which trees they take, and how much of a vector each carries.
//!
//! ```text
//!   lanes = 3        tree 0: root spine0     lane 0, lane 2
//!   two trees        tree 1: root spine1     lane 1
//! ```
//! Several lanes over one tree are channels: each has connections of its own, by other ports of the
//! tree if there are any, else along the same links.
//!
//! Each lane has logical nodes of its own, whose numbers follow those of the lane before. So a lane
//! is nothing new to the nodes, the job is installed and ended as a whole, and its quota counts
//! what its lanes take together.
//!
//! All trees of one job must fold the same ranks in the same order, or the bits of a sum would
//! depend on the lane. A tree that does not is not taken.

use std::collections::HashMap;

use trib_messages::job::LaneTicket;
use trib_messages::reply::{LaneStatus, Refusal, Resource};
use trib_topology::trees::Tree;
use trib_topology::{Plan, Topology};
use trib_wire::ids::NodeId;

use super::trees::PlannedLane;
use super::wish::Wish;
use crate::refuse::too_much;

/// The lanes of a job.
pub(crate) struct Lanes {
    /// The logical nodes of all lanes.
    pub(crate) plan: Plan,
    /// What the ranks are told of each lane.
    pub(crate) tickets: Vec<LaneTicket>,
    /// What people are told of each lane.
    pub(crate) status: Vec<LaneStatus>,
}

impl Lanes {
    /// Makes one plan of the lanes of a job.
    pub(crate) fn over(planned: &[PlannedLane], topology: &Topology, wish: &Wish) -> Result<Lanes, Refusal> {
        let trees = planned.iter().map(|lane| lane.tree + 1).max().unwrap_or(0);
        if let Some(asked) = wish.trees.filter(|asked| *asked > trees) {
            let text = format!(
                "the job asks for trees = {asked}, this fabric has {trees} for its hosts that differ and fold in the same order: ask for \
                 fewer, or for lanes alone, some of which then share a tree"
            );
            return Err(too_much(Resource::Trees, asked as u64, trees as u64, text));
        }
        let nodes = planned.iter().map(|lane| lane.plan.nodes.len()).sum::<usize>();
        if nodes > usize::from(u16::MAX) {
            let text =
                format!("the job's lanes need {nodes} logical nodes, at most 65535 are possible: ask for fewer lanes");
            return Err(too_much(Resource::Lanes, nodes as u64, u64::from(u16::MAX), text));
        }
        let weights = weights(topology, planned);
        let all = Vec::with_capacity(nodes);
        let mut plan = Plan { nodes: all, leaves: Vec::new(), hosts: Vec::new(), tree: None, port: 0 };
        let (mut tickets, mut status) = (Vec::with_capacity(planned.len()), Vec::with_capacity(planned.len()));
        for (lane, weight) in planned.iter().zip(weights) {
            let mut own = lane.plan.clone();
            let root = own.nodes.iter().find(|node| node.parent.is_none()).map(|node| node.name.clone());
            let above = own.leaves.first().and_then(|leaf| own.nodes.get(usize::from(leaf.node.0)));
            let (from, to) = (own.leaves.first().and_then(|leaf| leaf.address), above.and_then(|node| node.address));
            let first = plan.nodes.len() as u16;
            own.renumber(first);
            let nodes = own.nodes.len() as u32;
            plan.nodes.append(&mut own.nodes);
            tickets.push(LaneTicket { weight, leaves: own.leaves });
            let (tree, root) = (lane.tree as u32, root.unwrap_or_default());
            status.push(LaneStatus { tree, root, first: NodeId(first), nodes, weight, from, to });
        }
        Ok(Lanes { plan, tickets, status })
    }
}

/// The rate that the slowest link of each lane gives it, in Mbit/s. The lanes of one tree share a
/// link that several of them take. If links have no rates, all lanes of a tree have the same.
fn weights(topology: &Topology, planned: &[PlannedLane]) -> Vec<u32> {
    let copies = |lane: &PlannedLane| lane.plan.tree.as_ref().map(Tree::copies).unwrap_or_default();
    let links: Vec<Vec<(usize, u32)>> = planned.iter().map(|lane| copies(lane).links).collect();
    let mut sharing: HashMap<(usize, usize), u64> = HashMap::new();
    for (lane, links) in planned.iter().zip(&links) {
        links.iter().for_each(|(link, _)| *sharing.entry((lane.tree, *link)).or_default() += 1);
    }
    let weight = |(lane, links): (&PlannedLane, &Vec<(usize, u32)>)| {
        let channels = planned.iter().filter(|other| other.tree == lane.tree).count() as u64;
        let slowest = topology.graph().and_then(|graph| {
            let share = |(link, streams): &(usize, u32)| {
                let rate = graph.links()[*link].rate.bits_per_second() / 1_000_000;
                rate / u64::from((*streams).max(1)) / sharing[&(lane.tree, *link)]
            };
            links.iter().map(share).min()
        });
        slowest.unwrap_or(u64::from(u32::MAX) / channels).clamp(1, u64::from(u32::MAX)) as u32
    };
    planned.iter().zip(&links).map(weight).collect()
}

#[cfg(test)]
mod tests;
