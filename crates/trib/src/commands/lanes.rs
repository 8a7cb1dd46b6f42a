//! The lanes of a job, as `trib status` and explanations show them.

use trib_messages::reply::{JobStatus, LaneStatus};

/// How many lanes a job has, and the roots of its trees: `3` and `spine0,spine1`. A manager of
/// another version may not tell.
pub(super) fn cells(job: &JobStatus) -> (String, String) {
    let JobStatus { lanes, root, .. } = job;
    if lanes.is_empty() {
        return ("-".to_owned(), root.clone());
    }
    let mut trees: Vec<&LaneStatus> = Vec::new();
    for lane in lanes {
        if trees.iter().all(|known| known.tree != lane.tree) {
            trees.push(lane);
        }
    }
    let roots: Vec<&str> = trees.iter().map(|lane| lane.root.as_str()).collect();
    (lanes.len().to_string(), roots.join(","))
}

/// One lane in words, as a heading.
pub(super) fn heading(number: usize, lanes: &[LaneStatus]) -> String {
    let LaneStatus { tree, root, nodes, weight, from, to, .. } = &lanes[number];
    let whole: u64 = lanes.iter().map(|lane| u64::from(lane.weight)).sum();
    let share = 100 * u64::from(*weight) / whole.max(1);
    let channels: Vec<String> =
        (0..lanes.len()).filter(|at| lanes[*at].tree == *tree).map(|at| at.to_string()).collect();
    let shared =
        if channels.len() > 1 { format!(", which lanes {} share", channels.join(", ")) } else { String::new() };
    let from = from.map(|address| format!(" from {address}")).unwrap_or_default();
    let to = to.map(|address| format!(" to {address}")).unwrap_or_default();
    let port = if from.is_empty() && to.is_empty() { String::new() } else { format!("; rank 0 goes{from}{to}") };
    format!(
        "Lane {number}: {share} % of a long vector over tree {tree} from {root}{shared}, {nodes} logical nodes{port}"
    )
}

#[cfg(test)]
mod tests {
    use trib_wire::ids::{JobId, NodeId};

    use super::*;

    fn lane(tree: u32, root: &str, first: u16, weight: u32) -> LaneStatus {
        LaneStatus { tree, root: root.into(), first: NodeId(first), nodes: 3, weight, from: None, to: None }
    }

    fn job(lanes: Vec<LaneStatus>) -> JobStatus {
        let job = serde_json::json!({ "id": JobId(7), "name": "p", "user": "u", "ranks": 2, "nodes": [], "since": 0 });
        JobStatus { lanes, root: "spine0".into(), ..serde_json::from_value(job).unwrap() }
    }

    #[test]
    fn lanes_are_told_with_their_trees() {
        let three = job(vec![lane(0, "spine0", 0, 25), lane(1, "spine1", 3, 50), lane(0, "spine0", 6, 25)]);
        assert_eq!(cells(&three), ("3".to_owned(), "spine0,spine1".to_owned()));
        assert_eq!(cells(&job(Vec::new())), ("-".to_owned(), "spine0".to_owned()));
        assert_eq!([2, 3, 8, 9].map(|node| three.lane_of(NodeId(node))), [Some(0), Some(1), Some(2), None]);
        assert_eq!(
            heading(2, &three.lanes),
            "Lane 2: 25 % of a long vector over tree 0 from spine0, which lanes 0, 2 share, 3 logical nodes"
        );
        let at = |address: &str| Some(address.parse().unwrap());
        let port = LaneStatus { from: at("10.1.0.1"), to: at("10.1.1.1"), ..lane(0, "spine", 0, 1) };
        assert!(heading(0, &[port]).ends_with(", 3 logical nodes; rank 0 goes from 10.1.0.1 to 10.1.1.1"));
        assert_eq!(heading(1, &three.lanes), "Lane 1: 50 % of a long vector over tree 1 from spine1, 3 logical nodes");
    }
}
