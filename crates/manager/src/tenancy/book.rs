//! What each tenant has in each scope, and whether a claim fits. It is pure: it has no clock and no
//! lock.
//!
//! In every scope the book takes, for each tenant, the larger of what it has and what is kept for
//! it, and the sum of these stays within the capacity. So what is kept for a tenant is there
//! whenever it comes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::amounts::{Amounts, Kind};
use super::policy::Policy;

/// Where something is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Scope {
    /// Everywhere: it counts once for the whole fabric.
    Fabric,
    /// At an aggregation node.
    Node(String),
    /// At an aggregation node, as the root of trees: only the jobs count whose trees have their
    /// root there.
    Root(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Fabric => f.write_str("in the fabric"),
            Scope::Node(name) => write!(f, "at node {name}"),
            Scope::Root(name) => write!(f, "of the trees with their root at node {name}"),
        }
    }
}

/// What one job takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The name under which it counts, as [`Policy::key`] gives it.
    pub tenant: String,
    /// What it takes in each scope. A scope occurs once.
    pub wants: Vec<(Scope, Amounts)>,
}

impl Claim {
    /// The amount of one kind that it takes in a scope.
    pub(crate) fn at(&self, scope: &Scope, kind: Kind) -> u64 {
        self.wants.iter().find(|(other, _)| other == scope).map_or(0, |(_, amounts)| amounts.get(kind))
    }

    /// What it takes besides another claim.
    pub(crate) fn beyond(&self, other: &Claim) -> Claim {
        let known = |scope: &Scope| other.wants.iter().find(|(known, _)| known == scope);
        let beyond = |(scope, amounts): &(Scope, Amounts)| {
            (scope.clone(), known(scope).map_or(*amounts, |(_, known)| amounts.minus(known)))
        };
        Claim { tenant: self.tenant.clone(), wants: self.wants.iter().map(beyond).collect() }
    }
}

/// The first thing of which a claim lacks some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shortage {
    pub scope: Scope,
    pub kind: Kind,
    pub asked: u64,
    /// The amount that is left of `most`.
    pub available: u64,
    /// The limit or the capacity that stands in the way.
    pub most: u64,
    pub cap: Cap,
}

/// The kind of cap that stands in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cap {
    /// The limit of the tenant itself.
    Limit,
    /// The capacity that all tenants share.
    Capacity,
}

type Shares = BTreeMap<Scope, BTreeMap<String, Amounts>>;

/// What each tenant has.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    policy: Arc<Policy>,
    used: Shares,
    /// What counts towards tenants' limits but takes no room: the claims of those that wait for
    /// their own tenant.
    pledged: Shares,
}

impl Book {
    /// A book without claims.
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Book { policy, used: Shares::new(), pledged: Shares::new() }
    }

    /// Whether a claim fits.
    pub(crate) fn check(&self, claim: &Claim) -> Result<(), Shortage> {
        for (scope, amounts) in &claim.wants {
            let limit = self.policy.limit(&claim.tenant, scope);
            let capacity = self.policy.capacity(scope);
            if limit.are_none() && capacity.are_none() {
                continue;
            }
            let has = self.has(&claim.tenant, scope);
            let pledged = held(&self.pledged, scope, &claim.tenant);
            let kept = self.policy.reserved(&claim.tenant, scope);
            for kind in Kind::ALL {
                let (asked, has, kept) = (amounts.get(kind), has.get(kind), kept.get(kind));
                let short = |available, most, cap| {
                    let scope = scope.clone();
                    if asked <= available { Ok(()) } else { Err(Shortage { scope, kind, asked, available, most, cap }) }
                };
                if let Some(most) = limit.get(kind) {
                    let counted = has.saturating_add(pledged.get(kind));
                    short(most.saturating_sub(counted), most, Cap::Limit)?;
                }
                if let Some(most) = capacity.get(kind) {
                    let others = self.taken_by_others(&claim.tenant, scope, kind);
                    let room = most.saturating_sub(others).max(kept).saturating_sub(has);
                    short(room, most, Cap::Capacity)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a claim would fit if no other tenant or job had anything.
    pub(crate) fn check_alone(&self, claim: &Claim) -> Result<(), Shortage> {
        Book::new(self.policy.clone()).check(claim)
    }

    /// Enters a claim, whether it fits or not.
    pub(crate) fn take(&mut self, claim: &Claim) {
        add(&mut self.used, claim);
    }

    /// Strikes a claim that was entered.
    pub(crate) fn give_back(&mut self, claim: &Claim) {
        remove(&mut self.used, claim);
    }

    /// Keeps for a claim what it waits for: from all tenants, or, if only its own tenant's limit is
    /// in the way, from its tenant.
    pub(crate) fn keep(&mut self, claim: &Claim, cap: Cap) {
        match cap {
            Cap::Capacity => add(&mut self.used, claim),
            Cap::Limit => add(&mut self.pledged, claim),
        }
    }

    /// Undoes `keep`.
    pub(crate) fn let_go(&mut self, claim: &Claim, cap: Cap) {
        match cap {
            Cap::Capacity => remove(&mut self.used, claim),
            Cap::Limit => remove(&mut self.pledged, claim),
        }
    }

    /// What a tenant has in a scope.
    pub(crate) fn has(&self, tenant: &str, scope: &Scope) -> Amounts {
        held(&self.used, scope, tenant)
    }

    /// The scopes in which a tenant has something.
    pub(crate) fn scopes_of(&self, tenant: &str) -> impl Iterator<Item = (&Scope, &Amounts)> {
        self.used.iter().filter_map(move |(scope, tenants)| Some((scope, tenants.get(tenant)?)))
    }

    /// The other tenants, with the amount of one kind that each has in a scope and that is kept for
    /// it there.
    pub(crate) fn others_at(&self, tenant: &str, scope: &Scope, kind: Kind) -> Vec<(String, u64, u64)> {
        let here = self.used.get(scope);
        let mut names: Vec<&String> =
            here.into_iter().flat_map(BTreeMap::keys).chain(self.policy.tenants.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: &String| {
            let kept = self.policy.reserved(name, scope).get(kind);
            (name.clone(), self.has(name, scope).get(kind), kept)
        };
        names.into_iter().filter(|name| *name != tenant).map(of).collect()
    }

    fn taken_by_others(&self, tenant: &str, scope: &Scope, kind: Kind) -> u64 {
        let others = self.others_at(tenant, scope, kind);
        others.iter().map(|(_, has, kept)| *has.max(kept)).fold(0, u64::saturating_add)
    }
}

fn held(shares: &Shares, scope: &Scope, tenant: &str) -> Amounts {
    shares.get(scope).and_then(|tenants| tenants.get(tenant)).copied().unwrap_or_default()
}

fn add(shares: &mut Shares, claim: &Claim) {
    for (scope, amounts) in &claim.wants {
        let has = shares.entry(scope.clone()).or_default().entry(claim.tenant.clone()).or_default();
        *has = has.plus(amounts);
    }
}

fn remove(shares: &mut Shares, claim: &Claim) {
    for (scope, amounts) in &claim.wants {
        let Some(tenants) = shares.get_mut(scope) else { continue };
        if let Some(has) = tenants.get_mut(&claim.tenant) {
            *has = has.minus(amounts);
            if has.is_zero() {
                tenants.remove(&claim.tenant);
            }
        }
        if tenants.is_empty() {
            shares.remove(scope);
        }
    }
}

#[cfg(test)]
mod tests;
