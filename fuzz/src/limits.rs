//! Small quotas, whose ends a short input can reach, and how far an input goes.

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
/// More steps than fit into the longest input that is worth it.
pub const STEPS_MAX: usize = 400;
/// Retransmissions do not end while nobody answers them.
pub const ROUNDS_MAX: usize = 24;
/// The elements of a vector, most often.
pub const ELEMENTS_MAX: u64 = 40;
/// What passes at a time: less and more than each of a core's own times.
pub const SPANS: [Nanos; 6] = [
    Nanos(1),
    Nanos::from_micros(300),
    Nanos::from_millis(20),
    Nanos::from_millis(400),
    Nanos::from_millis(1000),
    Nanos::from_millis(61_000),
];
