//! Barrier and short allreduces: how long they take, how long at worst, and how much processor
//! time.

use trib_wire::Collective::{Allreduce, Barrier};

use super::{HOME, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::Study;
use crate::system::{Kind, System};

pub(super) fn study(quick: bool) -> Scenario {
    let sizes: &[u64] = if quick { &[8, 256] } else { &[4, 8, 16, 32, 64, 128, 256] };
    let mut cells = vec![Cell::sustained(Barrier, 0)];
    cells.extend(sizes.iter().map(|size| Cell::sustained(Allreduce, *size)));
    let takes_part = |system: &System| !matches!(system.kind, Kind::PingPong | Kind::Mpich { polite: false });
    let rounds = |kind: &Kind| match kind {
        Kind::Gloo if quick => 1,
        // Targets compare these systems by ratios inside rounds, so they have most rounds.
        Kind::Tributary | Kind::Mpich { .. } | Kind::OpenMpi(_) => 7,
        _ => 5,
    };
    let parts = System::usual().into_iter().filter(takes_part).map(|system| {
        let rounds = rounds(&system.kind);
        part(system, cells.clone(), rounds)
    });
    Scenario::Study(Study { observes: true, counts_calls: true, ..plain("small", HOME, parts.collect()) })
}
