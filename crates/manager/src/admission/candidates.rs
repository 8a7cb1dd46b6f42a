//! Which processes may host each logical node of a job: the aggregation node that the plan says,
//! its backups, and ranks of the job.
//!
//! ```text
//!   chosen --too little room, no answer, a refusal: without that node--> chosen again
//! ```
//! A job goes on when a node dies only if each of its logical nodes has a backup or a deputy. Where
//! one has none, none is charged or told anything, and the job is admitted as one that does not go
//! on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use trib_messages::candidates::Candidate;
use trib_messages::job::Limits;
use trib_messages::request::JobRequest;
use trib_topology::{Home, LimitTable, Plan, PlanNode, backups};
use trib_wire::ids::{ChildKind, NodeId};

use super::deputies::{self, Deputy};
use super::ground::Sessions;
use crate::fabric::Fabric;
use crate::nodes::session::Session;
use crate::planning::quota::Site;

/// The candidates of a job's logical nodes.
pub(super) struct Candidates<'a> {
    fabric: &'a Fabric,
    plan: &'a Plan,
    /// The number of backups that each logical node is to have.
    wanted: usize,
    /// The nodes that may be backups.
    may: BTreeSet<usize>,
    /// By logical node, its backups, which are indices in the topology. Empty if the job does not
    /// go on.
    backups: Vec<Vec<usize>>,
    /// By logical node, the ranks that may host it, if the job goes on.
    deputies: Vec<Vec<Deputy>>,
    /// Whether each logical node has a backup or a deputy, besides the rank that is its home.
    recovers: bool,
    /// All of them, primaries and backups.
    sessions: Sessions,
    /// The primaries.
    own: Sessions,
}

impl<'a> Candidates<'a> {
    /// Chooses backups among the nodes that answer, and deputies among the ranks.
    pub(super) fn choose(
        (fabric, plan): (&'a Fabric, &'a Plan),
        own: Sessions,
        request: &JobRequest,
        (wanted, deputies): (usize, usize),
    ) -> Self {
        let streams: Vec<SocketAddr> = own.values().flat_map(|session| session.streams()).collect();
        let deputies = deputies::choose(plan, request, deputies, &streams);
        let (may, backups, sessions) = (BTreeSet::new(), Vec::new(), own.clone());
        let recovers = false;
        let mut candidates = Candidates { fabric, plan, wanted, may, backups, deputies, recovers, sessions, own };
        if wanted > 0 {
            let here = fabric.registry.all_answering();
            let nodes = fabric.topology.nodes().iter().enumerate();
            candidates.may = nodes.filter(|(_, node)| here.contains(&node.name)).map(|(index, _)| index).collect();
        }
        candidates.choose_again();
        candidates
    }

    fn choose_again(&mut self) {
        let topology = &self.fabric.topology;
        let session = |index: &usize| self.fabric.registry.connected(&topology.nodes()[*index].name);
        // A rank that reaches the primaries reaches their backups: these have addresses of the same
        // family.
        let ipv6 = self.own.values().any(has_ipv6);
        let is_alike = |session: &Arc<Session>| session.streams().all(|stream| stream.is_ipv6() == ipv6);
        let here = self.may.iter().filter_map(|index| Some((*index, session(index).filter(is_alike)?)));
        let here: Sessions = here.collect();
        self.may = here.keys().copied().collect();
        self.backups = backups(topology, self.plan, &self.may, self.wanted);
        self.recovers = self.covers_all();
        if !self.recovers || self.backups.iter().all(Vec::is_empty) {
            self.backups.clear();
        }
        self.sessions = self.own.clone();
        for index in self.backups.iter().flatten() {
            self.sessions.entry(*index).or_insert_with(|| here[index].clone());
        }
    }

    /// The primaries have come back, perhaps over other connections, and backups may have gone.
    pub(super) fn renew(&mut self, own: Sessions) {
        self.own = own;
        self.choose_again();
    }

    /// Chooses backups again, without these nodes. Returns whether any of them was one.
    pub(super) fn without(&mut self, nodes: &BTreeSet<usize>) -> bool {
        let was_one = self.backups.iter().flatten().any(|index| nodes.contains(index));
        self.may.retain(|index| !nodes.contains(index));
        self.choose_again();
        was_one
    }

    /// The same for a node by its name.
    pub(super) fn without_named(&mut self, name: Option<&str>) -> bool {
        let is_named = |(_, session): &(&usize, &Arc<Session>)| Some(session.name.as_str()) == name;
        let Some(index) = self.sessions.iter().find(is_named).map(|(index, _)| *index) else { return false };
        self.without(&BTreeSet::from([index]))
    }

