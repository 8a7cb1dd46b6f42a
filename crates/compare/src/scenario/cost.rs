//! What an operation costs besides time. These figures do not depend on what else the machine does.

use std::time::Duration;

use trib_wire::Collective::{Allreduce, Barrier};

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::{Cell, Mode};
use crate::study::{Shape, Study};
use crate::system::System;

/// Bytes and packets on links, processor time, context switches and system calls.
pub(super) fn operations() -> Scenario {
    let cells = vec![
        Cell::sustained(Barrier, 0).times(500),
        Cell::sustained(Allreduce, 8).times(500),
        Cell::sustained(Allreduce, 4 * KIB).times(500),
        Cell::sustained(Allreduce, 64 * KIB).times(100),
        Cell::sustained(Allreduce, MIB).times(30),
        Cell::sustained(Allreduce, 16 * MIB).times(4),
    ];
    let peers = vec![Cell::sustained(Allreduce, 64 * KIB).times(100), Cell::sustained(Allreduce, MIB).times(15)];
    let parts = vec![
        part(System::tributary(), cells, 5),
        part(System::openmpi_tuned(), peers.clone(), 1),
        part(System::openmpi_ring(), peers.clone(), 1),
        part(System::mpich(), peers, 1),
    ];
    Scenario::Study(Study { observes: true, counts_calls: true, ..plain("cost", HOME, parts) })
}

/// Eight allreduces of 1 MiB at once.
pub(super) fn flight(quick: bool) -> Scenario {
    let cells = vec![Cell { mode: Mode::Flight, ..Cell::sustained(Allreduce, MIB) }];
    let mut parts = vec![part(System::tributary(), cells.clone(), 5)];
    if !quick {
        parts.push(part(System::openmpi_tuned(), cells.clone(), 3));
        parts.push(part(System::mpich(), cells, 3));
    }
    Scenario::Study(plain("flight", HOME, parts))
}

/// One leaf with 2 to 32 children, on links that are slow enough for 32 hosts to share this
/// machine.
pub(super) fn children(quick: bool) -> Vec<Scenario> {
    let (counts, rounds): (&[u16], u32) = if quick { (&[2, 8, 32], 3) } else { (&[2, 4, 8, 16, 32], 5) };
    let cells = vec![Cell::sustained(Allreduce, 4 * MIB)];
    let one = |hosts: &u16| {
        let hosts = *hosts;
        let shape =
            Shape { hosts, leaf_ports: hosts, rate_mbit: 100, rails: 1, uplink: None, pinned: false, ucx: false };
        let parts = vec![part(System::tributary(), cells.clone(), rounds)];
        let budget = Duration::from_secs(1);
        Scenario::Study(Study { observes: true, budget, min_iterations: 2, ..plain("children", shape, parts) })
    };
    counts.iter().map(one).collect()
}
