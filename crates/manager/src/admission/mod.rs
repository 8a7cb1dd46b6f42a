//! The way from a request to a job whose tree is installed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use trib_control::clock::unix_ms;
use trib_messages::job::{GrantChild, GrantParent, JobTicket, Limits, NodeGrant, TicketNode};
use trib_messages::jobs::JobEnd;
use trib_messages::prediction::{Prediction, PredictionStatus};
use trib_messages::processes::Processes;
use trib_messages::reply::{JobStatus, Refusal, Resource};
use trib_messages::request::{JobRequest, QuotaAsk};
use trib_messages::tenant::JobCharge;
use trib_topology::predict::{JobGround, predict_job};
use trib_topology::trees::Footprint;
use trib_topology::{Plan, PlanError, PlanNode};
use trib_wire::auth::JobKey;
use trib_wire::ids::{Epoch, JobId, NodeId};

use crate::fabric::Fabric;
use crate::names::names;
use crate::nodes::registry::{Answer, Outcome, Session};
use crate::planning::lanes::{Lanes, Wish};
use crate::planning::quota::{Ground, Site, bytes, settle};
use crate::planning::trees::{Claim, Planned, PlannedLane};
use crate::planning::ways::Ways;
use crate::refuse::{lasting, refuse, since_start, too_much};
use crate::tenancy::Applicant;

pub(crate) mod adoption;
mod secret;

/// The largest number of ranks of a job: its ticket must fit into one control message.
pub(crate) const RANKS_MAX: usize = 1 << 18;

/// The aggregation nodes of one job, by their index in the topology.
type Sessions = BTreeMap<usize, Arc<Session>>;

/// Plans the job, takes its quota, for which it may have to wait, and installs it at every node of
/// its tree. What is refused is remembered. `tenant` is that of the certificate. `is_gone` tells
/// whether the asker no longer waits for the job.
pub(crate) fn admit(
    fabric: &Fabric,
    request: &JobRequest,
    tenant: Option<&str>,
    is_gone: &dyn Fn() -> bool,
) -> Result<JobTicket, Refusal> {
    let job = fabric.jobs.number();
    let ranks = request.hosts.len() as u32;
    let applicant = Applicant { name: &request.name, user: &request.user, tenant, ranks, is_gone };
    let decision = try_admit(fabric, job, request, &applicant);
    if let Err(refusal) = &decision {
        let known = fabric.past.refused(job, request, refusal);
        tracing::warn!(job = known.0, name = request.name, user = request.user, %refusal, "job refused");
    }
    decision
}

fn try_admit(
    fabric: &Fabric,
    job: JobId,
    request: &JobRequest,
    applicant: &Applicant<'_>,
) -> Result<JobTicket, Refusal> {
    fabric.tenancy.check_hosts(applicant.tenant, &request.hosts)?;
    let (mut job, mut patience) = (job, Patience::default());
    // Every attempt goes around one late node more, until the job cannot do without those that are
    // late.
    loop {
        if let Some(ticket) = attempt(fabric, job, request, applicant, &mut patience)? {
            return Ok(ticket);
        }
        // Nodes may still have to end the job under its old number.
        job = fabric.jobs.number();
    }
}

/// How long nodes may take to install a job.
#[derive(Default)]
struct Patience {
    first: Option<Wait>,
}

#[derive(Clone, Copy)]
struct Wait {
    /// When it began, milliseconds since 1970-01-01 UTC.
    began_ms: u64,
    end: Instant,
    /// Whether the job needs nodes that are late, so that it cannot go around them.
    needs_late: bool,
}

impl Patience {
    /// The wait of one attempt. It begins now, but for nodes that the job needs it began with the
    /// first attempt, which has waited for them, too.
    fn wait(&mut self, needs_late: bool) -> Wait {
        let now = Wait { began_ms: unix_ms(), end: Instant::now() + INSTALL, needs_late };
        let first = *self.first.get_or_insert(now);
        if needs_late { Wait { needs_late, ..first } } else { now }
    }
}

