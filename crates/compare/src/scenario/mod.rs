//! What the comparison consists of: scenarios, each with the fabric that it needs.
//!
//! There is one file per question: `sizes` (allreduce against size, all systems), `collectives`,
//! `small` (latency and its cost), `fabrics` (faster links, more hosts, blocking trunks),
//! `switching` (which path is used when, and what the lock costs), `lanes` (several trees at once),
//! `cost` (bytes, processor time and calls per operation), `sharing` (several jobs at once),
//! `per_host` (several ranks on each host), `one_host` (all ranks on one host), `ucx` (links over
//! UCX).

mod collectives;
mod cost;
mod fabrics;
mod lanes;
pub(crate) mod one_host;
pub(crate) mod per_host;
pub mod sharing;
mod sizes;
mod small;
mod switching;
pub(crate) mod ucx;

use std::time::Duration;

use crate::cell::Cell;
use crate::network::Map;
use crate::study::{Part, Shape, Study};
use crate::system::System;
use sharing::Sharing;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Whether to measure fewer sizes and rounds.
    pub quick: bool,
    /// Only these scenarios are wanted; empty: all.
    pub only: Vec<String>,
    /// Only these systems are wanted; empty: all.
    pub systems: Vec<String>,
    /// Sizes instead of each scenario's own; empty: its own. A barrier stays.
    pub sizes: Vec<u64>,
    /// The number of rounds instead of each part's own.
    pub rounds: Option<u32>,
    /// Additional systems in every scenario.
    pub peers: Vec<System>,
    /// The fabric instead of each scenario's own.
    pub shape: Option<Shape>,
    /// Ranks on each host instead of each scenario's own number.
    pub ranks_per_host: Option<u16>,
    /// The time per cell instead of each scenario's own.
    pub budget: Option<Duration>,
}

/// One scenario.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// Systems one after the other.
    Study(Study),
    /// Jobs beside each other.
    Sharing(Sharing),
}

impl Scenario {
    /// What `--only` and rows call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Study(study) => study.name,
            Self::Sharing(_) => sharing::NAME,
        }
    }

    /// The fabric it needs.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Study(study) => study.shape,
            Self::Sharing(sharing) => sharing.shape,
        }
    }
}

/// Names of all scenarios, in order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = everything(false).iter().map(Scenario::name).collect();
    names.dedup();
    names
}

/// The scenarios that are asked for. Those that need the same fabric follow each other.
pub fn wanted(wishes: &Wishes) -> Result<Vec<Scenario>, String> {
    let known = names();
    if let Some(unknown) = wishes.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("there is no scenario `{unknown}`; there are {}", known.join(", ")));
    }
    let chosen = everything(wishes.quick)
        .into_iter()
        .filter(|scenario| wishes.only.is_empty() || wishes.only.iter().any(|name| name == scenario.name()));
    let mut scenarios: Vec<Scenario> = chosen.map(|scenario| changed(scenario, wishes)).collect();
    for name in &wishes.systems {
        let has = |scenario: &Scenario| match scenario {
            Scenario::Study(study) => study.parts.iter().any(|part| part.system.name == *name),
            Scenario::Sharing(_) => name == "tributary",
        };
        if !scenarios.iter().any(has) {
            return Err(format!("none of the scenarios has a system `{name}`"));
        }
    }
    scenarios.retain(|scenario| !matches!(scenario, Scenario::Study(study) if study.parts.iter().all(|part| !is_wanted(part, wishes))));
    for scenario in &mut scenarios {
        if let Scenario::Study(study) = scenario {
            study.parts.retain(|part| is_wanted(part, wishes));
        }
    }
    Ok(scenarios)
}

fn is_wanted(part: &Part, wishes: &Wishes) -> bool {
    wishes.systems.is_empty() || wishes.systems.contains(&part.system.name)
}

fn changed(scenario: Scenario, wishes: &Wishes) -> Scenario {
    let mut study = match scenario {
        Scenario::Sharing(sharing) => {
            let shape = wishes.shape.unwrap_or(sharing.shape);
            return Scenario::Sharing(Sharing { shape, rounds: wishes.rounds.unwrap_or(sharing.rounds), ..sharing });
        }
        Scenario::Study(study) => study,
    };
    if let Some(first) = study.parts.first() {
        let (cells, rounds) = (first.cells.clone(), first.rounds);
        study.parts.extend(wishes.peers.iter().map(|peer| Part { system: peer.clone(), cells: cells.clone(), rounds }));
    }
    for part in &mut study.parts {
        part.rounds = wishes.rounds.unwrap_or(part.rounds);
        if !wishes.sizes.is_empty() {
            part.cells = resized(&part.cells, &wishes.sizes);
        }
    }
    let own = (study.ranks / u32::from(study.shape.hosts)).max(1);
    if let Some(shape) = wishes.shape {
        // Lanes need rails to be compared, and UCX links over it, whatever the rest of the fabric
        // is; and ranks that share one host are no others on several.
        let hosts = if study.shape.hosts == 1 { 1 } else { shape.hosts };
        study.shape = Shape { hosts, rails: study.shape.rails, ucx: study.shape.ucx, ..shape };
    }
    study.ranks = u32::from(study.shape.hosts) * wishes.ranks_per_host.map_or(own, u32::from);
    study.budget = wishes.budget.unwrap_or(study.budget);
    Scenario::Study(study)
}

