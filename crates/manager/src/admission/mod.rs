//! The way from a request to a job whose tree is installed, and to its end.
//!
//! ```text
//!   ground     the nodes of a plan as they are connected, and the limits that fit them
//!   candidates which processes may host each logical node, so that the job goes on when one dies
//!   deputies   which ranks of the job are among them
//!   install    grants, and the wait until the nodes have them
//!   ticket     what ranks are told, and what a job does without where that is too long
//!   ending     what a job had is given back, and how it ended is remembered
//!   unheld     the end of jobs that no connection holds, with their last rank
//!   presence   whether a job has ranks left
//!   secret     random bytes for the keys of jobs
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use trib_control::clock::unix_ms;
use trib_keys::JobKey;
use trib_messages::job::{JobTicket, Limits, Pass};
use trib_messages::levels::Levels;
use trib_messages::policy::Recovery;
use trib_messages::prediction::{Prediction, PredictionStatus};
use trib_messages::processes::Processes;
use trib_messages::quota::QuotaField;
use trib_messages::reply::{JobStatus, LaneStatus, Refusal, Resource};
use trib_messages::request::JobRequest;
use trib_messages::tenant::JobCharge;
use trib_topology::predict::{JobGround, predict_job};
use trib_topology::trees::Footprint;
use trib_topology::{Plan, PlanError, PlanNode, Program};
use trib_wire::ids::{JobId, NodeId};

use self::candidates::Candidates;
use self::ending::forget;
use self::ground::{Sessions, find_nodes, make_limits};
use self::install::{FIRST_EPOCH, Patience, grants, install, install_backups};
use self::ticket::{Hosting, excess, too_long};
use crate::fabric::Fabric;
use crate::names::names;
use crate::planning::lanes::Lanes;
use crate::planning::quota::{RANKS_MAX, Site, bytes, check_ranks};
use crate::planning::trees::{Claim, Planned, PlannedLane};
use crate::planning::ways::Ways;
use crate::planning::wish::Wish;
use crate::records::jobs::Belongings;
use crate::refuse::{refuse, since_start, too_much};
use crate::tenancy::{Applicant, Charge};

mod candidates;
mod deputies;
pub(crate) mod ending;
mod ground;
mod install;
mod presence;
mod secret;
mod ticket;
pub(crate) mod unheld;

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
        let known = fabric.past.refused(job, tenant, request, refusal);
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
    let (mut job, mut patience) = (job, Patience::of(request, &fabric.time));
    // What its ranks host is what a job does without first.
    let mut hosting = Hosting::ALL;
    loop {
        match attempt(fabric, job, request, applicant, (&mut patience, hosting))? {
            Attempt::Admitted(ticket) => return Ok(*ticket),
            // Every attempt goes around one late node more, until the job cannot do without those
            // that are late.
            Attempt::Late => {}
            Attempt::Unsettled(less) => hosting = less,
        }
        // Nodes may still have to end the job under its old number.
        job = fabric.jobs.number();
    }
}

/// What has become of one attempt.
enum Attempt {
    Admitted(Box<JobTicket>),
    /// Nodes are late with their answer that were not late when the job was planned, because
    /// another tree may do without them.
    Late,
    /// Some node in a rank's process would have no other process to go to, or the ticket is too
    /// long. The job is to be planned again with no more than this in its ranks.
    Unsettled(Hosting),
}

