//! Allreduce against size, with every system there is.

use trib_wire::Collective::Allreduce;

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::Part;
use crate::system::{Kind, System};

pub(super) fn study(quick: bool) -> Scenario {
    let sizes: Vec<u64> = if quick {
        vec![8, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB]
    } else {
        (2..=26).step_by(2).map(|power| 1 << power).collect()
    };
    let mut parts: Vec<Part> = System::usual().into_iter().map(|system| usual(system, &sizes, quick)).collect();
    let bulk: Vec<u64> =
        if quick { vec![64 * KIB, MIB] } else { vec![8, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB] };
    let rounds = if quick { 1 } else { 3 };
    parts.extend(System::openmpi_algorithms().into_iter().map(|system| part(system, cells(&bulk), rounds)));
    Scenario::Study(plain("allreduce", HOME, parts))
}

/// A system's sizes and rounds: ours and the yardstick have most of them, and systems that would
/// take minutes the fewest.
fn usual(system: System, sizes: &[u64], quick: bool) -> Part {
    let most = match (&system.kind, quick) {
        (Kind::Mpich { polite: false }, _) => 64 * KIB,
        (Kind::Tributary | Kind::PingPong, true) => 16 * MIB,
        (_, true) => 4 * MIB,
        (Kind::Tributary | Kind::PingPong | Kind::TributaryMpi, false) => 64 * MIB,
        (_, false) => 16 * MIB,
    };
    let rounds = match (&system.kind, quick) {
        (Kind::Mpich { polite: false }, _) => 1,
        (Kind::PingPong | Kind::TributaryMpi, true) => 3,
        (Kind::Tributary | Kind::PingPong, _) => 5,
        (_, true) => 2,
        (_, false) => 5,
    };
    let mut cells = cells(&sizes.iter().copied().filter(|size| *size <= most).collect::<Vec<_>>());
    if !matches!(system.kind, Kind::Mpich { polite: false }) {
        let singles: &[u64] = if quick { &[8, 64 * KIB] } else { &[8, 4 * KIB, 64 * KIB, MIB] };
        cells.extend(singles.iter().map(|size| Cell::single(Allreduce, *size)));
    }
    part(system, cells, rounds)
}

fn cells(sizes: &[u64]) -> Vec<Cell> {
    sizes.iter().map(|size| Cell::sustained(Allreduce, *size)).collect()
}