/// Plans and installs the job once. Returns `None` if nodes are late with their answer that were
/// not late when the job was planned, because another tree may do without them.
fn attempt(
    fabric: &Fabric,
    job: JobId,
    request: &JobRequest,
    applicant: &Applicant<'_>,
    patience: &mut Patience,
) -> Result<Option<JobTicket>, Refusal> {
    let Laid { lanes, planned, stripe_threshold, claims, around } = make_lanes(fabric, request)?;
    let Lanes { plan, tickets: lanes, status: told } = lanes;
    let mut sessions = find_nodes(fabric, &plan)?;
    let sites = sites(&plan, &sessions);
    let (prediction, predicted) = predict(fabric, request, &planned, stripe_threshold, &sessions).unzip();
    let limits = make_limits(fabric, &sites, &sessions, &request.ask, applicant.tenant)?;
    let is_root = |node: &&PlanNode| node.parent.is_none();
    let charge = JobCharge {
        tenant: applicant.tenant.map(String::from),
        roots: plan.nodes.iter().filter(is_root).map(|node| node.name.clone()).collect(),
        lanes: sites.iter().map(|site| site.children.len() as u64).collect(),
        memory_bytes: sites.iter().map(|site| bytes(&limits, site)).collect(),
    };
    let nodes: Vec<String> = sites.into_iter().map(|site| site.name).collect();
    let in_line = Duration::from_millis(request.wait_ms.unwrap_or(0).into());
    let (taken, waited) = fabric.tenancy.enter(applicant, &charge, &limits, &nodes, in_line)?;
    if waited {
        // Nodes may have been away and come back meanwhile.
        sessions = find_nodes(fabric, &plan)?;
    }
    let random = |cause| refuse(Resource::Request, None, format!("the manager cannot make a job key: {cause}"));
    let key = JobKey(secret::random().map_err(random)?);
    let footprint = claims.iter().filter_map(|claim| claim.footprint(&fabric.topology)).reduce(Footprint::and);
    let at = |node: &PlanNode| sessions.keys().position(|place| *place == node.place).unwrap_or(0) as u32;
    let status = JobStatus {
        around,
        places: plan.nodes.iter().map(at).collect(),
        lanes: told,
        prediction: predicted,
        ..status_of(job, request, &limits, nodes.clone(), charge)
    };
    if !status.around.is_empty() {
        tracing::warn!(
            job = job.0,
            away = status.around.join(","),
            "the job's tree goes around nodes that are away or silent"
        );
    }
    let pids = request.pids.iter().copied().take(request.hosts.len()).collect();
    let processes = Processes::new(&request.hosts, pids);
    let grants = grants(&status, &key, &limits, &plan, &sessions);
    let ways = Ways::of(&request.hosts, &planned, &fabric.topology);
    fabric.jobs.enter(status, footprint.as_ref(), processes.clone(), ways)?;
    fabric.trees.hold(job, claims);
    fabric.tenancy.hold(job, taken, &nodes);
    // If nodes are late that were chosen nevertheless, there is no other tree.
    let needs_late = fabric.topology.graph().is_none() || sessions.values().any(|session| session.late_ms().is_some());
    let installed = install(&grants, &plan, &sessions, &patience.wait(needs_late));
    for session in sessions.values() {
        session.forget(job);
    }
    if !matches!(installed, Ok(true)) {
        forget(fabric, job, None);
        // No rank has connected there, and a node that did not install the job will not say that it
        // left.
        fabric.tenancy.release(job);
        return installed.map(|_| None);
    }
    tracing::info!(job = job.0, name = request.name, user = request.user, ranks = request.hosts.len(), "job admitted");
    let node = |(node, grant): (&PlanNode, NodeGrant)| {
        let stream = stream_of(node, &sessions);
        TicketNode { node: node.id, name: grant.name, stream }
    };
    let nodes = plan.nodes.iter().zip(grants).map(node).collect();
    Ok(Some(JobTicket { job, epoch: FIRST_EPOCH, key, limits, nodes, lanes, stripe_threshold, prediction, processes }))
}

/// Ends a job: its number is free again, its nodes drain, and how it ended is remembered.
pub(crate) fn end(fabric: &Fabric, job: JobId, how: JobEnd) {
    let word = how.word();
    if let Some(status) = forget(fabric, job, Some(how)) {
        tracing::info!(job = job.0, name = status.name, how = word, "job ended");
    }
}

/// Removes a job here and at its nodes, and returns its last status. A job that has run is
/// remembered with `how` it ended.
fn forget(fabric: &Fabric, job: JobId, how: Option<JobEnd>) -> Option<JobStatus> {
    let remember = |status: &JobStatus| how.map(|how| fabric.past.ended(status.clone(), how));
    let status = fabric.jobs.leave(job, remember)?;
    fabric.trees.release(job);
    fabric.tenancy.end(job);
    fabric.registry.end_job(job, &status.nodes);
    Some(status)
}

/// Ends jobs of an earlier manager that are at no node any more.
pub(crate) fn end_adopted(fabric: &Fabric, jobs: Vec<JobId>) {
    for job in jobs {
        end(fabric, job, JobEnd::Left);
        fabric.tenancy.release(job);
    }
}

/// The lanes of a job, and what they take of the fabric.
struct Laid {
    lanes: Lanes,
    planned: Vec<PlannedLane>,
    stripe_threshold: u64,
    claims: Vec<Claim>,
    around: Vec<String>,
}

