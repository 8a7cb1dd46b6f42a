//! Whether a grant can be kept.

use std::net::{IpAddr, SocketAddr};

use trib_control::clock::unix_ms;
use trib_messages::candidates::CANDIDATES_MAX;
use trib_messages::job::{GrantChild, NodeGrant};
use trib_messages::reply::{Refusal, Resource};
use trib_messages::via::Via;
use trib_proto::Limits;
use trib_transport::ucx::UcxWorker;
use trib_wire::ids::{CHILDREN_MAX, ChildKind};

use super::registry::{Known, Registry};
use crate::job::{Buffers, memory_for};
use crate::worker::WorkerHandle;

/// Checks a grant and reserves its memory. All jobs together have at most `memory` bytes. Returns
/// `Ok(None)` if it is installed already.
pub(super) fn prepare(registry: &Registry, grant: &NodeGrant, memory: Option<u64>) -> Result<Option<Buffers>, Refusal> {
    #[cfg(test)]
    crate::worker::trap::step(grant.job);
    match registry.knows(grant) {
        Known::Same => return Ok(None),
        Known::Other { since_ms } => {
            let text = format!("another {} is here already, of an earlier manager: try again", grant.job);
            return Err(Refusal { since_ms: Some(since_ms), ..refusal(Resource::Job, 1, 0, text) });
        }
        Known::No => {}
    }
    let children = grant.children.len();
    if children == 0 || children > CHILDREN_MAX {
        let text = format!("{} has {children} children here, a node takes 1 to {CHILDREN_MAX}", grant.job);
        return Err(refusal(Resource::Ranks, children as u64, CHILDREN_MAX as u64, text));
    }
    check_tree(grant)?;
    if let Err(cause) = grant.limits.check() {
        let text = format!("the quota of {} cannot be: {cause}", grant.job);
        return Err(refusal(Resource::from(cause.field), cause.value, cause.field.row().most, text));
    }
    if !Limits::from(&grant.limits).are_valid() {
        let text = format!("the limits of {} are outside their ranges", grant.job);
        return Err(refusal(Resource::Request, 0, 0, text));
    }
    if let Some(most) = memory {
        check_room(registry, grant, most)?;
    }
    Buffers::for_grant(grant).map(Some).ok_or_else(|| {
        let asked = memory_for(grant);
        let text = format!("{asked} bytes of buffers for {} cannot be had: ask for a smaller quota", grant.job);
        // The job that came last took what is lacking, so the refusal says since when it is here.
        Refusal {
            since_ms: Some(registry.last_came_ms().unwrap_or_else(unix_ms)),
            ..refusal(Resource::Memory, asked, 0, text)
        }
    })
}

/// Whether a grant's position in its tree, and the keys for it, can be those of one.
fn check_tree(grant: &NodeGrant) -> Result<(), Refusal> {
    let is_at_root = grant.parent.is_none();
    let is_odd = |child: &GrantChild| match child.kind {
        ChildKind::Rank(_) => child.candidates != 1,
        ChildKind::Node(_) => !(1..=CANDIDATES_MAX).contains(&child.candidates.into()),
    };
    let wrong = if usize::from(grant.candidate) >= grant.candidates.len() {
        "this process is none of its candidates"
    } else if !grant.in_ranks.is_empty() && grant.in_ranks.len() != grant.candidates.len() {
        "it does not name the rank of each candidate"
    } else if grant.children.iter().any(is_odd) {
        "a child has no candidate, or too many"
    } else if is_at_root && grant.root.is_none() {
        "it is the root, and the key of the root's candidates is missing"
    } else if !is_at_root && grant.root.is_some() {
        "it has the key of the root's candidates, and is not the root"
    } else {
        return Ok(());
    };
    let text = format!("the grant of {} for node {} makes no sense: {wrong}", grant.job, grant.node.0);
    Err(refusal(Resource::Request, 0, 0, text))
}

/// The refusal after an error of this program's own: the grant is not kept, and what is here goes
/// on.
pub(super) fn broken(why: &str) -> Refusal {
    tracing::error!(why, "an error of this program's own while a grant was installed; please report it");
    refusal(
        Resource::Node,
        1,
        0,
        format!("an error in the node's program keeps it from hosting the job ({why}): please report it"),
    )
}

