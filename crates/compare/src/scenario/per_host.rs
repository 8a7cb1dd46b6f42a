//! Several ranks on each host: what a host's link carries and how long short operations take,
//! beside MPIs that combine a host's ranks in its memory.

use trib_wire::Collective::{Allreduce, Barrier};

use super::{HOME, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::{Shape, Study};
use crate::system::System;

/// What rows call all of them. They differ in the number of ranks.
pub(crate) const NAME: &str = "per-host";

pub(super) fn studies(quick: bool) -> Vec<Scenario> {
    let shape = Shape { hosts: 4, leaf_ports: 2, rate_mbit: 200, ..HOME };
    let sizes: &[u64] = if quick { &[8, 4 * MIB] } else { &[8, 4 * MIB, 16 * MIB] };
    let mut cells = vec![Cell::sustained(Barrier, 0)];
    cells.extend(sizes.iter().map(|size| Cell::sustained(Allreduce, *size)));
    let systems = [System::tributary(), System::openmpi_tuned(), System::openmpi_han(), System::mpich()];
    let rounds = if quick { 2 } else { 5 };
    let study = |each: &u32| {
        let parts = systems.iter().map(|system| part(system.clone(), cells.clone(), rounds)).collect();
        let study = plain(NAME, shape, parts);
        let min_iterations = if quick { 2 } else { study.min_iterations };
        Scenario::Study(Study { ranks: study.ranks * each, observes: true, min_iterations, ..study })
    };
    let each: &[u32] = if quick { &[1, 4] } else { &[1, 2, 4] };
    each.iter().map(study).collect()
}