fn make_lanes(fabric: &Fabric, request: &JobRequest) -> Result<Laid, Refusal> {
    let ranks = request.hosts.len();
    if ranks > RANKS_MAX {
        let text = format!("the program has {ranks} ranks, at most {RANKS_MAX} are possible: use fewer");
        return Err(too_much(Resource::Ranks, ranks as u64, RANKS_MAX as u64, text));
    }
    let as_read = |refusal| since_start(refusal, fabric.started_ms);
    let wish = Wish::of(&request.ask, &fabric.topology, ranks).map_err(as_read)?;
    let here = fabric.registry.all_answering();
    let planned = fabric.trees.plan(&fabric.topology, &request.hosts, &here, &wish);
    let Planned { lanes: planned, claims, around } = planned.map_err(|error| match &error {
        PlanError::UnknownHost { host, .. } => as_read(refuse(Resource::Host, Some(host), error.to_string())),
        PlanError::NoTree(_) | PlanError::TooDeep(_) => as_read(refuse(Resource::Node, None, error.to_string())),
        PlanError::NoRanks | PlanError::TooManyRanks(_) | PlanError::TooManyNodes(_) => {
            too_much(Resource::Ranks, ranks as u64, RANKS_MAX as u64, error.to_string())
        }
    })?;
    let lanes = Lanes::over(&planned, &fabric.topology, &wish).map_err(as_read)?;
    Ok(Laid { lanes, planned, stripe_threshold: wish.stripe_threshold, claims, around })
}

/// Predicts for which operations the job's trees are as fast as its hosts alone.
fn predict(
    fabric: &Fabric,
    request: &JobRequest,
    planned: &[PlannedLane],
    stripe_threshold: u64,
    sessions: &Sessions,
) -> Option<(Prediction, PredictionStatus)> {
    let lanes: Vec<(usize, &Plan)> = planned.iter().map(|lane| (lane.tree, &lane.plan)).collect();
    let workers = sessions.values().map(|session| session.workers).min().unwrap_or(1);
    let ground =
        JobGround { topology: &fabric.topology, hosts: &request.hosts, lanes: &lanes, stripe_threshold, workers };
    predict_job(&ground, &fabric.constants)
}

fn find_nodes(fabric: &Fabric, plan: &Plan) -> Result<Sessions, Refusal> {
    let mut sessions = Sessions::new();
    let (mut away, mut silent): (Vec<&str>, Vec<&str>) = Default::default();
    let mut since_ms = unix_ms();
    for node in &plan.nodes {
        let (name, known) = (node.name.as_str(), fabric.registry.known(&node.name));
        let connected = known.as_ref().filter(|session| !session.is_lost());
        match connected.map(|session| (session, session.silent_ms())) {
            _ if sessions.contains_key(&node.place) || away.contains(&name) || silent.contains(&name) => {}
            Some((session, None)) => {
                sessions.insert(node.place, session.clone());
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

/// What the job has at each of its aggregation nodes.
fn sites(plan: &Plan, sessions: &Sessions) -> Vec<Site> {
    let site = |(place, session): (&usize, &Arc<Session>)| {
        let here = plan.nodes.iter().filter(|node| node.place == *place);
        let children = here.map(|node| node.children.len() as u64).collect();
        Site { name: session.name.clone(), children, receive_bytes: session.datagram_buffer_bytes }
    };
    sessions.iter().map(site).collect()
}

fn make_limits(
    fabric: &Fabric,
    sites: &[Site],
    sessions: &Sessions,
    ask: &QuotaAsk,
    tenant: Option<&str>,
) -> Result<Limits, Refusal> {
    let topology = &fabric.topology;
    let table = fabric.tenancy.table(tenant, topology.limits());
    let ipv6 = sessions.values().any(|session| session.streams().any(|stream| stream.is_ipv6()));
    let ground = Ground { table: &table, mtu: topology.mtu(), ipv6, sites };
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

fn status_of(id: JobId, request: &JobRequest, limits: &Limits, nodes: Vec<String>, charge: JobCharge) -> JobStatus {
    JobStatus {
        id,
        name: request.name.clone(),
        user: request.user.clone(),
        ranks: request.hosts.len() as u32,
        nodes,
        places: Vec::new(),
        since: unix_ms() / 1000,
        hosts: names(&request.hosts),
        root: charge.roots.first().cloned().unwrap_or_default(),
        around: Vec::new(),
        fallback: None,
        fault: None,
        limits: Some(limits.clone()),
        adopted: false,
        charge: Some(charge),
        lanes: Vec::new(),
        prediction: None,
    }
}

/// The address at which children of a logical node connect.
fn stream_of(node: &PlanNode, sessions: &Sessions) -> SocketAddr {
    let session = &sessions[&node.place];
    // A node that does not listen at the topology's addresses is not let in.
    session.stream_at(node.address).unwrap_or(session.stream)
}

fn grants(job: &JobStatus, key: &JobKey, limits: &Limits, plan: &Plan, sessions: &Sessions) -> Vec<NodeGrant> {
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
        parent: node.parent.map(|(parent, child)| {
            let stream = stream_of(&plan.nodes[usize::from(parent.0)], sessions);
            GrantParent { node: parent, child, stream }
        }),
        children: node
            .children
            .iter()
            .map(|child| GrantChild { kind: child.kind, ranks: child.ranks.clone(), address: child.address })
            .collect(),
    };
    plan.nodes.iter().map(grant).collect()
}

/// Installs the job at its nodes and waits for their answers. Returns `false` if some are late that
/// the job may not need.
fn install(grants: &[NodeGrant], plan: &Plan, sessions: &Sessions, wait: &Wait) -> Result<bool, Refusal> {
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
const FIRST_EPOCH: Epoch = Epoch(1);
