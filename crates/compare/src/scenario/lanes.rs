//! One lane and several: over two rails of each host, and over connections along one tree; with one
//! rank on each host and with two.

use trib_wire::Collective::Allreduce;

use super::{HOME, KIB, MIB, Scenario, part, plain};
use crate::cell::Cell;
use crate::study::{Shape, Study};
use crate::system::System;

pub(super) fn studies(quick: bool) -> Vec<Scenario> {
    let shape = Shape { hosts: 4, leaf_ports: 2, rate_mbit: 250, rails: 2, ..HOME };
    let sizes: &[u64] = if quick { &[8, 4 * MIB] } else { &[8, 256, 2 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB] };
    let cells: Vec<Cell> = sizes.iter().map(|size| Cell::sustained(Allreduce, *size)).collect();
    let mut systems = vec![
        System::tributary(),
        System::tributary_with("tributary-channels", "lanes=2,trees=1"),
        System::tributary_with("tributary-rails", "lanes=2,trees=2"),
    ];
    if !quick {
        systems.push(System::tributary_with("tributary-rails-channels", "lanes=4,trees=2"));
    }
    let rounds = if quick { 3 } else { 5 };
    let study = |name, ranks_per_host: u32| {
        let parts = systems.iter().map(|system| part(system.clone(), cells.clone(), rounds)).collect();
        let study = plain(name, shape, parts);
        Scenario::Study(Study { ranks: study.ranks * ranks_per_host, ..study })
    };
    let mut studies = vec![study("lanes", 1)];
    if !quick {
        studies.push(study("lanes-shared", 2));
    }
    studies
}
