//! A logical node in detail: what its core says, and what only its driver knows.

use trib_messages::explanation::{GROUPS_MAX, NodePart, Protection, TrafficPart};
use trib_proto::Nanos;

use super::Job;

impl Job {
    /// The whole logical node now, or only the groups with one tag; and the traffic over its links
    /// so far.
    pub(crate) fn explain(&self, now: Nanos, tag: Option<u64>) -> (NodePart, TrafficPart) {
        let Job { core, io, .. } = self;
        let mut part = core.explain(now, GROUPS_MAX, tag);
        for (number, child) in part.children.iter_mut().enumerate() {
            if let Some(traffic) = io.links.traffic(number) {
                child.connected = true;
                child.apart = io.links.is_apart(number);
                let over_network = io.mode.into();
                let in_memory = io.links.is_in_memory(number);
                child.protection = Some(if in_memory { Protection::Memory } else { over_network });
                (child.bytes_in, child.bytes_out, child.queued_bytes) = (traffic.read, traffic.written, traffic.queued);
            }
        }
        part.payload_bytes_folded = io.bytes_folded;
        part.moves = io.placement.moves().collect();
        part.replayed = io.replayed;
        part.first_fold_ms = io.stay.first_fold().map(|span| span.as_millis() as u64);
        let children = (0..part.children.len()).map(|child| io.links.carried(child)).collect();
        let traffic = TrafficPart { node: io.identity.node, at_us: now.0 / 1_000, children };
        (part, traffic)
    }
}
