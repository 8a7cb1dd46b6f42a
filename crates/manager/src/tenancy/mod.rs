//! Which tenant may use how much: tenants with their limits, what is kept for them, and the line in
//! which jobs wait for their turn.
//!
//! ```text
//!   file       the tenants file, with line, cause and remedy of every mistake
//!     policy   what it says, checked: capacities, limits, reservations, priorities, hosts
//!   amounts    what is counted, and shares of it
//!   book       what each tenant has in each scope, and whether a claim fits (no clock, no lock)
//!     line     the book, shared by connections: a claim is taken, waits its turn, or is refused
//!     refusal  a shortage in words
//!   holdings   the claims of jobs that run, or have ended and are still at a node
//!   report     tenants and the line, for the status
//!   sight      whose jobs a program is told of
//! ```
//! What a job takes is counted at every aggregation node of its tree, by the limits to which the
//! nodes hold it, so no job can use more than is counted. Invariants: while a policy stands, no
//! limit and no capacity is exceeded, and a tenant can have what is kept for it at any time; a
//! claim is given back when its job has ended and left its nodes, whatever ended it.

mod amounts;
mod book;
mod file;
mod holdings;
mod line;
mod policy;
mod refusal;
mod report;
mod sight;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trib_messages::job::Limits;
use trib_messages::reply::{JobStatus, Refusal};
use trib_messages::tenant::{JobCharge, QueuedJob, TenantStatus};
use trib_topology::LimitTable;
use trib_wire::ids::JobId;

use self::amounts::{Amounts, Kind};
use self::book::{Claim, Scope};
pub use self::file::PolicyError;
use self::holdings::Holdings;
pub(crate) use self::line::Applicant;
pub(crate) use self::line::Charge;
use self::line::Line;
pub(crate) use self::policy::Policy;
pub(crate) use self::sight::Sight;
use crate::time::Time;

/// The tenants, and what the jobs of each have.
pub(crate) struct Tenancy {
    policy: Arc<Policy>,
    line: Arc<Line>,
    holdings: Holdings,
}

impl Tenancy {
    /// The tenants of a policy. The `jobs` that are there already count, whether they fit or not.
    pub(crate) fn new(policy: Policy, jobs: &[JobStatus], time: Time) -> Self {
        let policy = Arc::new(policy);
        let line = Arc::new(Line::new(policy.clone(), time));
        let holdings = Holdings::default();
        for job in jobs {
            if let (Some(charge), Some(limits)) = (&job.charge, &job.limits) {
                let claim = claim(&policy, charge, limits, &job.nodes);
                holdings.add(job.id, line.adopt(job.id, claim), &job.nodes);
            }
        }
        Tenancy { policy, line, holdings }
    }

    /// The fabric's limits for a tenant's job. Defaults are shares if the policy says so, and never
    /// more than the tenant could ever have. Maxima stay: a job that asks for too much is told so
    /// by `enter`.
    pub(crate) fn table(&self, tenant: Option<&str>, table: &LimitTable) -> LimitTable {
        self.policy.lower(self.policy.key(tenant), table)
    }

    /// Refuses hosts that are kept for another tenant.
    pub(crate) fn check_hosts(&self, tenant: Option<&str>, hosts: &[String]) -> Result<(), Refusal> {
        let own = self.policy.key(tenant);
        let foreign = |host: &String| self.policy.keeper_of(host).filter(|keeper| *keeper != own);
        match hosts.iter().find_map(|host| Some((host, foreign(host)?))) {
            Some((host, keeper)) => Err(refusal::kept_host(host, own, keeper, &self.sight(tenant))),
            None => Ok(()),
        }
    }

    /// Takes what a job will use, as soon as it fits and it is the job's turn, within `patience`.
    /// Returns also whether the job had to wait.
    pub(crate) fn enter(
        &self,
        applicant: &Applicant<'_>,
        charge: &JobCharge,
        limits: &Limits,
        nodes: &[String],
        patience: Duration,
    ) -> Result<(Charge, bool), Refusal> {
        self.line.enter(claim(&self.policy, charge, limits, nodes), applicant, patience.min(PATIENCE_MAX))
    }

