//! The fabric at one moment, for people and tools.

use std::time::Duration;

use trib_control::clock::unix_ms;
use trib_messages::reply::{NodeStatus, StatusReport};

use super::survey::homes;
use crate::fabric::Fabric;
use crate::tenancy::Sight;

/// Asks every connected node at once and waits at most a second for the slowest. Who does not see
/// the jobs of all tenants is not told the counters of nodes, to which all of them add.
pub(crate) fn report(fabric: &Fabric, sight: &Sight) -> StatusReport {
    let nodes = fabric.topology.nodes();
    let asked: Vec<_> = nodes
        .iter()
        .map(|node| {
            let session = fabric.registry.known(&node.name);
            let counted = session.as_ref().filter(|_| *sight == Sight::All);
            let counters = counted.and_then(|session| session.query());
            (node.name.clone(), session, counters)
        })
        .collect();
    let end = fabric.time.now() + PATIENCE;
    let nodes = asked
        .into_iter()
        .map(|(name, session, counters)| {
            let left = fabric.time.left(end);
            let counters = counters.and_then(|counters| fabric.time.receive(&counters, left).ok()).unwrap_or_default();
            let address = session.as_ref().map(|session| session.stream);
            let further = session.as_ref().map(|session| session.further.clone()).unwrap_or_default();
            let connected = session.as_ref().is_some_and(|session| !session.is_lost());
            let datagram_buffer_bytes = session.as_ref().map(|session| session.datagram_buffer_bytes);
            let silent_since_ms = session.as_ref().filter(|_| connected).and_then(|session| session.late_ms());
            let certificate_ends = session.as_ref().map(|session| session.certificate_ends());
            let version = session.map(|session| session.version.clone()).unwrap_or_default();
            NodeStatus {
                name,
                address,
                further,
                version,
                connected,
                silent_since_ms,
                datagram_buffer_bytes,
                certificate_ends,
                counters,
            }
        })
        .collect();
    let time_ms = Some(unix_ms());
    let mut jobs = fabric.jobs.list();
    jobs.retain(|job| sight.sees(job.tenant()));
    let homes = homes(fabric, &jobs);
    StatusReport {
        fabric: fabric.topology.name().into(),
        time_ms,
        nodes,
        jobs,
        homes,
        queue: fabric.tenancy.queue(sight),
        tenants: fabric.tenancy.tenants(sight),
    }
}

/// How long a tool waits for the slowest node.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
