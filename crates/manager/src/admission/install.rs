//! The nodes' part of an admission: the grants of a job, and the wait until all of them are
//! installed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use trib_control::clock::unix_ms;
use trib_messages::job::{GrantChild, GrantParent, Limits, NodeGrant};
use trib_messages::reply::{JobStatus, Refusal, Resource};
use trib_topology::{Plan, PlanNode};
use trib_wire::auth::JobKey;
use trib_wire::ids::{Epoch, NodeId};

use super::ground::Sessions;
use crate::nodes::session::{Answer, Outcome};
use crate::refuse::{lasting, refuse};

/// How long nodes may take to install a job.
#[derive(Default)]
pub(super) struct Patience {
    first: Option<Wait>,
}

#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// When it began, milliseconds since 1970-01-01 UTC.
    began_ms: u64,
    end: Instant,
    /// Whether the job needs nodes that are late, so that it cannot go around them.
    needs_late: bool,
}

impl Patience {
    /// The wait of one attempt. It begins now, but for nodes that the job needs it began with the
    /// first attempt, which has waited for them, too.
    pub(super) fn wait(&mut self, needs_late: bool) -> Wait {
        let now = Wait { began_ms: unix_ms(), end: Instant::now() + INSTALL, needs_late };
        let first = *self.first.get_or_insert(now);
        if needs_late { Wait { needs_late, ..first } } else { now }
    }
}

/// The address at which children of a logical node connect.
pub(super) fn stream_of(node: &PlanNode, sessions: &Sessions) -> SocketAddr {
    let session = &sessions[&node.place];
    // A node that does not listen at the topology's addresses is not let in.
    session.stream_at(node.address).unwrap_or(session.stream)
}

pub(super) fn grants(
    job: &JobStatus,
    key: &JobKey,
    limits: &Limits,
    plan: &Plan,
    sessions: &Sessions,
) -> Vec<NodeGrant> {
    let names = job.node_names();
    let grant = |node: &PlanNode| NodeGrant {
        job: job.id,
        epoch: FIRST_EPOCH,
        key: key.clone(),
        limits: limits.clone(),
        world_size: job.ranks,
        node: node.id,
        name: names.get(&node.id).unwrap_or(&node.name).clone(),
        lane: job.lane_of(node.id).unwrap_or(0) as u32,
        address: node.address,
        candidate: 0,
        candidates: 1,
        recovers: false,
        parent: node.parent.map(|(parent, child)| {
            let stream = stream_of(&plan.nodes[usize::from(parent.0)], sessions);
            GrantParent { node: parent, child, candidates: vec![stream] }
        }),
        children: node
            .children
            .iter()
            .map(|child| GrantChild {
                kind: child.kind,
                ranks: child.ranks.clone(),
                addresses: child.address.into_iter().collect(),
            })
            .collect(),
    };
    plan.nodes.iter().map(grant).collect()
}

/// Installs the job at its nodes and waits for their answers. Returns `false` if some are late that
/// the job may not need.
pub(super) fn install(grants: &[NodeGrant], plan: &Plan, sessions: &Sessions, wait: &Wait) -> Result<bool, Refusal> {
    let (sender, answers) = mpsc::channel();
    for grant in grants {
        let place = plan.nodes[usize::from(grant.node.0)].place;
        sessions[&place].install(grant.clone(), sender.clone());
    }
    let mut waiting: BTreeMap<NodeId, &PlanNode> = plan.nodes.iter().map(|node| (node.id, node)).collect();
    let is_late = |node: &PlanNode| sessions[&node.place].late_ms().is_some();
    while !waiting.is_empty() {
        let left = wait.end.saturating_duration_since(Instant::now());
        match answers.recv_timeout(left.min(GLANCE)) {
            Ok(answer) => judge(answer, &mut waiting)?,
            Err(_) if !wait.needs_late && waiting.values().any(|node| is_late(node)) => return Ok(false),
            Err(_) if left <= GLANCE => return Err(silent(&waiting, sessions, wait.began_ms)),
            Err(_) => {}
        }
    }
    Ok(true)
}

fn judge((node, outcome): Answer, waiting: &mut BTreeMap<NodeId, &PlanNode>) -> Result<(), Refusal> {
    let Some(PlanNode { name, .. }) = waiting.remove(&node) else { return Ok(()) };
    match outcome {
        Outcome::Installed => Ok(()),
        Outcome::Rejected(refusal) => {
            let text = format!("aggregation node {name} refuses the job: {}", refusal.text);
            let refusal = Refusal { holder: Some(name.clone()), text, ..refusal };
            Err(match refusal.since_ms {
                Some(since_ms) => lasting(refusal, since_ms),
                None => refusal,
            })
        }
        Outcome::Lost => {
            let text = format!(
                "aggregation node {name} lost its connection to the manager while the job was installed: try again"
            );
            Err(lasting(refuse(Resource::Node, Some(name), text), unix_ms()))
        }
    }
}

fn silent(waiting: &BTreeMap<NodeId, &PlanNode>, sessions: &Sessions, began_ms: u64) -> Refusal {
    let mut names: Vec<&str> = waiting.values().map(|node| node.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    let text = format!(
        "aggregation node {names} did not install the job within {} s: it is stopped or overloaded; restart it or try again",
        INSTALL.as_secs()
    );
    let late = waiting.values().filter_map(|node| sessions[&node.place].late_ms()).min();
    lasting(refuse(Resource::Node, Some(&names), text), late.map_or(began_ms, |late_ms| late_ms.min(began_ms)))
}

const INSTALL: Duration = Duration::from_secs(5);
/// How often a wait for nodes checks whether another tree would be ready sooner.
const GLANCE: Duration = Duration::from_millis(100);
/// The epoch in which a job begins.
pub(super) const FIRST_EPOCH: Epoch = Epoch(1);
