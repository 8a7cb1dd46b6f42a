//! Where the logical nodes of a job are that have moved.

use std::collections::BTreeMap;

use trib_messages::explanation::Explanation;
use trib_messages::reply::Home;
use trib_wire::Directory as _;
use trib_wire::ids::{NodeId, Rank};

use super::naming::Naming;
use crate::view::{Line, Tone};

/// One line, if some have.
pub(super) fn line(explanation: &Explanation, naming: &Naming) -> Option<Line> {
    // A process that has not heard of the last moves yet knows fewer.
    let mut moved: BTreeMap<NodeId, u16> = BTreeMap::new();
    for (node, moves) in explanation.parts.iter().flat_map(|hosted| &hosted.part.moves) {
        let known = moved.entry(*node).or_default();
        *known = (*known).max(*moves);
    }
    let place = |(node, moves): (&NodeId, &u16)| {
        let home = match explanation.job.home_of(*node, *moves) {
            Some(Home::Node(name)) => format!("node {name}"),
            Some(Home::Rank(rank)) => naming.rank(Rank(rank)),
            None => "a process unknown here".to_owned(),
        };
        format!(
            "{} is hosted by {home} after {moves} {}",
            naming.node(*node),
            if *moves == 1 { "move" } else { "moves" }
        )
    };
    let places: Vec<String> = moved.iter().map(place).collect();
    (!places.is_empty()).then(|| Line::new(Tone::Warning, format!("{}.", places.join("; "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_that_has_moved_is_told_with_its_home() {
        let part = |moves: &[(u16, u16)]| {
            json!({"at": "root", "lane": 0, "part": {"node": 0, "parent": null, "children": [], "groups_alive": 0, "buffers_held": 0,
                "payload_bytes_folded": 0, "moves": moves, "contexts": null, "groups": []}})
        };
        let told = |parts: &[serde_json::Value]| {
            let job = json!({"id": 1, "name": "p", "user": "u", "ranks": 2, "nodes": ["root", "leaf0", "leaf1"], "places": [0, 1, 2],
                "backups": [[1], [2], [0]], "deputies": [[0], [1], [0]], "since": 0,
                "lanes": [{"tree": 0, "root": "root", "first": 0, "nodes": 3, "weight": 1}]});
            let text = json!({"job": job, "parts": parts, "traffic": [], "ways": [], "silent": [], "processes": []});
            let explanation: Explanation = serde_json::from_value(text).unwrap();
            line(&explanation, &Naming::of(&explanation)).map(|line| line.to_string())
        };
        assert_eq!(told(&[part(&[])]), None);
        let words = "leaf0 is hosted by rank 1 after 2 moves; leaf1 is hosted by node root after 1 move.";
        assert_eq!(told(&[part(&[(1, 1)]), part(&[(1, 2), (2, 1)])]).as_deref(), Some(words));
    }
}