/// Plans and installs the job once, with so much in its ranks at most.
fn attempt(
    fabric: &Fabric,
    job: JobId,
    request: &JobRequest,
    applicant: &Applicant<'_>,
    (patience, hosting): (&mut Patience, Hosting),
) -> Result<Attempt, Refusal> {
    let Laid { lanes, planned, stripe_threshold, rank_memory, further, claims, around } =
        make_lanes(fabric, request, hosting)?;
    let Lanes { plan, tickets: lanes, status: told } = lanes;
    let sessions = find_nodes(fabric, &plan)?;
    let (prediction, predicted) = predict(fabric, request, &planned, stripe_threshold, &sessions).unzip();
    let mut candidates = Candidates::choose((fabric, &plan), sessions, request, further);
    let limits = loop {
        let sites: Vec<Site> = candidates.sites().into_iter().chain(candidates.sites_in_ranks()).collect();
        let settled = make_limits(fabric, &sites, candidates.sessions(), &request.ask, applicant.tenant);
        match settled {
            // A job with fewer backups may get what it asks for.
            Err(refusal) if candidates.without_named(refusal.holder.as_deref()) => {}
            settled => break settled?,
        }
    };
    // Nobody asks for it, so that its maximum is all there is to it.
    let deputy_memory = fabric.topology.limits()[QuotaField::DeputyMemory].maximum;
    candidates.bound_deputies(&limits, deputy_memory);
    let is_settled = |candidates: &Candidates<'_>| candidates.recovers() || plan.at_nodes().count() == plan.nodes.len();
    if !is_settled(&candidates) {
        return Ok(Attempt::Unsettled(hosting.without_levels()));
    }
    let in_line = Duration::from_millis(request.wait_ms.unwrap_or(0).into());
    let primaries = candidates.primary_sites();
    let (mut taken, waited) = fabric.tenancy.enter(
        applicant,
        &charge(applicant, &plan, &limits, &primaries),
        &limits,
        &names_of(&primaries),
        in_line,
    )?;
    if waited {
        // Nodes may have been away and come back meanwhile.
        candidates.renew(find_nodes(fabric, &plan)?);
    }
    let random = |cause| refuse(Resource::Request, None, format!("the manager cannot make a job key: {cause}"));
    let (key, pass) = (JobKey(secret::random().map_err(random)?), Pass(secret::random().map_err(random)?));
    let footprint = claims.iter().filter_map(|claim| claim.footprint(&fabric.topology)).reduce(Footprint::and);
    if !around.is_empty() {
        let away = around.join(",");
        tracing::warn!(job = job.0, away, "the job's tree goes around nodes that are away or silent");
    }
    let pids = request.pids.iter().copied().take(request.hosts.len()).collect();
    let processes = Processes::new(&request.hosts, pids);
    // If primaries are late that were chosen nevertheless, there is no other tree.
    let is_late = |(index, _): (usize, &PlanNode)| candidates.sessions()[&index].late_ms().is_some();
    let needs_late = fabric.topology.graph().is_none() || plan.at_nodes().any(is_late);
    let (mut job, mut refusals) = (job, 0);
    let ticket = loop {
        let charge = reserve(fabric, applicant, &plan, &limits, &mut candidates, &taken);
        if !is_settled(&candidates) {
            return Ok(Attempt::Unsettled(hosting.without_levels()));
        }
        let limits = match candidates.recovers() {
            true => limits.clone(),
            false if limits.recovery == Recovery::Strict => {
                return Err(nobody_stands_by());
            }
            false => Limits { recovery: Recovery::Notify, ..limits.clone() },
        };
        let status = JobStatus {
            around: around.clone(),
            homes: candidates.homes(),
            backups: candidates.positions(),
            deputies: candidates.deputies(),
            in_ranks: in_ranks(&plan, &told),
            lanes: told.clone(),
            prediction: predicted.clone(),
            ..status_of(job, request, &limits, names_of(&candidates.sites()), charge)
        };
        let nodes = status.nodes.clone();
        let (grants, deputies) = grants(&status, &key, &limits, &plan, &candidates);
        let ticket = JobTicket {
            job,
            epoch: FIRST_EPOCH,
            key: key.clone(),
            nodes: ticket::nodes(&grants, &deputies, &plan, &candidates),
            lanes: lanes.clone(),
            stripe_threshold,
            rank_memory,
            prediction: prediction.clone(),
            processes: processes.clone(),
            recovers: candidates.recovers(),
            deputies,
            pass: pass.clone(),
            limits,
        };
        if let Some(bytes) = excess(&ticket) {
            let less = hosting.less(ticket.limits.recovery == Recovery::Strict).ok_or_else(|| too_long(bytes))?;
            tracing::warn!(job = job.0, bytes, ?less, "the job's ticket is too long: its ranks get to host less");
            return Ok(Attempt::Unsettled(less));
        }
        let ways = Ways::of(&request.hosts, &planned, &fabric.topology);
        let belongings = Belongings { footprint: footprint.as_ref(), pass: &pass };
        fabric.jobs.enter(status, &belongings, processes.clone(), ways)?;
        fabric.tenancy.hold(job, taken, &nodes);
        let unfit = install_backups(&grants, candidates.sessions(), &fabric.time);
        let installed = match unfit.is_empty() {
            true => install(&grants, &plan, candidates.sessions(), (&patience.wait(needs_late), &fabric.time)),
            false => Ok(false),
        };
        for session in candidates.sessions().values() {
            session.forget(job);
        }
        if matches!(installed, Ok(true)) {
            break ticket;
        }
        forget(fabric, job, None);
        // No rank has connected there, and a node that did not install the job will not say that it
        // left.
        let Some(charge) = fabric.tenancy.release(job).filter(|_| !unfit.is_empty()) else {
            return installed.map(|_| Attempt::Late);
        };
        taken = charge;
        refusals += 1;
        match refusals < REFUSALS {
            true => drop(candidates.without(&unfit)),
            false => candidates.without_any(),
        }
        // Nodes may still have to end the job under its old number.
        job = fabric.jobs.number();
    };
    tracing::info!(job = job.0, name = request.name, user = request.user, ranks = request.hosts.len(), "job admitted");
    fabric.trees.hold(job, claims);
    Ok(Attempt::Admitted(Box::new(ticket)))
}

