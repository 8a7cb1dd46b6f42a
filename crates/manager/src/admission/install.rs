//! The nodes' part of an admission: the grants of a job, and the wait until all of them are
//! installed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use trib_control::clock::unix_ms;
use trib_keys::JobKey;
use trib_messages::job::{DeputyGrant, GrantChild, GrantParent, Limits, NodeGrant, ParentCandidate};
use trib_messages::reply::{JobStatus, Refusal, Resource};
use trib_messages::request::JobRequest;
use trib_topology::{Plan, PlanChild, PlanNode};
use trib_wire::ids::{ChildIndex, ChildKind, Epoch, NodeId};

use super::candidates::Candidates;
use super::ground::Sessions;
use crate::nodes::session::{Answer, Outcome};
use crate::refuse::{lasting, refuse};
use crate::time::Time;

/// How long nodes may take to install a job.
pub(super) struct Patience {
    time: Time,
    span: Duration,
    first: Option<Wait>,
}

#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// When it began, milliseconds since 1970-01-01 UTC.
    began_ms: u64,
    span: Duration,
    end: Instant,
    /// Whether the job needs nodes that are late, so that it cannot go around them.
    needs_late: bool,
}

impl Patience {
    /// That of a job: a user who gives its ranks more time on a slow machine gives it to the nodes,
    /// too.
    pub(super) fn of(request: &JobRequest, time: &Time) -> Patience {
        let whole = Duration::from_millis(request.patience_ms.unwrap_or(0).into());
        Patience { time: time.clone(), span: (whole / 6).clamp(INSTALL, INSTALL_MAX), first: None }
    }

    /// The wait of one attempt. It begins now, but for nodes that the job needs it began with the
    /// first attempt, which has waited for them, too.
    pub(super) fn wait(&mut self, needs_late: bool) -> Wait {
        let (began_ms, end) = (self.time.unix_ms(), self.time.now() + self.span);
        let now = Wait { began_ms, span: self.span, end, needs_late };
        let first = *self.first.get_or_insert(now);
        if needs_late { Wait { needs_late, ..first } } else { now }
    }
}

/// A grant, and the index of the node that it goes to.
pub(super) type Placed = (usize, NodeGrant);

/// The grants of a job: one for each candidate of each logical node, those of ranks apart. Each has
/// the keys of that candidate's own edges, and the job's key is in none.
pub(super) fn grants(
    job: &JobStatus,
    key: &JobKey,
    limits: &Limits,
    plan: &Plan,
    candidates: &Candidates<'_>,
) -> (Vec<Placed>, Vec<DeputyGrant>) {
    let names = job.node_names();
    let parent = |(parent, child): (NodeId, ChildIndex), candidate: u16| {
        let streams = candidates.streams(&plan.nodes[usize::from(parent.0)]);
        let above = |(above, stream)| {
            let key = key.node(job.id, parent, above).edge(child, candidate);
            ParentCandidate { stream, key }
        };
        let via = plan.nodes[usize::from(parent.0)].children[usize::from(child.0)].via;
        GrantParent { node: parent, child, candidates: (0..).zip(streams).map(above).collect(), via }
    };
    let child = |node: &PlanNode, at: usize| {
        let PlanChild { kind, ranks, via, .. } = node.children[at].clone();
        let (count, in_rank) = match kind {
            ChildKind::Rank(_) => (1, true),
            ChildKind::Node(below) => {
                let below = &plan.nodes[usize::from(below.0)];
                (candidates.streams(below).len() as u16, below.home.rank().is_some())
            }
        };
        GrantChild { kind, candidates: count, in_rank, ranks, addresses: candidates.addresses(node, at), via }
    };
    let grant = |node: &PlanNode| NodeGrant {
        job: job.id,
        epoch: FIRST_EPOCH,
        mark: key.mark(job.id),
        key: key.node(job.id, node.id, 0),
        root: node.parent.is_none().then(|| key.root(job.id, node.id)),
        limits: limits.clone(),
        world_size: job.ranks,
        node: node.id,
        name: names.get(&node.id).unwrap_or(&node.name).clone(),
        lane: job.lane_of(node.id).unwrap_or(0) as u32,
        address: None,
        candidate: 0,
        candidates: candidates.streams(node),
        in_ranks: candidates.in_ranks(node),
        recovers: candidates.recovers(),
        parent: node.parent.map(|above| parent(above, 0)),
        children: (0..node.children.len()).map(|at| child(node, at)).collect(),
    };
    let (mut grants, mut deputies) = (Vec::with_capacity(plan.nodes.len()), Vec::new());
    for node in &plan.nodes {
        let common = grant(node);
        let own = |candidate: u16| NodeGrant {
            candidate,
            key: key.node(job.id, node.id, candidate),
            parent: node.parent.map(|above| parent(above, candidate)),
            ..common.clone()
        };
        for (candidate, index) in (0..).zip(candidates.of(node)) {
            let address = candidates.reached_at(index, node.port);
            grants.push((index, NodeGrant { address, ..own(candidate) }));
        }
        let nodes = candidates.of(node).count() as u16;
        for (candidate, deputy) in (nodes..).zip(candidates.deputies_of(node.id)) {
            deputies.push(DeputyGrant { rank: deputy.rank, grant: own(candidate) });
        }
    }
    (grants, deputies)
}

