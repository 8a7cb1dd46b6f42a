//! Jobs that go on when a node dies: the candidates of their logical nodes.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Fabric, Manner, Node, TWO_LEAVES, User, eventually, full, with_deputies};
use trib_messages::job::{GrantParent, JobTicket, NodeGrant};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::Reply;
use trib_messages::request::{QuotaAsk, Request};
use trib_wire::ids::{JobId, NodeId};

const NAMES: [&str; 3] = ["root", "leaf0", "leaf1"];

fn fabric(backups: u32) -> Fabric {
    Fabric::serving("topology.toml", &format!("{TWO_LEAVES}backups = {backups}\n"))
}

fn nodes(fabric: &Fabric, manner: impl Fn(&str) -> Manner) -> BTreeMap<&'static str, Node> {
    NAMES.map(|name| (name, fabric.node(name, manner(name)))).into()
}

fn job(user: &User, hosts: &[&str]) -> JobTicket {
    user.job(hosts, QuotaAsk::default()).unwrap()
}

/// A line for each logical node: its candidates.
fn candidates(ticket: &JobTicket) -> Vec<String> {
    let names = |node: &trib_messages::job::TicketNode| -> Vec<String> {
        node.candidates.iter().map(|candidate| candidate.name.clone()).collect()
    };
    ticket.nodes.iter().map(|node| names(node).join(" ")).collect()
}

/// The grants of a job at a node, which has heard of nothing else, by logical node.
fn grants(node: &Node, count: usize) -> BTreeMap<NodeId, NodeGrant> {
    (0..count).map(|_| node.grant()).map(|grant| (grant.node, grant)).collect()
}

#[test]
fn every_candidate_has_a_grant_that_names_the_others() {
    let fabric = fabric(2);
    let nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let ticket = job(&user, &["x", "x"]);
    assert!(ticket.recovers);
    assert_eq!(candidates(&ticket), ["root leaf0 leaf1", "leaf0 leaf1 root", "leaf1 leaf0 root"]);
    for (at, name) in NAMES.iter().enumerate() {
        let grants = grants(&nodes[name], 3);
        for (node, known) in grants.values().zip(&ticket.nodes) {
            let own = known.candidates.iter().position(|candidate| candidate.name == *name).unwrap();
            let streams: Vec<_> = known.candidates.iter().map(|candidate| candidate.stream).collect();
            assert_eq!(
                (node.node, usize::from(node.candidate), &node.candidates),
                (known.node, own, &streams),
                "{name}"
            );
            assert_eq!((&node.name, node.recovers), (&known.candidates[0].name, true));
            let streams: Vec<_> = ticket.nodes[0].candidates.iter().map(|candidate| candidate.stream).collect();
            let above = |parent: &GrantParent| parent.candidates.iter().map(|above| above.stream).collect::<Vec<_>>();
            assert!(node.parent.iter().all(|parent| above(parent) == streams), "{name}");
        }
        assert_eq!(grants[&NodeId(at as u16)].candidate, 0, "{name} is a primary");
    }
    let status = user.status().jobs.pop().unwrap();
    assert_eq!(status.backups_told(), "root: leaf0, leaf1; leaf0: leaf1, root; leaf1: leaf0, root");
    let told = user.jobs().live.pop().unwrap();
    assert_eq!(told.backups.map(|names| names.count), Some(3));
}

#[test]
fn a_job_asks_for_backups_or_for_none() {
    let fabric = fabric(1);
    let nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let asked = |backups| user.job(&["x", "x"], QuotaAsk { backups, ..QuotaAsk::default() });
    let (usual, none) = (asked(None).unwrap(), asked(Some(0)).unwrap());
    assert_eq!(candidates(&usual), ["root leaf0", "leaf0 leaf1", "leaf1 leaf0"]);
    assert_eq!((candidates(&none), none.recovers), (NAMES.map(String::from).to_vec(), false));
    let refusal = asked(Some(2)).unwrap_err();
    assert!(refusal.text.contains("backups = 2, this fabric gives at most 1"), "{refusal}");
    // The memory of the first backups is charged beside that of primaries.
    let charge = |id: JobId| user.status().jobs.into_iter().find(|job| job.id == id).unwrap().charge.unwrap();
    assert_eq!((charge(none.job).lanes, charge(usual.job).lanes), (vec![1, 1, 1], vec![1, 3, 2]));
    let more = charge(usual.job).memory_bytes;
    assert!(more[1] > more[0], "{more:?}");
    drop(nodes);
}

