//! All ranks on one host: allreduces and barriers that need nothing but the memory that the ranks
//! share, beside MPIs that share it, too.
//!
//! The host is not pinned: it has all cores of this machine.

use std::time::Duration;

use trib_wire::Collective::{Allreduce, Barrier};

use super::{KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::{Shape, Study};
use crate::system::System;

/// What rows call all of them. They differ in the number of ranks.
pub(crate) const NAME: &str = "one-host";

pub(super) fn studies(quick: bool) -> Vec<Scenario> {
    let shape = Shape { hosts: 1, leaf_ports: 1, rate_mbit: 500, rails: 1, uplink: None, pinned: false, ucx: false };
    let sizes: &[u64] = if quick {
        &[8, 4 * KIB, 64 * KIB, MIB, 16 * MIB]
    } else {
        &[8, 256, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB]
    };
    let mut cells = vec![Cell::sustained(Barrier, 0)];
    cells.extend(sizes.iter().map(|size| Cell::sustained(Allreduce, *size)));
    let mut systems = vec![System::tributary(), System::openmpi_tuned(), System::openmpi_sm(), System::mpich()];
    if !quick {
        // It leaves communicators of one host to the others, so that its figures are those of
        // openmpi-tuned.
        systems.push(System::openmpi_han());
    }
    let (rounds, budget) = if quick { (4, Duration::from_millis(100)) } else { (7, Duration::from_millis(250)) };
    let study = |ranks: &u32| {
        let parts = systems.iter().map(|system| part(system.clone(), cells.clone(), rounds)).collect();
        Scenario::Study(Study { ranks: *ranks, observes: true, budget, ..plain(NAME, shape, parts) })
    };
    let ranks: &[u32] = if quick { &[2, 4] } else { &[2, 4, 8] };
    ranks.iter().map(study).collect()
}
