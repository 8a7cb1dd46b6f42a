//! Tenants and the line, for the status.

use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

use trib_messages::tenant::{QueuedJob, TenantAmount, TenantAt, TenantStatus};

use super::amounts::Kind;
use super::book::Scope;
use super::line::{State, Waiting};
use super::policy::{OTHERS, Policy};
use super::refusal;
use super::sight::Sight;

/// Every tenant of the policy, and all others as one; empty without a policy.
pub(super) fn tenants(policy: &Policy, state: &State) -> Vec<TenantStatus> {
    if *policy == Policy::default() {
        return Vec::new();
    }
    let names: BTreeSet<&str> = policy.tenants.keys().map(String::as_str).chain([OTHERS]).collect();
    names.into_iter().map(|name| tenant(name, policy, state)).collect()
}

fn tenant(name: &str, policy: &Policy, state: &State) -> TenantStatus {
    let amount = |scope: &Scope, kind: Kind| TenantAmount {
        used: state.book.has(name, scope).get(kind),
        limit: policy.entitlement(name, scope, kind),
        reserved: policy.reserved(name, scope).get(kind),
    };
    let at = |scope: &Scope, node: &String| TenantAt {
        node: node.clone(),
        groups: amount(scope, Kind::Groups),
        osts: amount(scope, Kind::Osts),
        streams: amount(scope, Kind::Streams),
        memory_bytes: amount(scope, Kind::Memory),
    };
    let nodes = state.book.scopes_of(name).filter_map(|(scope, _)| match scope {
        Scope::Node(node) => Some(at(scope, node)),
        Scope::Fabric | Scope::Root(_) => None,
    });
    TenantStatus {
        name: name.to_owned(),
        priority: policy.priority(name),
        hosts: policy.hosts.values().filter(|keeper| *keeper == name).count() as u32,
        jobs: amount(&Scope::Fabric, Kind::Jobs),
        waiting: state.waiting.iter().filter(|waiting| waiting.claim.tenant == name).count() as u32,
        nodes: nodes.collect(),
    }
}

/// The jobs that wait and are seen, in the order of their turns.
pub(super) fn queue(state: &State, sight: &Sight) -> Vec<QueuedJob> {
    let job = |(at, waiting): (usize, &Waiting)| QueuedJob {
        name: waiting.name.clone(),
        user: waiting.user.clone(),
        tenant: waiting.tenant.clone(),
        priority: waiting.priority,
        ranks: waiting.ranks,
        since: waiting.since.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
        reason: refusal::reason(state, at, sight),
    };
    let seen = |(_, waiting): &(usize, &Waiting)| sight.sees(waiting.tenant.as_deref());
    state.waiting.iter().enumerate().filter(seen).map(job).collect()
}
