//! Whether another tree will do while nodes of the best one are away.

use super::host_based::Members;
use super::tree_cost::TreeCost;
use super::{Model, Ranks, Way};
use crate::graph::Graph;
use crate::trees::Tree;

/// Whether `tree` may stand in for a better one over the same hosts: if a byte takes at most twice
/// as long on it, or no longer than it takes the hosts alone. If a leaf is missing, every stream of
/// its hosts crosses the trunk on its own. If that is slow, a job is better off without a tree.
pub fn stands_in(graph: &Graph, tree: &Tree, better: &Tree, model: &Model) -> bool {
    let hosts: Vec<usize> = tree.leaves.iter().map(|leaf| leaf.host).collect();
    let byte = |tree: &Tree| TreeCost::of(graph, std::slice::from_ref(tree), 1, Ranks::flat(&hosts), model).byte;
    let (this, best) = (byte(tree), byte(better));
    if this <= SLOWER_MAX * best {
        return true;
    }
    let alone = Members::new(graph, &hosts, model).allreduces();
    let is_way = |way: &Way| matches!(way, Way::Ring | Way::Doubling | Way::Halving);
    alone.iter().filter(|candidate| is_way(&candidate.way)).all(|candidate| this <= candidate.byte)
}

const SLOWER_MAX: f64 = 2.0;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::graph::LinkRate;
    use crate::trees::{Loads, find_tree};

    #[test]
    fn a_spine_stands_in_for_another_and_a_crowded_trunk_for_nothing() {
        let text = "SwitchName=leaf0 Nodes=a[0-7] LinkSpeed=1\nSwitchName=leaf1 Nodes=b[0-7] LinkSpeed=1\n\
            SwitchName=spine0 Switches=leaf[0-1] LinkSpeed=1\nSwitchName=spine1 Switches=leaf[0-1] LinkSpeed=1\n";
        let graph = Graph::parse(text, Path::new("topology.conf"), "1gbit".parse::<LinkRate>().unwrap()).unwrap();
        let hosts: Vec<usize> = graph.hosts().collect();
        let model = Model::laboratory();
        let without = |name: Option<&str>, hosts: &[usize]| {
            let mut loads = Loads::idle(&graph);
            let away = graph.nodes().iter().position(|node| Some(node.name.as_str()) == name);
            away.into_iter().for_each(|node| loads.close(node));
            find_tree(&graph, hosts, &loads).unwrap()
        };
        let best = without(None, &hosts);
        let spine = without(Some("spine0"), &hosts);
        assert_eq!(graph.vertices()[spine.root()].name, "spine1");
        assert!(stands_in(&graph, &spine, &best, &model));
        let crowded = without(Some("leaf0"), &hosts);
        assert!(crowded.copies().links.iter().any(|(_, streams)| *streams == 8));
        assert!(!stands_in(&graph, &crowded, &best, &model));
        // Two streams on a trunk take no more than twice as long as one.
        let few = [hosts[0], hosts[1], hosts[8]];
        assert!(stands_in(&graph, &without(Some("leaf0"), &few), &without(None, &few), &model));
    }
}