#[test]
fn a_fabric_with_one_node_has_no_backups() {
    let alone = "[[node]]\nname = \"root\"\n[[host]]\nname = \"*\"\nleaf = \"root\"\n[limits]\nbackups = 3\n";
    let fabric = Fabric::serving("topology.toml", alone);
    let root = fabric.node("root", Manner::Installs);
    let user = fabric.user();
    let ticket = job(&user, &["x", "x"]);
    assert_eq!((candidates(&ticket), ticket.recovers), (vec!["root".to_owned()], false));
    let grant = root.grant();
    assert_eq!((grant.candidate, grant.candidates.len(), grant.recovers), (0, 1, false));
}

#[test]
fn a_backup_that_refuses_or_does_not_answer_is_left_out_and_the_job_is_admitted() {
    for manner in [Manner::Rejects(full()), Manner::Ignores, Manner::HangsUp] {
        let fabric = fabric(1);
        let nodes = nodes(&fabric, |name| if name == "root" { manner.clone() } else { Manner::Installs });
        // Of leaf0 the nearest node would be leaf1.
        let user = fabric.user();
        nodes["leaf1"].channel.close();
        eventually("the leaf is away", || user.status().nodes.iter().any(|node| !node.connected));
        let ticket = job(&user, &["h0", "h0"]);
        assert_eq!((candidates(&ticket), ticket.recovers), (vec!["leaf0".to_owned()], false));
        // The job that is admitted is another one for the nodes, and the first is over.
        let leaf0 = &nodes["leaf0"];
        let ManagerMessage::End { job: first } = leaf0.next() else { panic!("the first is not ended") };
        let grant = leaf0.grant();
        assert_eq!((grant.job, grant.candidates.len()), (ticket.job, 1));
        assert_ne!(first, ticket.job);
        assert_eq!(ids(&user), [ticket.job]);
    }
}

#[test]
fn the_next_candidate_takes_the_place_of_one_that_refuses() {
    let fabric = fabric(1);
    let nodes = nodes(&fabric, |name| if name == "leaf1" { Manner::Rejects(full()) } else { Manner::Installs });
    let user = fabric.user();
    let ticket = job(&user, &["h0", "h0"]);
    assert_eq!((candidates(&ticket), ticket.recovers), (vec!["leaf0 root".to_owned()], true));
    assert_eq!(nodes["root"].grant().candidate, 1);
}

fn ids(user: &User) -> Vec<JobId> {
    user.status().jobs.iter().map(|job| job.id).collect()
}

#[test]
fn the_end_of_a_job_frees_its_backups() {
    let fabric = fabric(1);
    let nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let ticket = job(&user, &["h0", "h0"]);
    assert_eq!(candidates(&ticket), ["leaf0 leaf1"]);
    assert_eq!(nodes["leaf1"].grant().candidate, 1);
    user.ask(&Request::EndJob { job: ticket.job, why: None });
    assert_eq!(nodes["leaf1"].next(), ManagerMessage::End { job: ticket.job });
    assert!(nodes["root"].is_quiet(), "it was no candidate");
}

#[test]
fn a_backup_that_was_away_when_its_job_ended_is_told_when_it_comes_back() {
    let fabric = fabric(1);
    let mut nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let ticket = job(&user, &["h0", "h0"]);
    assert_eq!(candidates(&ticket), ["leaf0 leaf1"]);
    drop(nodes.remove("leaf1"));
    eventually("the leaf is away", || user.status().nodes.iter().any(|node| !node.connected));
    user.ask(&Request::EndJob { job: ticket.job, why: None });
    let running = job(&user, &["h0"]).job;
    // An earlier manager may have admitted a job that this one does not know.
    let held = [ticket.job, running, JobId(running.0 + 7)];
    let leaf1 = Node::holding(&fabric, "leaf1", &held);
    assert_eq!(leaf1.next(), ManagerMessage::Registered);
    leaf1.channel.send(&NodeMessage::Hosts { jobs: held.to_vec() }).unwrap();
    assert_eq!(leaf1.next(), ManagerMessage::End { job: ticket.job });
    let next = job(&user, &["h0", "h0"]).job;
    assert_eq!(leaf1.grant().job, next, "it is told to end nothing else");
}

