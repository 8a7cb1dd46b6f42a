//! The other collectives, compared with what their bytes allow: the whole vector crosses one host's
//! link once.

use trib_wire::Collective::{Allgather, Bcast, Reduce, ReduceScatter};

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::system::{Kind, System};

pub(super) fn study(quick: bool) -> Scenario {
    let sizes: &[u64] = if quick { &[MIB] } else { &[KIB, 64 * KIB, MIB, 16 * MIB] };
    let cells: Vec<Cell> = [Reduce, Bcast, ReduceScatter, Allgather]
        .into_iter()
        .flat_map(|collective| sizes.iter().map(move |size| Cell::sustained(collective, *size)))
        .collect();
    let takes_part = |system: &System| !matches!(system.kind, Kind::PingPong | Kind::Mpich { polite: false });
    let parts = System::usual().into_iter().filter(takes_part).map(|system| {
        let rounds = match system.kind {
            Kind::Tributary => 5,
            Kind::TributaryMpi if !quick => 5,
            Kind::Gloo => 1,
            _ if quick => 1,
            _ => 3,
        };
        part(system, cells.clone(), rounds)
    });
    Scenario::Study(plain("collectives", HOME, parts.collect()))
}
