//! The links over which the ranks of a job reach its nodes. Nothing depends on them but what people
//! read, so the file of jobs does not keep them.

use trib_messages::explanation::WayPart;
use trib_topology::{Topology, Way};
use trib_wire::ids::NodeId;

use super::trees::PlannedLane;

/// The ways of one job. For a job that an earlier manager admitted, none is known.
#[derive(Default)]
pub(crate) struct Ways {
    by_node: Vec<Vec<WayPart>>,
}

impl Ways {
    /// The ways of ranks on `hosts`, over `lanes` in the order of their logical nodes.
    pub(crate) fn of(hosts: &[String], lanes: &[PlannedLane], topology: &Topology) -> Ways {
        let by_node = lanes.iter().flat_map(|lane| lane.plan.ways(topology, hosts));
        Ways { by_node: by_node.map(|ways| ways.into_iter().map(part).collect()).collect() }
    }

    /// The links that lead from a logical node to its children.
    pub(crate) fn at(&self, node: NodeId) -> Vec<WayPart> {
        self.by_node.get(usize::from(node.0)).cloned().unwrap_or_default()
    }
}

fn part(Way { children, host, rate }: Way) -> WayPart {
    WayPart { children, host, bits_per_second: rate.map(|rate| rate.bits_per_second()) }
}