#[test]
fn another_manager_knows_the_backups_and_ends_them_with_the_job() {
    let mut fabric = fabric(1);
    let nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let ticket = job(&user, &["h0", "h0"]);
    drop(nodes);
    fabric.stop_manager();
    fabric.start_manager();
    let user = fabric.user();
    let status = user.status().jobs.pop().unwrap();
    assert_eq!((status.adopted, status.backups_told().as_str()), (true, "leaf0: leaf1"));
    let leaf1 = came_back(Node::holding(&fabric, "leaf1", &[ticket.job]), ticket.job);
    let leaf0 = came_back(Node::hosting(&fabric, "leaf0", &[ticket.job]), ticket.job);
    let other = job(&user, &["h0"]);
    let numbers: BTreeSet<JobId> = ids(&user).into_iter().collect();
    assert_eq!(numbers, BTreeSet::from([ticket.job, other.job]));
    leaf0.channel.send(&NodeMessage::Left { job: ticket.job }).unwrap();
    // The backup cannot know that the job is over, as no rank has ever come to it.
    eventually("the job ends when no rank is at its backups", || ids(&user) == [other.job]);
    assert_eq!(leaf1.grant().job, other.job);
    assert_eq!(leaf1.next(), ManagerMessage::End { job: ticket.job });
}

/// A node has called the next manager, and has this job.
fn came_back(node: Node, job: JobId) -> Node {
    assert_eq!(node.next(), ManagerMessage::Registered);
    node.channel.send(&NodeMessage::Hosts { jobs: vec![job] }).unwrap();
    node
}

#[test]
fn nodes_that_are_backups_of_each_other_keep_no_job_of_which_none_hosts_anything() {
    let mut fabric = fabric(1);
    let nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let job = job(&user, &["x", "x"]).job;
    drop(nodes);
    fabric.stop_manager();
    fabric.start_manager();
    let nodes = NAMES.map(|name| came_back(Node::holding(&fabric, name, &[job]), job));
    eventually("the job ends, as no rank is anywhere", || ids(&fabric.user()).is_empty());
    for node in nodes {
        assert_eq!(node.next(), ManagerMessage::End { job });
    }
}

#[test]
fn a_job_with_deputies_goes_on_without_backups_and_ends_when_no_rank_is_left() {
    let mut fabric = fabric(0);
    let nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let Reply::Granted(ticket) = user.ask(&Request::RequestJob(with_deputies([9, 10]))) else {
        panic!("the job is admitted")
    };
    assert!(ticket.recovers && ticket.deputies.len() == 2 * NAMES.len() - 2, "{:?}", ticket.deputies);
    assert_eq!(candidates(&ticket)[0], "root rank 0 on x rank 1 on x");
    let job = ticket.job;
    drop(nodes);
    fabric.stop_manager();
    fabric.start_manager();
    let _nodes = NAMES.map(|name| came_back(Node::holding(&fabric, name, &[job]), job));
    eventually("the job ends, as no rank is anywhere", || ids(&fabric.user()).is_empty());
}

#[test]
fn a_backup_for_which_its_tenant_has_no_room_is_left_out_and_what_is_charged_is_given_back() {
    let topology = format!("{TWO_LEAVES}backups = 1\n");
    let fabric = Fabric::with_tenants(&topology, "[node]\nstreams = 5\n", &[]);
    let _nodes = nodes(&fabric, |_| Manner::Installs);
    let user = fabric.user();
    let asked = |hosts: &[&str], streams, backups| {
        user.job(hosts, QuotaAsk { streams: Some(streams), backups, ..QuotaAsk::default() }).unwrap()
    };
    let alone = asked(&["h0"], 4, Some(0));
    let ticket = asked(&["x", "x"], 1, None);
    assert_eq!(candidates(&ticket), ["root leaf1", "leaf0 leaf1", "leaf1 root"], "leaf0 has room for its own");
    let charge = |id: JobId| user.status().jobs.into_iter().find(|job| job.id == id).unwrap().charge.unwrap();
    assert_eq!(charge(ticket.job).lanes, [2, 1, 3]);
    user.ask(&Request::EndJob { job: alone.job, why: None });
    user.ask(&Request::EndJob { job: ticket.job, why: None });
    let held = || user.status().tenants.iter().any(|tenant| !tenant.nodes.is_empty());
    eventually("nothing is held", || !held());
    let full = asked(&["x", "x"], 5, None);
    assert!(!full.recovers, "there is room for primaries alone");
    assert_eq!(charge(full.job).lanes, [1, 1, 1]);
}
