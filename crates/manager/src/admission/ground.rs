//! What a plan stands on: its nodes as they are connected, and the limits that fit them.

use std::collections::BTreeMap;
use std::sync::Arc;

use trib_control::clock::unix_ms;
use trib_messages::job::Limits;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::QuotaAsk;
use trib_topology::Plan;

use crate::fabric::Fabric;
use crate::nodes::session::Session;
use crate::planning::quota::{Ground, Site, settle};
use crate::refuse::{lasting, refuse, since_start};

/// The aggregation nodes of one job, by their index in the topology.
pub(super) type Sessions = BTreeMap<usize, Arc<Session>>;

pub(super) fn find_nodes(fabric: &Fabric, plan: &Plan) -> Result<Sessions, Refusal> {
    let mut sessions = Sessions::new();
    let (mut away, mut silent): (Vec<&str>, Vec<&str>) = Default::default();
    let mut since_ms = unix_ms();
    for (index, node) in plan.at_nodes() {
        let (name, known) = (node.name.as_str(), fabric.registry.known(&node.name));
        let connected = known.as_ref().filter(|session| !session.is_lost());
        match connected.map(|session| (session, session.silent_ms())) {
            _ if sessions.contains_key(&index) || away.contains(&name) || silent.contains(&name) => {}
            Some((session, None)) => {
                sessions.insert(index, session.clone());
            }
            Some((_, Some(silent_ms))) => {
                since_ms = since_ms.min(silent_ms);
                silent.push(name);
            }
            None => {
                let lost = known.and_then(|session| session.lost_ms());
                since_ms = since_ms.min(lost.unwrap_or(fabric.started_ms));
                away.push(name);
            }
        }
    }
    if away.is_empty() && silent.is_empty() {
        return Ok(sessions);
    }
    Err(lasting(lacking(&away, &silent, sessions.len() as u64, fabric.topology.graph().is_some()), since_ms))
}

/// The refusal for a tree of which some nodes are `away` and some `silent`. `there` is the number
/// of the others. In a fabric that is a graph the job might have had other nodes.
fn lacking(away: &[&str], silent: &[&str], there: u64, is_graph: bool) -> Refusal {
    let alone = if is_graph { ", and no tree around it would do" } else { "" };
    let told = [
        (away, "is not connected to the manager", "start or restart `trib an` there"),
        (silent, "is connected to the manager but does not answer it", "let `trib an` there go on, or restart it"),
    ];
    let sentence = |(nodes, what, remedy): &(&[&str], &str, &str)| {
        let names = nodes.join(", ");
        format!("aggregation node {names} of the job's tree {what}{alone}: {remedy}")
    };
    let sentences: Vec<String> = told.iter().filter(|(nodes, ..)| !nodes.is_empty()).map(sentence).collect();
    let names = [away, silent].concat();
    let asked = there + names.len() as u64;
    Refusal { asked, available: there, ..refuse(Resource::Node, Some(&names.join(", ")), sentences.join("; ")) }
}

pub(super) fn make_limits(
    fabric: &Fabric,
    sites: &[Site],
    sessions: &Sessions,
    ask: &QuotaAsk,
    tenant: Option<&str>,
) -> Result<Limits, Refusal> {
    let topology = &fabric.topology;
    let table = fabric.tenancy.table(tenant, topology.limits());
    let ipv6 = sessions.values().any(|session| session.streams().any(|stream| stream.is_ipv6()));
    let ground = Ground { table: &table, mtu: topology.mtu(), ipv6, faults: topology.faults(), sites };
    settle(ask, &ground).map_err(|refusal| {
        let here = |session: &&Arc<Session>| refusal.holder.as_ref() == Some(&session.name);
        match sessions.values().find(here) {
            // The node has had this memory and these buffers since it registered.
            Some(session) => lasting(refusal, session.since_ms),
            None if refusal.asked > refusal.available && refusal.resource != Resource::DeadAfter => {
                since_start(refusal, fabric.started_ms)
            }
            None => refusal,
        }
    })
}
