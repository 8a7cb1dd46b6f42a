//! The two paths of Tributary: from which size the stream is better, and what taking its lock
//! costs.

use std::time::Duration;

use trib_wire::Collective::Allreduce;

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::Study;
use crate::system::System;

/// Every power of two, both when Tributary chooses the path itself and when it is held to either
/// path.
pub(super) fn switch_point(quick: bool) -> Scenario {
    let most = if quick { 18 } else { 22 };
    let cells: Vec<Cell> = (2..=most).map(|power| Cell::sustained(Allreduce, 1 << power)).collect();
    // The figure is the worst of many ratios of short cells: with fewer rounds it would be the
    // noise that is judged.
    let rounds = 9;
    let systems = [
        System::tributary(),
        System::tributary_with("tributary-llt", "stream_threshold=1099511627776"),
        System::tributary_with("tributary-sat", "stream_threshold=0"),
    ];
    let parts = systems.into_iter().map(|system| part(system, cells.clone(), rounds)).collect();
    Scenario::Study(Study { budget: Duration::from_millis(100), ..plain("switch-point", HOME, parts) })
}

/// A lease for every operation, compared with one that lasts.
pub(super) fn lock(quick: bool) -> Scenario {
    let cells: Vec<Cell> =
        [16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB].map(|size| Cell::sustained(Allreduce, size)).into();
    let rounds = if quick { 3 } else { 5 };
    let systems = [System::tributary(), System::tributary_with("tributary-lock", "lease_operations=1")];
    let parts = systems.into_iter().map(|system| part(system, cells.clone(), rounds)).collect();
    Scenario::Study(Study { budget: Duration::from_millis(150), ..plain("lock", HOME, parts) })
}
