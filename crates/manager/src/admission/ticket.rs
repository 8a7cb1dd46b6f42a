//! The ticket of a job, which has to fit into one message, and what a job does without where it
//! does not.
//!
//! What ranks may host makes tickets long: every deputy's grant is in them.

use trib_control::MESSAGE_MAX;
use trib_messages::Message;
use trib_messages::job::{DeputyGrant, JobTicket, NodeGrant, TicketNode};
use trib_messages::levels::Levels;
use trib_messages::reply::{Refusal, Resource};
use trib_topology::Plan;

use super::candidates::Candidates;
use super::install::Placed;
use crate::refuse::too_much;

/// What ranks of a job may host of it, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hosting {
    /// The levels of nodes that live in ranks.
    pub(super) levels: Levels,
    /// The number of deputies of each logical node.
    pub(super) deputies: usize,
}

impl Hosting {
    /// All that a job may ask for.
    pub(super) const ALL: Hosting = Hosting { levels: Levels::Numa, deputies: usize::MAX };

    /// The same without nodes that live in ranks.
    pub(super) fn without_levels(self) -> Hosting {
        Hosting { levels: Levels::None, ..self }
    }

    /// The next smaller amount, for a shorter ticket; `None` if there is none. A `strict` job keeps
    /// a deputy, because it would be refused without any.
    pub(super) fn less(self, strict: bool) -> Option<Hosting> {
        match self.deputies {
            _ if self.levels != Levels::None => Some(self.without_levels()),
            0 => None,
            1 if strict => None,
            deputies => Some(Hosting { deputies: usize::from(deputies > 1), ..self }),
        }
    }
}

/// The logical nodes of a job as its ranks are told them, by their numbers.
pub(super) fn nodes(
    grants: &[Placed],
    deputies: &[DeputyGrant],
    plan: &Plan,
    candidates: &Candidates<'_>,
) -> Vec<TicketNode> {
    let all = grants.iter().map(|(_, grant)| grant).chain(deputies.iter().map(|deputy| &deputy.grant));
    let node = |grant: &NodeGrant| TicketNode {
        node: grant.node,
        candidates: candidates.told(&plan.nodes[usize::from(grant.node.0)], grant.name.clone()),
        parent: grant.parent.as_ref().map(|parent| (parent.node, parent.child)),
        in_ranks: !grant.in_ranks.is_empty(),
    };
    let mut nodes: Vec<TicketNode> = all.filter(|grant| grant.candidate == 0).map(node).collect();
    nodes.sort_by_key(|node| node.node);
    nodes
}

/// The length in bytes of a ticket that does not fit into the message that brings it to rank 0.
pub(super) fn excess(ticket: &JobTicket) -> Option<usize> {
    let mut json = Vec::new();
    ticket.write(&mut json);
    let bytes = json.len() + REPLY;
    (bytes > MESSAGE_MAX).then_some(bytes)
}

/// The refusal of a job that can do without nothing more of what makes its ticket long.
pub(super) fn too_long(bytes: usize) -> Refusal {
    let text = format!(
        "the job's ticket would have {bytes} bytes, at most {MESSAGE_MAX} travel at once: ask for fewer lanes with TRIB_QUOTA=lanes=N, or \
         use fewer ranks"
    );
    too_much(Resource::Ranks, bytes as u64, MESSAGE_MAX as u64, text)
}

/// The bytes around a ticket in a reply: `{"Granted":}`.
const REPLY: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_does_without_levels_first_and_a_strict_one_never_without_deputies() {
        let steps = |strict| {
            let less = |hosting: &Hosting| hosting.less(strict);
            let all: Vec<Hosting> = std::iter::successors(Some(Hosting::ALL), less).collect();
            all.into_iter().map(|Hosting { levels, deputies }| (levels, deputies)).collect::<Vec<_>>()
        };
        let strict = [(Levels::Numa, usize::MAX), (Levels::None, usize::MAX), (Levels::None, 1)];
        assert_eq!(steps(true), strict);
        assert_eq!(steps(false), [&strict[..], &[(Levels::None, 0)]].concat());
    }
}