    /// Changes what a job is charged for, if what `charge` has besides fits beside the jobs that
    /// wait. Else nothing changes, and the node is returned that has too little.
    pub(crate) fn change(
        &self,
        taken: &Charge,
        charge: &JobCharge,
        limits: &Limits,
        nodes: &[String],
    ) -> Result<(), Option<String>> {
        taken.change_to(claim(&self.policy, charge, limits, nodes)).map_err(|shortage| match shortage.scope {
            Scope::Node(name) => Some(name),
            Scope::Fabric | Scope::Root(_) => None,
        })
    }

    /// Keeps a charge as long as the job runs, and as long as it is at one of its nodes.
    pub(crate) fn hold(&self, job: JobId, charge: Charge, nodes: &[String]) {
        charge.attribute(job);
        self.holdings.add(job, charge, nodes);
    }

    /// The job has ended: its charge is given back when its nodes say that its ranks have left.
    pub(crate) fn end(&self, job: JobId) {
        self.holdings.end(job);
    }

    /// The job is at no node. Returns its charge.
    pub(crate) fn release(&self, job: JobId) -> Option<Charge> {
        self.holdings.release(job)
    }

    /// The job is not at this node any more.
    pub(crate) fn left(&self, node: &str, job: JobId) {
        self.holdings.left(node, job);
    }

    /// The node is gone, and with it all that was there.
    pub(crate) fn lost(&self, node: &str) {
        self.holdings.lost(node);
    }

    /// The node is connected and has been silent for long: what has ended is given back without a
    /// word of it.
    pub(crate) fn silent(&self, node: &str) {
        self.holdings.silent(node);
    }

    /// What a program with a certificate of this tenant may see.
    pub(crate) fn sight(&self, tenant: Option<&str>) -> Sight {
        self.policy.sight(tenant)
    }

    /// Every tenant of the policy, and all others as one. Who sees only its own sees that for which
    /// its jobs count.
    pub(crate) fn tenants(&self, sight: &Sight) -> Vec<TenantStatus> {
        let own = match sight {
            Sight::All => None,
            Sight::Own(name) => Some(self.policy.key(Some(name))),
        };
        let mut tenants = self.line.with(|state| report::tenants(&self.policy, state));
        tenants.retain(|tenant| own.is_none_or(|own| tenant.name == own));
        tenants
    }

    /// The jobs that wait, in the order of their turns.
    pub(crate) fn queue(&self, sight: &Sight) -> Vec<QueuedJob> {
        self.line.with(|state| report::queue(state, sight))
    }

    /// The number of claims that are taken, of jobs that run or have ended and are still at a node.
    pub(crate) fn charged(&self) -> usize {
        self.line.with(|state| state.charged.len())
    }

    /// How many jobs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.line.with(|state| state.waiting.len())
    }

    /// Takes every lock once.
    pub(crate) fn touch(&self) {
        self.holdings.touch();
        self.line.with(|_| ());
    }
}

/// What a job takes in each scope.
fn claim(policy: &Policy, charge: &JobCharge, limits: &Limits, nodes: &[String]) -> Claim {
    let job = Amounts::of(&[(Kind::Jobs, 1)]);
    // Every lane has groups, slots and stream contexts of its own.
    // A node that is only a later backup of others has nothing reserved for it.
    let at_node = |((node, lanes), memory): ((&String, &u64), &u64)| {
        let amounts = Amounts::of(&[
            (Kind::Jobs, (*lanes).min(1)),
            (Kind::Groups, lanes * u64::from(limits.groups)),
            (Kind::Osts, lanes * u64::from(limits.osts)),
            (Kind::Streams, lanes * u64::from(limits.streams)),
            (Kind::Memory, *memory),
        ]);
        (Scope::Node(node.clone()), amounts)
    };
    let mut roots: BTreeMap<&String, u64> = BTreeMap::new();
    for root in &charge.roots {
        *roots.entry(root).or_default() += 1;
    }
    let at_root = |(root, lanes): (&String, u64)| {
        let amounts = Amounts::of(&[(Kind::Jobs, 1), (Kind::Streams, lanes * u64::from(limits.streams))]);
        (Scope::Root(root.clone()), amounts)
    };
    let mut wants = vec![(Scope::Fabric, job)];
    wants.extend(nodes.iter().zip(&charge.lanes).zip(&charge.memory_bytes).map(at_node));
    wants.extend(roots.into_iter().map(at_root));
    Claim { tenant: policy.key(charge.tenant.as_deref()).to_owned(), wants }
}

/// The longest time for which a waiting job may keep a thread of the manager.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);