/// Which of this node's addresses a logical node is to have.
pub(super) fn port(addresses: &[SocketAddr], grant: &NodeGrant) -> Result<IpAddr, Refusal> {
    let Some(wanted) = grant.address else { return Ok(addresses[0].ip()) };
    if addresses.iter().any(|address| address.ip() == wanted) {
        return Ok(wanted);
    }
    let list: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let text = format!(
        "{} is to be reached at {wanted}, and this node listens at {}: correct `addresses` in the topology, or --listen here",
        grant.job,
        list.join(", ")
    );
    Err(refusal(Resource::Node, 1, 0, text))
}

/// What the edges of a logical node over UCX go through, if it has any.
pub(super) fn ucx(worker: &WorkerHandle, grant: &NodeGrant) -> Result<Option<UcxWorker>, Refusal> {
    let opened = grant.goes_by(Via::Ucx).then(|| worker.open_ucx()).transpose();
    opened.map_err(|error| refusal(Resource::Node, 1, 0, error.to_string()))
}

// The manager counts the same for a job. This check matters where the manager counts less, or does
// not know this bound.
fn check_room(registry: &Registry, grant: &NodeGrant, most: u64) -> Result<(), Refusal> {
    let held = registry.memory();
    let used = held.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let (asked, left) = (memory_for(grant), most.saturating_sub(used));
    if asked <= left {
        return Ok(());
    }
    let holder = held.iter().max_by_key(|(_, bytes)| **bytes).map(|(job, bytes)| (job.to_string(), *bytes));
    let holders = match &holder {
        Some((job, bytes)) => format!("{} jobs have {used}, {job} alone {bytes}", held.len()),
        None => "no job has any".to_owned(),
    };
    let text = format!(
        "{} takes {asked} bytes of buffers, and {left} are left of the {most} that this node gives to jobs ({holders}): ask for a smaller quota, try again when others have ended, or raise memory in the node's settings",
        grant.job
    );
    let holder = holder.map(|(job, _)| job);
    Err(Refusal { holder, ..refusal(Resource::Memory, asked, left, text) })
}

fn refusal(resource: Resource, asked: u64, available: u64, text: String) -> Refusal {
    Refusal { resource, asked, available, holder: None, since_ms: None, text }
}

#[cfg(test)]
mod tests {
    use trib_keys::{EdgeKey, JobKey, RootKey};
    use trib_messages::job::{GrantParent, Limits as Quota, ParentCandidate};
    use trib_wire::{ChildIndex, Epoch, JobId, Mode, NodeId, Rank, RankList};

    use super::*;

    fn grant(job: u32) -> NodeGrant {
        let (kind, ranks) = (ChildKind::Rank(Rank(0)), RankList::from_ranks([0]));
        let child = GrantChild { kind, candidates: 1, in_rank: true, ranks, addresses: Vec::new(), via: Via::Tcp };
        let limits = Quota {
            groups: 1,
            window: 1,
            osts: 1,
            payload: 64,
            streams: 1,
            segment: 64,
            staging: 1,
            flight: 1,
            control_memory: 1 << 20,
            stream_threshold: 8,
            lease_operations: 0,
            heartbeat_ms: 100,
            dead_after_ms: 300,
            recovery: trib_messages::policy::Recovery::Retry,
            mode: Mode::Checked,
            faults: false,
        };
        let (key, job, node) = (JobKey([1; 32]), JobId(job), NodeId(0));
        NodeGrant {
            job,
            epoch: Epoch(1),
            mark: key.mark(job),
            key: key.node(job, node, 0),
            root: Some(key.root(job, node)),
            limits,
            world_size: 1,
            node,
            name: "leaf0".into(),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: vec!["10.0.0.1:4000".parse().unwrap()],
            in_ranks: Vec::new(),
            recovers: false,
            parent: None,
            children: vec![child],
        }
    }

