//! Where the nodes of a tree may be: a site is a logical node in a process that may host it,
//! perhaps a rank's. Actors are numbered: first the sites, those of the first candidates in front,
//! then the ranks.

use crate::fabric::{Home, Tree, TreeNode};
use crate::random::Rng;

/// The sites of a tree.
#[derive(Clone, Debug)]
pub struct Sites {
    all: Vec<Site>,
    /// The sites of each node, by candidate.
    of_node: Vec<Vec<usize>>,
    /// How many processes host nodes or could, and are no ranks.
    processes: usize,
}

/// A node in a process that may host it.
#[derive(Clone, Copy, Debug)]
struct Site {
    node: usize,
    candidate: usize,
    process: usize,
}

impl Sites {
    /// Each node has so many candidates, unless these are ranks, which the tree names. Nodes that
    /// share a process share it everywhere. Some processes are the first candidate of one node and
    /// a further one of another.
    pub fn new(tree: &Tree, candidates: usize, rng: &mut Rng) -> Sites {
        let hosts = tree.node_hosts;
        let mut processes = hosts;
        let mut of_host: Vec<Vec<usize>> = (0..hosts).map(|host| vec![host]).collect();
        for row in of_host.iter_mut() {
            for _ in 1..candidates {
                let shared = rng.below(hosts as u64) as usize;
                let process = if rng.chance(300) && !row.contains(&shared) { shared } else { processes };
                processes = processes.max(process + 1);
                row.push(process);
            }
        }
        let row = |node: &TreeNode| match &node.home {
            Home::Process(host) => of_host[*host].clone(),
            Home::Ranks(ranks) => ranks.iter().map(|rank| processes + *rank as usize).collect(),
        };
        let rows: Vec<Vec<usize>> = tree.nodes.iter().map(row).collect();
        let mut sites = Sites { all: Vec::new(), of_node: vec![Vec::new(); rows.len()], processes };
        for candidate in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
            for (node, row) in rows.iter().enumerate() {
                if let Some(process) = row.get(candidate).copied() {
                    sites.of_node[node].push(sites.all.len());
                    sites.all.push(Site { node, candidate, process });
                }
            }
        }
        sites
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none, which no tree has.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many candidates a node has.
    pub fn candidates(&self, node: usize) -> usize {
        self.of_node[node].len()
    }

    /// How many processes host nodes or could, and are no ranks. The ranks' own processes have the
    /// numbers after these.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// The rank whose process it is, if it is one's.
    pub fn rank_of_process(&self, process: usize) -> Option<u32> {
        process.checked_sub(self.processes).map(|rank| rank as u32)
    }

    /// The site of a node at one of its candidates.
    pub fn site(&self, node: usize, candidate: usize) -> usize {
        self.of_node[node][candidate]
    }

    /// The node of a site.
    pub fn node(&self, site: usize) -> usize {
        self.all[site].node
    }

    /// Which candidate of its node a site is.
    pub fn candidate(&self, site: usize) -> usize {
        self.all[site].candidate
    }

    /// The process of a site.
    pub fn process(&self, site: usize) -> usize {
        self.all[site].process
    }

    /// The process of an actor, which is a site or a rank.
    pub fn process_of_actor(&self, actor: usize) -> usize {
        match actor.checked_sub(self.len()) {
            None => self.process(actor),
            Some(rank) => self.processes + rank,
        }
    }

    /// The sites of a process.
    pub fn of_process(&self, process: usize) -> Vec<usize> {
        (0..self.len()).filter(|site| self.process(*site) == process).collect()
    }
}
