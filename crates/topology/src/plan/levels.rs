//! Ranks that share a host hang below one node of the tree, which runs in one of them.
//!
//! ```text
//!   ranks       r0   r1   r2   r3   r4   r5        leaf0
//!   hosts       h0   h1   h0   h0   h0   h1         |- host h0 (in r0)
//!   domains     0    -    0    1    1    -          |   |- host h0 domain 0 (in r0)   r0 r2
//!                                                   |   `- host h0 domain 1 (in r0)   r3 r4
//!                                                   `- host h1 (in r1)                r1 r5
//! ```
//! A node stands where two ranks or more are told to share a host, and below it one for two ranks
//! or more of a NUMA domain. Ranks that are bound to no domain count as one domain together. A host
//! all of whose ranks have one domain needs no second level, and one of which fewer than two ranks
//! can host nodes has none. Nothing but the program decides that, so the same program has the same
//! levels on every fabric, whatever else runs there.
//!
//! Children stand in the order of their lowest rank.

use std::collections::BTreeMap;

use trib_messages::levels::Levels;
use trib_wire::ids::Rank;

use super::{Branch, Home, node_of};

/// What of a program decides its tree.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The hosts of its ranks, by rank. Ranks share a host if these names are equal.
    pub hosts: &'a [String],
    /// The NUMA domain of each rank on its host, by rank. Ranks that are bound to none, and those
    /// that stand beyond the end of the list, have none.
    pub domains: &'a [Option<u16>],
    /// The levels that its tree is to have.
    pub levels: Levels,
    /// Whether each rank can host nodes, by rank. Those that stand beyond the end of the list can.
    pub able: &'a [bool],
}

impl<'a> Program<'a> {
    /// A program whose ranks are all children of aggregation nodes.
    pub fn flat(hosts: &'a [String]) -> Self {
        Self { hosts, domains: &[], levels: Levels::None, able: &[] }
    }

    pub(super) fn host(&self, rank: u32) -> &'a str {
        &self.hosts[rank as usize]
    }

    fn domain(&self, rank: u32) -> Option<u16> {
        self.domains.get(rank as usize).copied().flatten()
    }

    /// The whole tree, if all ranks share one host.
    pub(super) fn alone(&self) -> Option<Branch> {
        let is_one = self.hosts.len() > 1 && self.hosts.windows(2).all(|pair| pair[0] == pair[1]);
        let ranks = || (0..self.hosts.len() as u32).collect::<Vec<u32>>();
        let at_host = || <[Branch; 1]>::try_from(self.at_host(&ranks())).ok();
        (self.levels >= Levels::Host && is_one).then(at_host).flatten().map(|[root]| root)
    }

    /// What is dealt to the leaves of hosts that have several: whole hosts where these are nodes of
    /// the tree, else ranks, in the order of their lowest rank.
    pub(super) fn dealt(&self) -> Vec<Vec<u32>> {
        let ranks: Vec<u32> = (0..self.hosts.len() as u32).collect();
        let hosts = grouped(&ranks, |rank| self.host(rank));
        let whole = |ranks: &[u32]| self.levels > Levels::None && self.lead(ranks).is_some();
        let one_by_one = |ranks: Vec<u32>| ranks.into_iter().map(|rank| vec![rank]).collect();
        let mut dealt: Vec<Vec<u32>> =
            hosts.into_iter().flat_map(|ranks| if whole(&ranks) { vec![ranks] } else { one_by_one(ranks) }).collect();
        dealt.sort_by_key(|ranks| ranks[0]);
        dealt
    }

    /// The rank whose process is to be the home of a host's nodes, if there is another one for them
    /// to go to.
    fn lead(&self, ranks: &[u32]) -> Option<u32> {
        let mut able = ranks.iter().copied().filter(|rank| self.able.get(*rank as usize) != Some(&false));
        let lead = able.next()?;
        able.next().map(|_| lead)
    }

    /// What hangs on an aggregation node besides other nodes. `ranks` are attached there, in
    /// ascending order.
    pub(super) fn at_node(&self, ranks: &[u32]) -> Vec<Branch> {
        if self.levels == Levels::None {
            return ranks.iter().copied().map(Branch::Rank).collect();
        }
        grouped(ranks, |rank| self.host(rank)).iter().flat_map(|ranks| self.at_host(ranks)).collect()
    }

    /// One node with all ranks of a host below it; or these themselves, if it has no lead.
    fn at_host(&self, ranks: &[u32]) -> Vec<Branch> {
        let Some(lead) = self.lead(ranks) else {
            return ranks.iter().copied().map(Branch::Rank).collect();
        };
        let (home, name) = (Home::Rank(Rank(lead)), format!("host {}", self.host(lead)));
        let domains = match self.levels {
            Levels::Numa => grouped(ranks, |rank| self.domain(rank)),
            Levels::None | Levels::Host => Vec::new(),
        };
        if domains.len() < 2 {
            return vec![node_of(home, &name, ranks.iter().copied().map(Branch::Rank).collect())];
        }
        let at_domain = |ranks: &Vec<u32>| match ranks[..] {
            [only] => Branch::Rank(only),
            _ => {
                let domain = self.domain(ranks[0]).map_or("unbound".to_owned(), |domain| format!("domain {domain}"));
                node_of(home, &format!("{name} {domain}"), ranks.iter().copied().map(Branch::Rank).collect())
            }
        };
        vec![node_of(home, &name, domains.iter().map(at_domain).collect())]
    }
}

/// The ranks by what they have in common, in the order of each group's first.
pub(super) fn grouped<K: Ord>(ranks: &[u32], key: impl Fn(u32) -> K) -> Vec<Vec<u32>> {
    let (mut groups, mut known): (Vec<Vec<u32>>, BTreeMap<K, usize>) = Default::default();
    for rank in ranks {
        let at = *known.entry(key(*rank)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(*rank),
            None => groups.push(vec![*rank]),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