    #[test]
    fn a_logical_node_is_at_the_address_that_its_grant_names_or_at_the_first() {
        let addresses = ["10.0.0.1:5", "10.1.0.1:6"].map(|address| address.parse::<SocketAddr>().unwrap());
        let at = |address: Option<&str>| {
            let address = address.map(|address| address.parse().unwrap());
            port(&addresses, &NodeGrant { address, ..grant(1) }).map(|ip| ip.to_string())
        };
        assert_eq!(at(None).unwrap(), "10.0.0.1");
        assert_eq!(at(Some("10.1.0.1")).unwrap(), "10.1.0.1");
        let refusal = at(Some("10.2.0.1")).unwrap_err();
        assert_eq!(refusal.resource, Resource::Node);
        assert!(refusal.text.contains("10.2.0.1") && refusal.text.contains("10.0.0.1:5, 10.1.0.1:6"), "{refusal}");
    }

    #[test]
    fn jobs_together_have_no_more_memory_than_the_node_gives_them() {
        let each = memory_for(&grant(1));
        let most = Some(2 * each + each / 2);
        let mut registry = Registry::default();
        for job in [1, 2] {
            assert!(prepare(&registry, &grant(job), most).unwrap().is_some());
            registry.insert(grant(job), 0, 4000, None, [7; 16]);
        }
        let refusal = prepare(&registry, &grant(3), most).map(drop).unwrap_err();
        assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Memory, each, each / 2));
        for word in ["job 3 takes", &format!("2 jobs have {}", 2 * each), "memory in the node's settings"] {
            assert!(refusal.text.contains(word), "{word}: {refusal}");
        }
        assert!(refusal.holder.is_some_and(|holder| holder == "job 1" || holder == "job 2"));
        assert!(prepare(&registry, &grant(3), None).unwrap().is_some(), "without a bound there is none");
        registry.remove((JobId(1), NodeId(0)));
        assert!(prepare(&registry, &grant(3), most).unwrap().is_some());
        assert!(prepare(&registry, &grant(2), Some(1)).unwrap().is_none(), "it is there already");
        let foreign = NodeGrant { mark: JobKey([9; 32]).mark(JobId(2)), node: NodeId(7), ..grant(2) };
        let refusal = prepare(&registry, &foreign, None).map(drop).unwrap_err();
        assert_eq!(refusal.resource, Resource::Job, "the number is another manager's: {refusal}");
    }

    #[test]
    fn a_grant_with_keys_that_are_not_those_of_its_position_is_refused_with_words() {
        let key = JobKey([1; 32]);
        let candidates = vec![ParentCandidate { stream: "10.0.0.9:4000".parse().unwrap(), key: EdgeKey([2; 32]) }];
        let parent = Some(GrantParent { node: NodeId(4), child: ChildIndex(0), candidates, via: Via::Tcp });
        let below = |candidates| {
            let (kind, ranks) = (ChildKind::Node(NodeId(2)), RankList::from_ranks([0]));
            vec![GrantChild { kind, candidates, in_rank: false, ranks, addresses: Vec::new(), via: Via::Tcp }]
        };
        let mut two_ranks = grant(1);
        two_ranks.children[0].candidates = 2;
        for (grant, words) in [
            (NodeGrant { root: None, ..grant(1) }, "the key of the root's candidates is missing"),
            (NodeGrant { parent: parent.clone(), ..grant(1) }, "and is not the root"),
            (NodeGrant { candidate: 1, ..grant(1) }, "this process is none of its candidates"),
            (NodeGrant { in_ranks: vec![0, 1], ..grant(1) }, "it does not name the rank of each candidate"),
            (two_ranks, "a child has no candidate, or too many"),
            (NodeGrant { children: below(0), ..grant(1) }, "a child has no candidate, or too many"),
            (NodeGrant { children: below(17), ..grant(1) }, "a child has no candidate, or too many"),
        ] {
            let refusal = prepare(&Registry::default(), &grant, None).map(drop).unwrap_err();
            assert!(refusal.text.contains("the grant of job 1 for node 0 makes no sense"), "{refusal}");
            assert!(refusal.text.contains(words), "{refusal}");
        }
        let inner = NodeGrant { parent, root: None, children: below(16), ..grant(1) };
        assert!(prepare(&Registry::default(), &inner, None).unwrap().is_some());
        let shown = format!("{:?} {:?}", inner, RootKey([7; 32]));
        for word in ["NodeKey(..)", "EdgeKey(..)", "JobMark(..)", "RootKey(..)"] {
            assert!(shown.contains(word), "{shown}");
        }
        assert!(!shown.contains(&format!("{:?}", &key.node(JobId(1), NodeId(0), 0).0)), "{shown}");
    }
}
