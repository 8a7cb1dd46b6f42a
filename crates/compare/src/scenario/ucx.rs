//! The same links over TCP and UDP, and over UCX, on one fabric after the other.

use trib_wire::Collective::Allreduce;

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::{Shape, Study};
use crate::system::System;

/// What rows call both.
pub(crate) const NAME: &str = "ucx";

pub(super) fn studies(quick: bool) -> Vec<Scenario> {
    let sizes: &[u64] = if quick { &[8, MIB] } else { &[8, KIB, 64 * KIB, MIB, 16 * MIB] };
    let cells: Vec<Cell> = sizes.iter().map(|size| Cell::sustained(Allreduce, *size)).collect();
    let rounds = if quick { 3 } else { 7 };
    let shape = Shape { hosts: 4, leaf_ports: 2, rate_mbit: 1000, ..HOME };
    let study = |system, ucx| {
        let parts = vec![part(system, cells.clone(), rounds)];
        Scenario::Study(Study { observes: true, ..plain(NAME, Shape { ucx, ..shape }, parts) })
    };
    vec![study(System::tributary(), false), study(System::tributary_over_ucx(), true)]
}
