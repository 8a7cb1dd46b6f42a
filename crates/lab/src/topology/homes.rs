//! Which core of the machine each place keeps to, where places are pinned.
//!
//! On the machines for which a laboratory stands, no process moves to another machine. Here the
//! scheduler moves processes between cores, and each time the process finds cold caches. A pinned
//! laboratory keeps this out of what is measured.

use std::collections::HashMap;

use super::plan::{PlaceKind, Plan};

/// The home of every place, in the order of the plan, as a number below `cores`. If there are as
/// many cores as places, each has its own. Otherwise neighbouring hosts share one, and a switch
/// shares that of the first host below it.
///
/// # Panics
/// If there are no cores.
pub(crate) fn homes(plan: &Plan, cores: usize) -> Vec<usize> {
    assert!(cores > 0, "a machine has a core");
    let Plan { places, links, .. } = plan;
    if cores >= places.len() {
        return (0..places.len()).collect();
    }
    let hosts = places.iter().filter(|place| place.kind == PlaceKind::Host).count();
    let first_host = places.len() - hosts;
    let mut homes: Vec<usize> =
        (0..places.len()).map(|at| at.saturating_sub(first_host) * cores / hosts.max(1)).collect();
    let place_at: HashMap<&str, usize> =
        places.iter().enumerate().map(|(at, place)| (place.name.as_str(), at)).collect();
    // The links are taken from the last to the first, so that a switch takes over the home of the
    // first place below it.
    for link in links.iter().rev() {
        homes[place_at[link.upper.as_str()]] = homes[place_at[link.lower.as_str()]];
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::FatTree;

    fn named(tree: &FatTree, cores: usize) -> Vec<String> {
        let plan = tree.plan();
        plan.places.iter().zip(homes(&plan, cores)).map(|(place, home)| format!("{} {home}", place.name)).collect()
    }

    #[test]
    fn a_leaf_and_its_hosts_stay_together() {
        let tree = FatTree { hosts: 4, leaf_ports: 2, ..FatTree::default() };
        assert_eq!(named(&tree, 2), ["spine 0", "leaf0 0", "leaf1 1", "h0 0", "h1 0", "h2 1", "h3 1"]);
        assert_eq!(named(&tree, 1).iter().filter(|place| place.ends_with(" 0")).count(), 7);
    }

    #[test]
    fn with_cores_enough_nobody_shares() {
        let tree = FatTree { hosts: 4, leaf_ports: 2, ..FatTree::default() };
        assert_eq!(named(&tree, 7)[6], "h3 6");
        assert_eq!(named(&tree, 64)[0], "spine 0");
    }

    #[test]
    fn every_core_has_its_share_of_hosts() {
        for (hosts, leaf_ports, levels, cores) in
            [(16, 4, 2, 2), (16, 4, 3, 4), (9, 4, 3, 3), (32, 32, 2, 2), (5, 1, 2, 4)]
        {
            let plan = FatTree { hosts, leaf_ports, uplink: 1, levels, ..FatTree::default() }.plan();
            let homes = homes(&plan, cores);
            let mut load = vec![0; cores];
            for (place, home) in plan.places.iter().zip(&homes) {
                load[*home] += usize::from(place.kind == PlaceKind::Host);
            }
            let (least, most) = (load.iter().min().unwrap(), load.iter().max().unwrap());
            assert!(most - least <= 1, "{load:?}");
        }
    }
}