/// The same collectives and modes with other sizes.
fn resized(cells: &[Cell], sizes: &[u64]) -> Vec<Cell> {
    let mut kinds: Vec<Cell> = Vec::new();
    for cell in cells {
        let same = |kind: &Cell| kind.collective == cell.collective && kind.mode == cell.mode;
        if !kinds.iter().any(same) {
            kinds.push(*cell);
        }
    }
    let sized = |kind: &Cell| -> Vec<Cell> {
        match kind.bytes {
            0 => vec![*kind],
            _ => sizes.iter().map(|bytes| Cell { bytes: *bytes, iterations: None, ..*kind }).collect(),
        }
    };
    kinds.iter().flat_map(sized).collect()
}

fn everything(quick: bool) -> Vec<Scenario> {
    let mut all = vec![
        sizes::study(quick),
        small::study(quick),
        collectives::study(quick),
        switching::switch_point(quick),
        switching::lock(quick),
        cost::flight(quick),
        cost::operations(),
    ];
    all.push(Scenario::Sharing(Sharing::new(HOME, quick)));
    all.extend([fabrics::gigabit(quick)]);
    all.extend(fabrics::blocking(quick));
    all.push(fabrics::sixteen(quick));
    all.extend(fabrics::host_count(quick));
    all.extend(cost::children(quick));
    all.extend(lanes::studies(quick));
    all.extend(per_host::studies(quick));
    all.extend(one_host::studies(quick));
    all.extend(ucx::studies(quick));
    all
}

/// The fabric from which most figures come: 8 hosts on two leaves.
const HOME: Shape = Shape { hosts: 8, leaf_ports: 4, rate_mbit: 500, rails: 1, uplink: None, pinned: true, ucx: false };

/// A study on this fabric, one rank per host, with nothing special.
fn plain(name: &'static str, shape: Shape, parts: Vec<Part>) -> Study {
    Study {
        name,
        shape,
        ranks: u32::from(shape.hosts),
        map: Map::ByLeaf,
        parts,
        observes: false,
        counts_calls: false,
        budget: Duration::from_millis(250),
        min_iterations: 4,
    }
}

fn part(system: System, cells: Vec<Cell>, rounds: u32) -> Part {
    Part { system, cells, rounds }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_change_every_scenario() {
        let shape =
            Shape { hosts: 2, leaf_ports: 1, rate_mbit: 100, rails: 1, uplink: None, pinned: false, ucx: false };
        let wishes = Wishes {
            quick: true,
            only: vec!["allreduce".to_owned(), "small".to_owned()],
            systems: vec!["tributary".to_owned(), "mine".to_owned()],
            sizes: vec![4096],
            rounds: Some(1),
            peers: vec![System::other("mine=true").unwrap()],
            shape: Some(shape),
            ranks_per_host: Some(3),
            budget: None,
        };
        let scenarios = wanted(&wishes).unwrap();
        assert_eq!(scenarios.iter().map(Scenario::name).collect::<Vec<_>>(), ["allreduce", "small"]);
        for scenario in &scenarios {
            let Scenario::Study(study) = scenario else { panic!("a study") };
            assert_eq!((study.shape, study.ranks), (shape, 6));
            assert_eq!(
                study.parts.iter().map(|part| part.system.name.as_str()).collect::<Vec<_>>(),
                ["tributary", "mine"]
            );
            assert!(study.parts.iter().all(|part| part.rounds == 1));
            assert!(study.parts.iter().flat_map(|part| &part.cells).all(|cell| cell.bytes == 4096 || cell.bytes == 0));
        }
    }

    #[test]
    fn one_host_stays_one() {
        let shape =
            Shape { hosts: 4, leaf_ports: 2, rate_mbit: 100, rails: 1, uplink: None, pinned: false, ucx: false };
        let only = vec![one_host::NAME.to_owned()];
        let scenarios = wanted(&Wishes { only, shape: Some(shape), ..Wishes::default() }).unwrap();
        let of = |scenario: &Scenario| match scenario {
            Scenario::Study(study) => (study.shape.hosts, study.ranks),
            Scenario::Sharing(_) => panic!("a study"),
        };
        assert_eq!(scenarios.iter().map(of).collect::<Vec<_>>(), [(1, 2), (1, 4), (1, 8)]);
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let error = wanted(&Wishes { only: vec!["allreduse".to_owned()], ..Wishes::default() }).unwrap_err();
        assert!(error.contains("allreduce"), "{error}");
        assert!(wanted(&Wishes { systems: vec!["nobody".to_owned()], ..Wishes::default() }).is_err());
    }

    #[test]
    fn fabrics_are_visited_once() {
        let mut shapes: Vec<Shape> = everything(false).iter().map(Scenario::shape).collect();
        shapes.dedup();
        let visits = shapes.len();
        let unique: std::collections::HashSet<Shape> = shapes.into_iter().collect();
        assert_eq!(unique.len(), visits);
    }
}
