//! Whether a grant can be kept.

use trib_control::clock::unix_ms;
use trib_proto::Limits;
use trib_wire::control::job::NodeGrant;
use trib_wire::control::reply::{Refusal, Resource};
use trib_wire::ids::CHILDREN_MAX;

use super::registry::{Known, Registry};
use crate::job::{Buffers, memory_for};

/// Checks a grant and reserves its memory. `Ok(None)`: it is installed already.
pub(super) fn prepare(registry: &Registry, grant: &NodeGrant) -> Result<Option<Buffers>, Refusal> {
    match registry.knows(grant) {
        Known::Same => return Ok(None),
        Known::Other { since_ms } => {
            let text = format!("{} of {} is installed here with another grant", grant.node, grant.job);
            return Err(Refusal { since_ms: Some(since_ms), ..refusal(Resource::Job, 1, 0, text) });
        }
        Known::No => {}
    }
    let children = grant.children.len();
    if children == 0 || children > CHILDREN_MAX {
        let text = format!("{} has {children} children, a node takes 1 to {CHILDREN_MAX}", grant.node);
        return Err(refusal(Resource::Ranks, children as u64, CHILDREN_MAX as u64, text));
    }
    if !Limits::from(&grant.limits).are_valid() {
        let text = format!("the limits of {} are outside their ranges", grant.job);
        return Err(refusal(Resource::Request, 0, 0, text));
    }
    Buffers::for_grant(grant).map(Some).ok_or_else(|| {
        let asked = memory_for(grant);
        let text = format!("{asked} bytes of buffers for {} cannot be had: ask for a smaller quota", grant.job);
        // Who came last took what is lacking.
        Refusal {
            since_ms: Some(registry.last_came_ms().unwrap_or_else(unix_ms)),
            ..refusal(Resource::Memory, asked, 0, text)
        }
    })
}

fn refusal(resource: Resource, asked: u64, available: u64, text: String) -> Refusal {
    Refusal { resource, asked, available, holder: None, since_ms: None, text }
}
