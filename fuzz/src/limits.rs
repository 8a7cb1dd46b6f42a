//! Small quotas, whose ends a short input can reach.

use trib_proto::{Limits, Nanos};

use crate::draw::Draw;

/// A quota in which every number is small.
pub fn limits(draw: &mut Draw<'_>) -> Limits {
    let window = 1 + draw.below(4);
    Limits {
        groups: 1 + draw.below(4),
        window,
        osts: window * (1 + draw.below(3)),
        payload: PIECE,
        streams: 1 + draw.below(2),
        segment: PIECE,
        staging: 1 + draw.below(4),
        flight: 1 + draw.below(4),
        control_memory: 64 << 10,
        stream_threshold: draw.pick(&[0, 24, 48]),
        lease_operations: draw.below(3),
        heartbeat: Nanos::from_millis(1000),
        dead_after: Nanos::from_millis(60_000),
    }
}

/// The bytes of a fragment, and of a segment.
pub const PIECE: u32 = 16;
