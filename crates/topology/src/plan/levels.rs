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
//! all of whose ranks have one domain needs no second level. Nothing but the program decides that,
//! so the same program has the same levels on every fabric, whatever else runs there.
//!
//! Children stand in the order of their lowest rank.

use std::collections::BTreeMap;

use trib_wire::ids::Rank;

use super::{Branch, Home, node_of};

/// Which levels below the aggregation nodes a program's tree has. Each has those before it, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Levels {
    /// None: every rank is a child of an aggregation node.
    #[default]
    None,
    /// The hosts that have several ranks.
    Host,
    /// The NUMA domains that have several ranks.
    Numa,
}

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
}

impl<'a> Program<'a> {
    /// A program whose ranks are all children of aggregation nodes.
    pub fn flat(hosts: &'a [String]) -> Self {
        Self { hosts, domains: &[], levels: Levels::None }
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
        (self.levels >= Levels::Host && is_one).then(|| self.at_host(&ranks()))
    }

    /// What hangs on an aggregation node besides other nodes. `ranks` are attached there, in
    /// ascending order.
    pub(super) fn at_node(&self, ranks: &[u32]) -> Vec<Branch> {
        if self.levels == Levels::None {
            return ranks.iter().copied().map(Branch::Rank).collect();
        }
        grouped(ranks, |rank| self.host(rank)).iter().map(|ranks| self.at_host(ranks)).collect()
    }

    fn at_host(&self, ranks: &[u32]) -> Branch {
        let [lead, _, ..] = *ranks else { return Branch::Rank(ranks[0]) };
        let (home, name) = (Home::Rank(Rank(lead)), format!("host {}", self.host(lead)));
        let domains = match self.levels {
            Levels::Numa => grouped(ranks, |rank| self.domain(rank)),
            Levels::None | Levels::Host => Vec::new(),
        };
        if domains.len() < 2 {
            return node_of(home, &name, ranks.iter().copied().map(Branch::Rank).collect());
        }
        let at_domain = |ranks: &Vec<u32>| match ranks[..] {
            [only] => Branch::Rank(only),
            _ => {
                let domain = self.domain(ranks[0]).map_or("unbound".to_owned(), |domain| format!("domain {domain}"));
                node_of(home, &format!("{name} {domain}"), ranks.iter().copied().map(Branch::Rank).collect())
            }
        };
        node_of(home, &name, domains.iter().map(at_domain).collect())
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
