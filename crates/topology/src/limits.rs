//! What a fabric gives to a job that asks for nothing, and the most it gives to one that asks.

use std::ops::Range;

use trib_wire::control::job::LANES_MAX;
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::header::PAYLOAD_MAX;

use crate::error::Fault;
use crate::file;

/// One limit's default and maximum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// For a job that does not ask.
    pub default: u64,
    /// For a job that asks.
    pub maximum: u64,
}

/// Every limit of a fabric; names and units are those of [`trib_wire::control::job::Limits`], and `node_memory` bounds what
/// they come to.
///
/// What the network allows (payload by MTU, window by receive buffers) comes on top of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitTable {
    /// Groups alive at once at one node.
    pub groups: Bound,
    /// Slots of one group.
    pub window: Bound,
    /// Slots of all groups at one node.
    pub osts: Bound,
    /// Bytes of a datagram fragment.
    pub payload: Bound,
    /// Groups that may stream at once.
    pub streams: Bound,
    /// Bytes of a stream segment.
    pub segment: Bound,
    /// Segments that a child may be ahead of the fold. The default is at least that of `flight`:
    /// with less, the credit would hold up a job with a single group, which has all of `flight` in
    /// use, but not a job with several groups, each of which has only a part of it.
    pub staging: Bound,
    /// Segments in flight, per group. The default is what a link of some Gbit/s carries in the
    /// millisecond or two that the way through a tree takes. A rank writes all of them at once when
    /// an operation begins, and other processes on its core wait for that: so it is not more.
    pub flight: Bound,
    /// Vector bytes from which operations are streamed.
    pub stream_threshold: Bound,
    /// Streaming operations of one lease; 0: until others want it.
    pub lease_operations: Bound,
    /// Period of heartbeats, milliseconds.
    pub heartbeat_ms: Bound,
    /// Silence after which a side is dead, milliseconds.
    pub dead_after_ms: Bound,
    /// Bytes of one job's buffers at one aggregation node: what its unasked limits are lowered to, and the most that those
    /// it asks for may come to.
    pub node_memory: Bound,
    /// Lanes of a job.
    pub lanes: Bound,
    /// Vector bytes from which operations are cut over lanes.
    pub stripe_threshold: Bound,
}

impl Default for LimitTable {
    fn default() -> Self {
        let bound = |default, maximum| Bound { default, maximum };
        LimitTable {
            groups: bound(16_384, 65_536),
            window: bound(16, 64),
            osts: bound(262_144, 1 << 20),
            payload: bound(8 << 10, MAX_DATAGRAM),
            streams: bound(4, 64),
            segment: bound(48 << 10, PAYLOAD_MAX as u64),
            staging: bound(12, 64),
            flight: bound(12, 256),
            stream_threshold: bound(16 << 10, u64::MAX),
            lease_operations: bound(0, MANY),
            heartbeat_ms: bound(1_000, 60_000),
            dead_after_ms: bound(60_000, 3_600_000),
            node_memory: bound(1 << 30, 16 << 30),
            lanes: bound(1, LANES_MAX as u64),
            stripe_threshold: bound(128 << 10, u64::MAX),
        }
    }
}

impl LimitTable {
    /// The built-in table with a file's changes.
    pub(crate) fn from_file(limits: &file::Limits) -> Result<Self, (Option<Range<usize>>, Fault)> {
        let mut table = LimitTable::default();
        let rows = [
            (&limits.groups, &mut table.groups, "groups", 1, MANY, 1),
            (&limits.window, &mut table.window, "window", 1, 64, 1),
            (&limits.osts, &mut table.osts, "osts", 1, MANY, 1),
            (&limits.payload, &mut table.payload, "payload", ELEMENT_MAX as u64, MAX_DATAGRAM, 8),
            (&limits.streams, &mut table.streams, "streams", 1, 1 << 16, 1),
            (&limits.segment, &mut table.segment, "segment", ELEMENT_MAX as u64, PAYLOAD_MAX as u64, 8),
            (&limits.staging, &mut table.staging, "staging", 1, 1 << 16, 1),
            (&limits.flight, &mut table.flight, "flight", 1, 1 << 16, 1),
            (&limits.stream_threshold, &mut table.stream_threshold, "stream_threshold", 0, u64::MAX, 1),
            (&limits.lease_operations, &mut table.lease_operations, "lease_operations", 0, MANY, 1),
            (&limits.heartbeat_ms, &mut table.heartbeat_ms, "heartbeat_ms", 1, MANY, 1),
            (&limits.dead_after_ms, &mut table.dead_after_ms, "dead_after_ms", 1, MANY, 1),
            (&limits.node_memory, &mut table.node_memory, "node_memory", 1, u64::MAX, 1),
            (&limits.lanes, &mut table.lanes, "lanes", 1, LANES_MAX as u64, 1),
            (&limits.stripe_threshold, &mut table.stripe_threshold, "stripe_threshold", 0, u64::MAX, 1),
        ];
        for (given, bound, name, least, most, step) in rows {
            let Some(given) = given else { continue };
            let wrong = |fault| (Some(given.span()), fault);
            let file::Bound { default, maximum } = *given.get_ref();
            for value in [default, maximum].into_iter().flatten() {
                if !(least..=most).contains(&value) || value % step != 0 {
                    return Err(wrong(Fault::Limit { name, value, least, most, step }));
                }
            }
            // A maximum below the built-in default lowers the default with it.
            let maximum = maximum.unwrap_or(bound.maximum.max(default.unwrap_or(0)));
            let default = default.unwrap_or(bound.default.min(maximum));
            if default > maximum {
                return Err(wrong(Fault::DefaultAboveMaximum { name, default, maximum }));
            }
            *bound = Bound { default, maximum };
        }
        let (heartbeat_ms, dead_after_ms) = (table.heartbeat_ms.default, table.dead_after_ms.default);
        if dead_after_ms < 3 * heartbeat_ms {
            return Err((None, Fault::Heartbeat { heartbeat_ms, dead_after_ms }));
        }
        Ok(table)
    }
}

const MANY: u64 = u32::MAX as u64;
/// Most vector bytes in one UDP datagram: 65,507 less the frame's header, a multiple of 8.
const MAX_DATAGRAM: u64 = (65_507 - trib_wire::header::HEADER_LEN as u64) / 8 * 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_credit_reaches_as_far_as_the_flight() {
        let table = LimitTable::default();
        assert!(table.staging.default >= table.flight.default, "one group gets less of a link than several would");
    }
}
