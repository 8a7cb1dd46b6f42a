//! Where the nodes of a tree may be: a site is a logical node in a process that may host it. Actors
//! are numbered: first the sites, those of the first candidates in front, then the ranks.

use crate::fabric::Tree;
use crate::random::Rng;

/// The sites of a tree.
#[derive(Clone, Debug)]
pub struct Sites {
    nodes: usize,
    candidates: usize,
    /// The process of each site.
    process_of: Vec<usize>,
    /// How many processes host nodes or could.
    processes: usize,
}

impl Sites {
    /// Each node has so many candidates. Nodes that share a process share it everywhere. Some
    /// processes are the first candidate of one node and a further one of another.
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
        let process_of =
            (0..candidates).flat_map(|c| tree.nodes.iter().map(|node| of_host[node.host][c]).collect::<Vec<_>>());
        Sites { nodes: tree.nodes.len(), candidates, process_of: process_of.collect(), processes }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.process_of.len()
    }

    /// Whether there is none, which no tree has.
    pub fn is_empty(&self) -> bool {
        self.process_of.is_empty()
    }

    /// How many candidates each node has.
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// How many processes host nodes or could. The ranks' own processes have the numbers after
    /// these.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// The site of a node at one of its candidates.
    pub fn site(&self, node: usize, candidate: usize) -> usize {
        candidate * self.nodes + node
    }

    /// The node of a site.
    pub fn node(&self, site: usize) -> usize {
        site % self.nodes
    }

    /// Which candidate of its node a site is.
    pub fn candidate(&self, site: usize) -> usize {
        site / self.nodes
    }

    /// The process of a site.
    pub fn process(&self, site: usize) -> usize {
        self.process_of[site]
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
        (0..self.len()).filter(|site| self.process_of[*site] == process).collect()
    }

    /// Whether every node has a candidate that is none of these processes.
    pub fn survive_without(&self, processes: &[usize]) -> bool {
        (0..self.nodes)
            .all(|node| (0..self.candidates).any(|c| !processes.contains(&self.process_of[self.site(node, c)])))
    }
}
