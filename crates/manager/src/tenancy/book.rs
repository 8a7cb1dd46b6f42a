//! What each tenant has at each place, and whether a claim fits. It is pure: it has no clock and no
//! lock.
//!
//! At every place the book takes, for each tenant, the larger of what it has and what is kept for
//! it, and the sum of these stays within the capacity. So what is kept for a tenant is there
//! whenever it comes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::amounts::{Amounts, Kind};
use super::policy::Policy;

/// Where something is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// Everywhere: it counts once for the whole fabric.
    Fabric,
    /// At an aggregation node.
    Node(String),
    /// At an aggregation node, as the root of trees: only the jobs count whose trees have their
    /// root there.
    Root(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Fabric => f.write_str("in the fabric"),
            Place::Node(name) => write!(f, "at node {name}"),
            Place::Root(name) => write!(f, "of the trees with their root at node {name}"),
        }
    }
}

/// What one job takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The name under which it counts, as [`Policy::key`] gives it.
    pub tenant: String,
    /// What it takes at each place. A place occurs once.
    pub wants: Vec<(Place, Amounts)>,
}

impl Claim {
    /// The amount of one kind that it takes at a place.
    pub(crate) fn at(&self, place: &Place, kind: Kind) -> u64 {
        self.wants.iter().find(|(other, _)| other == place).map_or(0, |(_, amounts)| amounts.get(kind))
    }

    /// What it takes besides another claim.
    pub(crate) fn beyond(&self, other: &Claim) -> Claim {
        let known = |place: &Place| other.wants.iter().find(|(known, _)| known == place);
        let beyond = |(place, amounts): &(Place, Amounts)| {
            (place.clone(), known(place).map_or(*amounts, |(_, known)| amounts.minus(known)))
        };
        Claim { tenant: self.tenant.clone(), wants: self.wants.iter().map(beyond).collect() }
    }
}

/// The first thing of which a claim lacks some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shortage {
    pub place: Place,
    pub kind: Kind,
    pub asked: u64,
    /// The amount that is left of `most`.
    pub available: u64,
    /// The limit or the capacity that stands in the way.
    pub most: u64,
    pub scope: Scope,
}

/// The kind of bound that stands in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The limit of the tenant itself.
    Limit,
    /// The capacity that all tenants share.
    Capacity,
}

type Shares = BTreeMap<Place, BTreeMap<String, Amounts>>;

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
        for (place, amounts) in &claim.wants {
            let limit = self.policy.limit(&claim.tenant, place);
            let capacity = self.policy.capacity(place);
            if limit.are_none() && capacity.are_none() {
                continue;
            }
            let has = self.has(&claim.tenant, place);
            let pledged = held(&self.pledged, place, &claim.tenant);
            let kept = self.policy.reserved(&claim.tenant, place);
            for kind in Kind::ALL {
                let (asked, has, kept) = (amounts.get(kind), has.get(kind), kept.get(kind));
                let short = |available, most, scope| {
                    let place = place.clone();
                    if asked <= available {
                        Ok(())
                    } else {
                        Err(Shortage { place, kind, asked, available, most, scope })
                    }
                };
                if let Some(most) = limit.get(kind) {
                    let counted = has.saturating_add(pledged.get(kind));
                    short(most.saturating_sub(counted), most, Scope::Limit)?;
                }
                if let Some(most) = capacity.get(kind) {
                    let others = self.taken_by_others(&claim.tenant, place, kind);
                    let room = most.saturating_sub(others).max(kept).saturating_sub(has);
                    short(room, most, Scope::Capacity)?;
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
    pub(crate) fn keep(&mut self, claim: &Claim, scope: Scope) {
        match scope {
            Scope::Capacity => add(&mut self.used, claim),
            Scope::Limit => add(&mut self.pledged, claim),
        }
    }

    /// Undoes `keep`.
    pub(crate) fn let_go(&mut self, claim: &Claim, scope: Scope) {
        match scope {
            Scope::Capacity => remove(&mut self.used, claim),
            Scope::Limit => remove(&mut self.pledged, claim),
        }
    }

    /// What a tenant has at a place.
    pub(crate) fn has(&self, tenant: &str, place: &Place) -> Amounts {
        held(&self.used, place, tenant)
    }

    /// The places where a tenant has something.
    pub(crate) fn places_of(&self, tenant: &str) -> impl Iterator<Item = (&Place, &Amounts)> {
        self.used.iter().filter_map(move |(place, tenants)| Some((place, tenants.get(tenant)?)))
    }

    /// The other tenants, with the amount of one kind that each has at a place and that is kept for
    /// it there.
    pub(crate) fn others_at(&self, tenant: &str, place: &Place, kind: Kind) -> Vec<(String, u64, u64)> {
        let here = self.used.get(place);
        let mut names: Vec<&String> =
            here.into_iter().flat_map(BTreeMap::keys).chain(self.policy.tenants.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: &String| {
            let kept = self.policy.reserved(name, place).get(kind);
            (name.clone(), self.has(name, place).get(kind), kept)
        };
        names.into_iter().filter(|name| *name != tenant).map(of).collect()
    }

    fn taken_by_others(&self, tenant: &str, place: &Place, kind: Kind) -> u64 {
        let others = self.others_at(tenant, place, kind);
        others.iter().map(|(_, has, kept)| *has.max(kept)).fold(0, u64::saturating_add)
    }
}

fn held(shares: &Shares, place: &Place, tenant: &str) -> Amounts {
    shares.get(place).and_then(|tenants| tenants.get(tenant)).copied().unwrap_or_default()
}

fn add(shares: &mut Shares, claim: &Claim) {
    for (place, amounts) in &claim.wants {
        let has = shares.entry(place.clone()).or_default().entry(claim.tenant.clone()).or_default();
        *has = has.plus(amounts);
    }
}

fn remove(shares: &mut Shares, claim: &Claim) {
    for (place, amounts) in &claim.wants {
        let Some(tenants) = shares.get_mut(place) else { continue };
        if let Some(has) = tenants.get_mut(&claim.tenant) {
            *has = has.minus(amounts);
            if has.is_zero() {
                tenants.remove(&claim.tenant);
            }
        }
        if tenants.is_empty() {
            shares.remove(place);
        }
    }
}

#[cfg(test)]
mod tests;