/// Installs the job at the backups of its nodes. Returns those that refused it or did not answer.
pub(super) fn install_backups(grants: &[Placed], sessions: &Sessions, time: &Time) -> BTreeSet<usize> {
    let (sender, answers) = mpsc::channel();
    let mut waiting = BTreeMap::new();
    for (index, grant) in grants.iter().filter(|(_, grant)| grant.candidate > 0) {
        waiting.insert((grant.node, grant.candidate), *index);
        sessions[index].install(grant.clone(), sender.clone());
    }
    let (mut unfit, end) = (BTreeSet::new(), time.now() + INSTALL_BACKUPS);
    while !waiting.is_empty() && time.now() < end {
        match time.receive(&answers, GLANCE) {
            Ok((node, candidate, outcome)) => {
                let Some(index) = waiting.remove(&(node, candidate)) else { continue };
                match outcome {
                    Outcome::Installed => continue,
                    Outcome::Rejected(refusal) => {
                        tracing::warn!(node = sessions[&index].name, %refusal, "a node is no backup of this job")
                    }
                    Outcome::Lost => {}
                }
                unfit.insert(index);
            }
            // No job waits for a node that it can do without.
            Err(_) if waiting.values().any(|index| sessions[index].late_ms().is_some()) => break,
            Err(_) => {}
        }
    }
    unfit.extend(waiting.into_values());
    unfit
}

/// Installs the job at its primaries and waits for their answers. Returns `false` if some are late
/// that the job may not need.
pub(super) fn install(
    grants: &[Placed],
    plan: &Plan,
    sessions: &Sessions,
    (wait, time): (&Wait, &Time),
) -> Result<bool, Refusal> {
    let (sender, answers) = mpsc::channel();
    for (index, grant) in grants.iter().filter(|(_, grant)| grant.candidate == 0) {
        sessions[index].install(grant.clone(), sender.clone());
    }
    let mut waiting: Waiting<'_> = plan.at_nodes().map(|(index, node)| (node.id, (index, node))).collect();
    let is_late = |(index, _): &(usize, &PlanNode)| sessions[index].late_ms().is_some();
    while !waiting.is_empty() {
        let left = time.left(wait.end);
        match time.receive(&answers, left.min(GLANCE)) {
            Ok(answer) => judge(answer, &mut waiting)?,
            Err(_) if !wait.needs_late && waiting.values().any(is_late) => return Ok(false),
            Err(_) if left <= GLANCE => return Err(silent(&waiting, sessions, wait)),
            Err(_) => {}
        }
    }
    Ok(true)
}

/// The primaries that have not answered, each with its index in the topology.
type Waiting<'a> = BTreeMap<NodeId, (usize, &'a PlanNode)>;

fn judge((node, _, outcome): Answer, waiting: &mut Waiting<'_>) -> Result<(), Refusal> {
    let Some((_, PlanNode { name, .. })) = waiting.remove(&node) else { return Ok(()) };
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

fn silent(waiting: &Waiting<'_>, sessions: &Sessions, wait: &Wait) -> Refusal {
    let mut names: Vec<&str> = waiting.values().map(|(_, node)| node.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    let text = format!(
        "aggregation node {names} did not install the job within {} s: it is stopped or overloaded; restart it or try again",
        wait.span.as_secs()
    );
    let late = waiting.values().filter_map(|(index, _)| sessions[index].late_ms()).min();
    let since_ms = late.map_or(wait.began_ms, |late_ms| late_ms.min(wait.began_ms));
    lasting(refuse(Resource::Node, Some(&names), text), since_ms)
}

/// The least and the longest time that nodes have to install a job.
const INSTALL: Duration = Duration::from_secs(5);
const INSTALL_MAX: Duration = Duration::from_secs(60);
/// The same for backups, without which a job is admitted, too.
const INSTALL_BACKUPS: Duration = Duration::from_secs(2);
/// How often a wait for nodes checks whether another tree would be ready sooner.
const GLANCE: Duration = Duration::from_millis(100);
/// The epoch in which a job begins.
pub(super) const FIRST_EPOCH: Epoch = Epoch(1);

#[cfg(test)]
mod tests {
    use trib_messages::request::QuotaAsk;

    use super::*;

    #[test]
    fn nodes_have_a_share_of_the_ranks_patience() {
        let patience = |patience_ms| {
            let (name, user) = (String::new(), String::new());
            let (hosts, pids, deputies, domains) = Default::default();
            let (ask, wait_ms) = (QuotaAsk::default(), None);
            let request = JobRequest { hosts, pids, deputies, domains, ask, name, user, wait_ms, patience_ms };
            Patience::of(&request, &Time::default()).span.as_secs()
        };
        let asked = [None, Some(0), Some(30_000), Some(120_000), Some(u32::MAX)];
        assert_eq!(asked.map(patience), [5, 5, 5, 20, 60]);
    }

    #[test]
    fn nodes_that_the_job_needs_get_no_second_wait() {
        let mut patience = Patience { time: Time::default(), span: Duration::from_secs(20), first: None };
        let first = patience.wait(false);
        assert_eq!(patience.wait(true).end, first.end);
        assert!(patience.wait(false).end > first.end);
    }
}