    /// Gives up all backups.
    pub(super) fn without_any(&mut self) {
        self.may.clear();
        self.choose_again();
    }

    /// Whether the job goes on when a node dies.
    pub(super) fn recovers(&self) -> bool {
        self.recovers
    }

    fn covers_all(&self) -> bool {
        let deputies = |node: &PlanNode| self.deputies.get(usize::from(node.id.0)).map_or(0, Vec::len);
        let others = |node: &PlanNode| match node.home {
            Home::Node(_) => self.backups_of(node.id).count() + deputies(node),
            Home::Rank(_) => deputies(node).saturating_sub(1),
        };
        self.plan.nodes.iter().all(|node| others(node) > 0)
    }

    /// Whether any node is a backup.
    pub(super) fn has_backups(&self) -> bool {
        !self.backups.is_empty()
    }

    /// Leaves out the deputies that have too little memory for these limits.
    pub(super) fn bound_deputies(&mut self, limits: &Limits, most: u64) {
        deputies::bound(self.plan, &mut self.deputies, limits, most);
        self.recovers = self.covers_all();
        if !self.recovers {
            self.without_any();
        }
    }

    /// The deputies of a logical node.
    pub(super) fn deputies_of(&self, node: NodeId) -> &[Deputy] {
        let deputies = self.deputies.get(usize::from(node.0)).filter(|_| self.recovers);
        deputies.map_or(&[], Vec::as_slice)
    }

    /// The ranks that are the candidates of a logical node, in their order, if all of them are.
    pub(super) fn in_ranks(&self, node: &PlanNode) -> Vec<u32> {
        let deputies = self.deputies_of(node.id).iter().map(|deputy| deputy.rank);
        if node.home.rank().is_some() { deputies.collect() } else { Vec::new() }
    }

    /// By logical node, the ranks that are its deputies; empty if there are none at all.
    pub(super) fn deputies(&self) -> Vec<Vec<u32>> {
        let ranks = |node: &PlanNode| self.deputies_of(node.id).iter().map(|deputy| deputy.rank).collect();
        let deputies: Vec<Vec<u32>> = self.plan.nodes.iter().map(ranks).collect();
        if deputies.iter().all(Vec::is_empty) { Vec::new() } else { deputies }
    }

    /// The addresses at which the candidates of a logical node take streams, in their order.
    pub(super) fn streams(&self, node: &PlanNode) -> Vec<SocketAddr> {
        let nodes = self.of(node).map(|index| self.stream(index, node.port));
        nodes.chain(self.deputies_of(node.id).iter().map(|deputy| deputy.stream)).collect()
    }