/// A job that wants all its ranks to agree needs a process that takes over from each node.
fn nobody_stands_by() -> Refusal {
    let text = "the job asks for recovery = strict, and some node of its trees would have neither a backup nor a deputy: \
                ask for `deputies` or `backups`, let the ranks reach the manager (TRIB_MANAGER), or ask for recovery = retry";
    refuse(Resource::Recovery, None, text)
}

/// Charges the job for its primaries and its first backups, and gives up backups for which there is
/// no room.
fn reserve(
    fabric: &Fabric,
    applicant: &Applicant<'_>,
    plan: &Plan,
    limits: &Limits,
    candidates: &mut Candidates<'_>,
    taken: &Charge,
) -> JobCharge {
    let table = fabric.tenancy.table(applicant.tenant, fabric.topology.limits());
    loop {
        let sites = candidates.sites();
        let charge = charge(applicant, plan, limits, &sites);
        let unfit = candidates.unfit(limits, &table);
        let changed = match unfit {
            Some(name) => Err(Some(name)),
            None => fabric.tenancy.change(taken, &charge, limits, &names_of(&sites)),
        };
        match changed {
            Err(name) if candidates.has_backups() => {
                if !candidates.without_named(name.as_deref()) {
                    candidates.without_any();
                }
            }
            // Primaries alone are what was taken.
            _ => return charge,
        }
    }
}

/// How often backups may refuse a job before it does without any.
const REFUSALS: usize = 4;

/// What a job is charged for that has this at its nodes.
fn charge(applicant: &Applicant<'_>, plan: &Plan, limits: &Limits, sites: &[Site]) -> JobCharge {
    let is_root = |(_, node): &(usize, &PlanNode)| node.parent.is_none();
    JobCharge {
        tenant: applicant.tenant.map(String::from),
        roots: plan.at_nodes().filter(is_root).map(|(_, node)| node.name.clone()).collect(),
        lanes: sites.iter().map(|site| (site.children.len() + site.reserved.len()) as u64).collect(),
        memory_bytes: sites.iter().map(|site| bytes(limits, site)).collect(),
        datagram_bytes: sites.iter().map(|site| site.datagram_bytes(limits)).collect(),
    }
}

