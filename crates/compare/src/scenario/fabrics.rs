//! The same allreduce on other fabrics: faster links, more hosts, trunks that block.

use trib_wire::Collective::Allreduce;

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::network::Map;
use crate::study::{Part, Shape, Study};
use crate::system::System;

/// Links of 1 Gbit/s.
pub(super) fn gigabit(quick: bool) -> Scenario {
    let sizes: &[u64] = if quick { &[16 * MIB] } else { &[64 * KIB, MIB, 16 * MIB] };
    let shape = Shape { rate_mbit: 1000, ..HOME };
    Scenario::Study(Study { observes: true, ..plain("gigabit", shape, few(sizes, quick)) })
}

/// 16 hosts on four leaves.
pub(super) fn sixteen(quick: bool) -> Scenario {
    let sizes: &[u64] = if quick { &[4 * MIB] } else { &[8, KIB, 64 * KIB, MIB, 4 * MIB] };
    Scenario::Study(plain("hosts-16", SIXTEEN, few(sizes, quick)))
}

/// Trunks that carry a quarter of what their hosts could send, with neighbouring ranks together and
/// apart.
pub(super) fn blocking(quick: bool) -> Vec<Scenario> {
    let sizes: &[u64] = if quick { &[4 * MIB] } else { &[64 * KIB, MIB, 4 * MIB, 16 * MIB] };
    let shape = Shape { uplink: Some(1), ..HOME };
    let one = |map| Scenario::Study(Study { map, observes: true, ..plain("blocking", shape, few(sizes, quick)) });
    vec![one(Map::ByLeaf), one(Map::Interleaved)]
}

/// The same rate of host links with 2, 4 and 8 hosts; 16 hosts are a scenario of their own.
pub(super) fn host_count(quick: bool) -> Vec<Scenario> {
    let cells = vec![Cell::sustained(Allreduce, 4 * MIB)];
    let (own, peers) = if quick { (2, 1) } else { (5, 5) };
    let one = |hosts| {
        let systems = [(System::tributary(), own), (System::openmpi_ring(), peers)];
        let parts = systems.into_iter().map(|(system, rounds)| part(system, cells.clone(), rounds)).collect();
        Scenario::Study(plain("host-count", Shape { hosts, ..SIXTEEN }, parts))
    };
    [2, 4, 8].map(one).into()
}

/// Ours, the yardstick and the best of the peers.
fn few(sizes: &[u64], quick: bool) -> Vec<Part> {
    let cells: Vec<Cell> = sizes.iter().map(|size| Cell::sustained(Allreduce, *size)).collect();
    let peers = if quick { 1 } else { 3 };
    let mut parts = vec![
        part(System::tributary(), cells.clone(), 5),
        part(System::ping_pong(), cells.clone(), if quick { 3 } else { 5 }),
        part(System::openmpi_tuned(), cells.clone(), peers),
        part(System::openmpi_ring(), cells.clone(), peers),
    ];
    // Gloo is left out: its ring is like Open MPI's, and its start takes longer than all the rest.
    if !quick {
        parts.push(part(System::gloo(), cells, peers));
    }
    parts
}

const SIXTEEN: Shape =
    Shape { hosts: 16, leaf_ports: 4, rate_mbit: 200, rails: 1, uplink: None, pinned: true, ucx: false };