    /// All nodes that may host something of the job.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The aggregation nodes among the candidates of a logical node, the primary first.
    pub(super) fn of(&self, node: &PlanNode) -> impl Iterator<Item = usize> + '_ {
        node.home.node().into_iter().chain(self.backups_of(node.id))
    }

    fn backups_of(&self, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        self.backups.get(usize::from(node.0)).into_iter().flatten().copied()
    }

    /// By logical node, the positions of its backups in [`Self::sessions`].
    pub(super) fn positions(&self) -> Vec<Vec<u32>> {
        let at = |index: &usize| self.position(*index);
        self.backups.iter().map(|backups| backups.iter().map(at).collect()).collect()
    }

    /// By logical node, the position of its primary in [`Self::sessions`]; none of these where that
    /// is a rank.
    pub(super) fn homes(&self) -> Vec<u32> {
        let at = |node: &PlanNode| node.home.node().map_or(u32::MAX, |index| self.position(index));
        self.plan.nodes.iter().map(at).collect()
    }

    /// The position of a node in [`Self::sessions`].
    fn position(&self, index: usize) -> u32 {
        self.sessions.keys().take_while(|other| **other < index).count() as u32
    }

    /// The candidates of a logical node that is called `name`, as its children are told them.
    pub(super) fn told(&self, node: &PlanNode, name: String) -> Vec<Candidate> {
        let own = |index: usize| match node.home == Home::Node(index) {
            true => name.clone(),
            false => self.sessions[&index].name.clone(),
        };
        let deputy = |deputy: &Deputy| format!("rank {} on {}", deputy.rank, deputy.host);
        let names = self.of(node).map(own).chain(self.deputies_of(node.id).iter().map(deputy));
        names.zip(self.streams(node)).map(|(name, stream)| Candidate { name, stream }).collect()
    }

    /// The address at which a node takes streams by a port.
    pub(super) fn stream(&self, index: usize, port: usize) -> SocketAddr {
        let session = &self.sessions[&index];
        // A node that does not listen at the topology's addresses is not let in.
        session.stream_at(self.fabric.topology.nodes()[index].reached_at(port)).unwrap_or(session.stream)
    }

    /// The address of a node that a lane by a port has, if the node has several.
    pub(super) fn reached_at(&self, index: usize, port: usize) -> Option<IpAddr> {
        self.fabric.topology.nodes()[index].reached_at(port)
    }

    /// The addresses from which a child of a logical node may connect; none: from any.
    pub(super) fn addresses(&self, node: &PlanNode, child: usize) -> Vec<IpAddr> {
        let child = &node.children[child];
        let (Some(first), ChildKind::Node(id)) = (child.address, child.kind) else {
            return child.address.into_iter().collect();
        };
        let (below, port) = (&self.plan.nodes[usize::from(id.0)], node.port);
        let mut addresses = vec![first];
        for deputy in self.deputies_of(below.id) {
            if !deputy.is_known {
                return Vec::new();
            }
            addresses.push(deputy.stream.ip());
        }
        for index in self.of(below).filter(|_| self.recovers) {
            let Some(from) = self.fabric.topology.nodes()[index].connects_from(port) else { return Vec::new() };
            addresses.push(from);
            if self.of(node).any(|above| above == index) {
                // A process that hosts both connects to itself.
                addresses.push(self.stream(index, port).ip());
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// What the job has at its primaries, if nothing is reserved for backups.
    pub(super) fn primary_sites(&self) -> Vec<Site> {
        let sites = self.sites().into_iter().filter(|site| !site.children.is_empty());
        sites.map(|site| Site { reserved: Vec::new(), ..site }).collect()
    }

    /// What the job has at each of its nodes.
    pub(super) fn sites(&self) -> Vec<Site> {
        let children = |node: &PlanNode| node.children.len() as u64;
        let nodes = || self.plan.nodes.iter();
        let mut others: BTreeMap<&str, u64> =
            self.sessions.values().map(|session| (session.name.as_str(), 0)).collect();
        self.fabric.jobs.add_datagram_bytes(&mut others);
        let site = |(index, session): (&usize, &Arc<Session>)| {
            let backed = nodes().filter(|node| self.backups_of(node.id).any(|other| other == *index));
            let first = nodes().filter(|node| self.backups_of(node.id).next() == Some(*index));
            Site {
                name: session.name.clone(),
                children: nodes().filter(|node| node.home == Home::Node(*index)).map(children).collect(),
                reserved: first.map(children).collect(),
                widest: backed.map(children).max().unwrap_or(0),
                receive_bytes: session.datagram_buffer_bytes,
                workers: session.workers.into(),
                others_bytes: others[session.name.as_str()],
            }
        };
        self.sessions.iter().map(site).collect()
    }

    /// What the job has in its ranks, of which nobody has asked how large their buffers are.
    pub(super) fn sites_in_ranks(&self) -> Vec<Site> {
        let mut children: BTreeMap<(u32, &str), Vec<u64>> = BTreeMap::new();
        for node in &self.plan.nodes {
            if let (Home::Rank(_), Some(Deputy { rank, host, .. })) = (node.home, self.deputies_of(node.id).first()) {
                children.entry((*rank, host.as_str())).or_default().push(node.children.len() as u64);
            }
        }
        let site = |((rank, host), children)| Site {
            name: format!("rank {rank} on {host}"),
            children,
            reserved: Vec::new(),
            widest: 0,
            receive_bytes: RECEIVE_BYTES,
            workers: 1,
            others_bytes: 0,
        };
        children.into_iter().map(site).collect()
    }

    /// A node whose backups, chosen after the limits were settled, have no room for them.
    pub(super) fn unfit(&self, limits: &Limits, table: &LimitTable) -> Option<String> {
        let misfit = |site: &Site| self.has_backups() && !site.fits(limits, table);
        self.sites().into_iter().find(misfit).map(|site| site.name)
    }
}

/// The receive buffer of a datagram socket on a Linux that nobody has told to give more.
const RECEIVE_BYTES: u64 = 2 * 212_992;

fn has_ipv6(session: &Arc<Session>) -> bool {
    session.streams().any(|stream| stream.is_ipv6())
}