fn names_of(sites: &[Site]) -> Vec<String> {
    sites.iter().map(|site| site.name.clone()).collect()
}

/// What people call the nodes that ranks host. A host has several in one lane if it has more ranks
/// than a node has children.
fn in_ranks(plan: &Plan, lanes: &[LaneStatus]) -> Vec<(NodeId, String)> {
    let mut known: BTreeMap<(usize, &str), u32> = BTreeMap::new();
    let of_lane = |id: NodeId| lanes.iter().take_while(|lane| lane.first <= id).count();
    let nodes = plan.nodes.iter().filter(|node| node.home.rank().is_some());
    let named = nodes.map(|node| {
        let count = known.entry((of_lane(node.id), &node.name)).or_default();
        *count += 1;
        (node.id, if *count == 1 { node.name.clone() } else { format!("{}#{count}", node.name) })
    });
    named.collect()
}

/// The lanes of a job, and what they take of the fabric.
struct Laid {
    lanes: Lanes,
    planned: Vec<PlannedLane>,
    stripe_threshold: u64,
    rank_memory: u64,
    /// How many backups and deputies each logical node is to have.
    further: (usize, usize),
    claims: Vec<Claim>,
    around: Vec<String>,
}

fn make_lanes(fabric: &Fabric, request: &JobRequest, hosting: Hosting) -> Result<Laid, Refusal> {
    let ranks = request.hosts.len();
    check_ranks(ranks as u64)?;
    let as_read = |refusal| since_start(refusal, fabric.started_ms);
    let wish = Wish::of(&request.ask, &fabric.topology, ranks).map_err(as_read)?;
    let here = fabric.registry.all_answering();
    let able: Vec<bool> = request.deputies.iter().map(|listens| deputies::is_able(*listens)).collect();
    // A rank that has told nothing listens nowhere.
    let levels = if able.len() == ranks { hosting.levels.min(wish.levels) } else { Levels::None };
    let program = Program { hosts: &request.hosts, domains: &request.domains, levels, able: &able };
    let planned = fabric.trees.plan(&fabric.topology, &program, &here, &wish);
    let Planned { lanes: planned, claims, around } = planned.map_err(|error| match &error {
        PlanError::UnknownHost { host, .. } => as_read(refuse(Resource::Host, Some(host), error.to_string())),
        PlanError::NoTree(_) | PlanError::TooDeep(_) => as_read(refuse(Resource::Node, None, error.to_string())),
        PlanError::NoRanks | PlanError::TooManyRanks(_) | PlanError::TooManyNodes(_) => {
            too_much(Resource::Ranks, ranks as u64, RANKS_MAX as u64, error.to_string())
        }
    })?;
    let lanes = Lanes::over(&planned, &fabric.topology, &wish).map_err(as_read)?;
    let further = (wish.backups, wish.deputies.min(hosting.deputies));
    let Wish { stripe_threshold, rank_memory, .. } = wish;
    Ok(Laid { lanes, planned, stripe_threshold, rank_memory, further, claims, around })
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

fn status_of(id: JobId, request: &JobRequest, limits: &Limits, nodes: Vec<String>, charge: JobCharge) -> JobStatus {
    JobStatus {
        id,
        name: request.name.clone(),
        user: request.user.clone(),
        ranks: request.hosts.len() as u32,
        nodes,
        homes: Vec::new(),
        backups: Vec::new(),
        deputies: Vec::new(),
        in_ranks: Vec::new(),
        since: unix_ms() / 1000,
        hosts: names(&request.hosts),
        root: charge.roots.first().cloned().unwrap_or_default(),
        around: Vec::new(),
        fallback: None,
        fault: None,
        limits: Some(limits.clone()),
        adopted: false,
        lost_ms: None,
        charge: Some(charge),
        lanes: Vec::new(),
        prediction: None,
    }
}
