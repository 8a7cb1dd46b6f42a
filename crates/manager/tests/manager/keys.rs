//! What the keys in an aggregation node's grants are worth: its own edges, and nothing else of the
//! job.

use std::collections::BTreeSet;

use serde_json::Value;
use trib_keys::{EdgeKey, JobKey, NodeKey};
use trib_messages::job::{JobTicket, NodeGrant};
use trib_messages::reply::Reply;
use trib_messages::request::{QuotaAsk, Request};
use trib_wire::ids::{ChildIndex, JobId, NodeId};

use crate::common::{Fabric, Manner, Node, TWO_LEAVES, with_deputies};

const NAMES: [&str; 3] = ["root", "leaf0", "leaf1"];

/// A job whose nodes have two backups and two deputies each, and the grants that each aggregation
/// node has got for it.
fn admitted() -> (JobTicket, Vec<(&'static str, Vec<NodeGrant>)>) {
    let fabric = Fabric::serving("topology.toml", &format!("{TWO_LEAVES}backups = 2\n"));
    let nodes = NAMES.map(|name| (name, fabric.node(name, Manner::Installs)));
    let user = fabric.user();
    let Reply::Granted(ticket) = user.ask(&Request::RequestJob(with_deputies(9..13))) else {
        panic!("the job is admitted")
    };
    let granted = |node: &Node| (0..ticket.nodes.len()).map(|_| node.grant()).collect();
    let grants = nodes.iter().map(|(name, node)| (*name, granted(node))).collect();
    (ticket, grants)
}

/// All lists of `N` bytes in a message, whatever they are called there.
fn secrets<const N: usize>(message: &Value, found: &mut BTreeSet<[u8; N]>) {
    let parts: Vec<&Value> = match message {
        Value::Array(all) => {
            let bytes: Option<Vec<u8>> = all.iter().map(|byte| byte.as_u64()?.try_into().ok()).collect();
            found.extend(bytes.and_then(|bytes| <[u8; N]>::try_from(bytes).ok()));
            all.iter().collect()
        }
        Value::Object(all) => all.values().collect(),
        _ => return,
    };
    parts.into_iter().for_each(|part| secrets(part, found));
}

fn secrets_of(grants: &[NodeGrant]) -> BTreeSet<[u8; 32]> {
    let mut found = BTreeSet::new();
    grants.iter().for_each(|grant| secrets(&serde_json::to_value(grant).unwrap(), &mut found));
    found
}

#[test]
fn no_aggregation_node_gets_the_key_of_the_job() {
    let (ticket, grants) = admitted();
    for (name, grants) in &grants {
        assert_eq!(grants.len(), 3, "{name} may host every node of the tree");
        let secrets = secrets_of(grants);
        assert!(!secrets.is_empty() && !secrets.contains(&ticket.key.0), "{name}");
    }
}

/// One end of an edge: a logical node and its candidate, and the other: a child and its candidate.
type Edge = (NodeId, u16, ChildIndex, u16);

/// Every edge that there may be in this job.
fn edges(ticket: &JobTicket) -> Vec<Edge> {
    let mut edges = Vec::new();
    for node in &ticket.nodes {
        for child in (0..4).map(ChildIndex) {
            let ends = (0..ENDS).flat_map(|own| (0..ENDS).map(move |below| (own, below)));
            edges.extend(ends.map(|(own, below)| (node.node, own, child, below)));
        }
    }
    edges
}

/// More candidates than a node of this job has.
const ENDS: u16 = 6;

/// The edges whose keys follow from a secret, whatever it is taken for.
fn opens(ticket: &JobTicket, secret: [u8; 32]) -> BTreeSet<[u8; 32]> {
    let (as_job, as_node) = (JobKey(secret), NodeKey(secret));
    let follow = edges(ticket).into_iter().flat_map(|(node, own, child, below)| {
        let EdgeKey(from_job) = as_job.node(ticket.job, node, own).edge(child, below);
        let EdgeKey(from_node) = as_node.edge(child, below);
        [from_job, from_node]
    });
    follow.chain([secret]).collect()
}

#[test]
fn what_follows_from_a_nodes_grants_are_the_keys_of_its_own_edges() {
    let (ticket, all) = admitted();
    assert!(ticket.nodes.iter().all(|node| (5..ENDS.into()).contains(&node.candidates.len())));
    let key_of = |(node, own, child, below): Edge| ticket.key.node(ticket.job, node, own).edge(child, below).0;
    for (name, grants) in &all {
        let is_own = |(node, own, child, below): &Edge| {
            grants.iter().any(|grant| {
                let is_upper = (grant.node, grant.candidate) == (*node, *own);
                let above = grant.parent.as_ref().map(|parent| (parent.node, parent.child));
                let candidates = ticket.nodes.iter().find(|of| of.node == *node).unwrap().candidates.len();
                let is_lower = (above, grant.candidate) == (Some((*node, *child)), *below);
                is_upper || is_lower && usize::from(*own) < candidates
            })
        };
        let own: BTreeSet<_> = edges(&ticket).into_iter().filter(is_own).map(key_of).collect();
        let every: BTreeSet<_> = edges(&ticket).into_iter().map(key_of).collect();
        assert!(!own.is_empty() && own.len() < every.len() / 2, "{name}");
        let reached: BTreeSet<_> = secrets_of(grants).into_iter().flat_map(|secret| opens(&ticket, secret)).collect();
        assert_eq!(reached.intersection(&every).copied().collect::<BTreeSet<_>>(), own, "{name}");
        // Of the keys of nodes it has one for each node, that of its own candidate.
        let of_nodes = |grant: &NodeGrant| grant.key == ticket.key.node(ticket.job, grant.node, grant.candidate);
        assert!(grants.iter().all(of_nodes), "{name}");
    }
}

#[test]
fn the_candidates_of_the_root_share_a_key_that_no_other_process_has() {
    let fabric = Fabric::serving("topology.toml", &format!("{TWO_LEAVES}backups = 1\n"));
    let nodes = NAMES.map(|name| fabric.node(name, Manner::Installs));
    let user = fabric.user();
    let ticket = user.job(&["x", "x"], QuotaAsk::default()).unwrap();
    let shared = ticket.key.root(ticket.job, NodeId(0));
    let candidates: Vec<&str> = ticket.nodes[0].candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    assert_eq!(candidates, ["root", "leaf0"]);
    let held = [1, 3, 2].into_iter().zip(&nodes).map(|(count, node)| {
        let grants: Vec<NodeGrant> = (0..count).map(|_| node.grant()).collect();
        secrets_of(&grants).contains(&shared.0)
    });
    assert_eq!(held.collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn jobs_with_one_number_have_other_keys_and_another_mark() {
    let one = || {
        let (ticket, grants) = admitted();
        assert_eq!(ticket.job, JobId(1), "each manager counts from the beginning");
        (ticket.key, grants[0].1[0].mark.clone(), secrets_of(&grants[0].1))
    };
    let ((key, mark, secrets), (other_key, other_mark, other_secrets)) = (one(), one());
    assert!(key != other_key && mark != other_mark && secrets.is_disjoint(&other_secrets));
}

#[test]
fn the_managers_file_holds_no_key() {
    let (mut fabric, _nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let ticket = user.job(&["x", "x"], QuotaAsk::default()).unwrap();
    fabric.stop_manager();
    let kept = fabric.kept();
    let holds = |bytes: &[u8]| kept.windows(bytes.len()).any(|window| window == bytes);
    // What is kept is found in this way.
    assert!(holds(&serde_json::to_vec(&ticket.pass).unwrap()));
    assert!(!holds(&serde_json::to_vec(&ticket.key).unwrap()) && !holds(&ticket.key.0));
}
