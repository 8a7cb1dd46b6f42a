//! How much memory a quota amounts to. The manager computes here what a node then reserves.

use trib_wire::Mode;

use crate::job::Limits;

/// What one logical node of a job reserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The children of the node.
    pub children: u64,
    /// Buffers of `payload` bytes each.
    pub datagrams: u64,
    /// Buffers of `segment` bytes each.
    pub segments: u64,
}

impl Reservation {
    /// What a logical node with so many children reserves. Numbers beyond 64 bits are taken as the
    /// largest number.
    ///
    /// For datagrams: a slot in use holds one buffer per child while it fills, one for the result
    /// of its other bank, and one on its way out. For segments: as many as children may be ahead,
    /// the accumulators and their results, and one that is being read from each link. [`SPARE`] of
    /// both kinds cover what is written and not yet released. In a mode that encrypts, what is on
    /// its way to the parent and to each child lies in a buffer of its own, because its children
    /// may get different parts of a result.
    pub fn of(limits: &Limits, children: u64) -> Reservation {
        let datagrams = u64::from(limits.osts).saturating_mul(children.saturating_add(2));
        let staged = children.saturating_mul(u64::from(limits.staging));
        let encrypted = if limits.mode == Mode::Encrypted { children.saturating_add(1) } else { 0 };
        let flight = u64::from(limits.flight).saturating_mul(encrypted.saturating_add(2));
        let context = staged.saturating_add(flight);
        let segments = u64::from(limits.streams).saturating_mul(context).saturating_add(children);
        let (datagrams, segments) = (datagrams.saturating_add(SPARE), segments.saturating_add(SPARE));
        Reservation { children, datagrams, segments }
    }

    /// Bytes of all these buffers, of the slots' records, and of the control memory: that of groups
    /// and creations, and twice as much for what waits for the node's neighbours.
    pub fn bytes(&self, limits: &Limits) -> u64 {
        let datagrams = self.datagrams.saturating_mul(u64::from(limits.payload));
        let segments = self.segments.saturating_mul(u64::from(limits.segment));
        let record = self.children.saturating_mul(RECORD_BYTES_PER_CHILD).saturating_add(RECORD_BYTES);
        let records = u64::from(limits.osts).saturating_mul(record);
        let control = u64::from(limits.control_memory).saturating_add(limits.waiting_memory());
        datagrams.saturating_add(segments).saturating_add(records).saturating_add(control)
    }
}

impl Limits {
    /// The bytes of control frames that may wait for one neighbour of a node. When a rank dies, a
    /// frame about each of its groups waits for each of the others at once.
    pub fn link_memory(&self) -> u64 {
        u64::from(self.control_memory) / 2
    }

    /// The same for all of its neighbours together.
    pub fn waiting_memory(&self) -> u64 {
        2 * u64::from(self.control_memory)
    }
}

/// What a node's core keeps of a slot beside its buffers, in bytes.
pub const RECORD_BYTES: u64 = 768;

/// The same for each child.
pub const RECORD_BYTES_PER_CHILD: u64 = 64;

/// Buffers of either kind beyond those that the quota counts: eight, and those that a reader holds
/// for frames that it foresees.
pub const SPARE: u64 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Recovery;

    const LIMITS: Limits = Limits {
        groups: 1,
        window: 16,
        osts: 100,
        payload: 1000,
        streams: 4,
        segment: 65_536,
        staging: 16,
        flight: 32,
        control_memory: 1 << 20,
        stream_threshold: 0,
        lease_operations: 0,
        heartbeat_ms: 1,
        dead_after_ms: 3,
        recovery: Recovery::Retry,
        mode: Mode::Checked,
        faults: false,
    };

    #[test]
    fn buffers_grow_with_children_slots_and_contexts() {
        let reservation = Reservation::of(&LIMITS, 8);
        let segments = 4 * (8 * 16 + 64) + 8 + 15;
        assert_eq!(reservation, Reservation { children: 8, datagrams: 100 * 10 + 15, segments });
        let (records, control) = (100 * (768 + 8 * 64), 3 << 20);
        assert_eq!(reservation.bytes(&LIMITS), 1015 * 1000 + 791 * 65_536 + records + control);
    }

    #[test]
    fn what_is_encrypted_on_its_way_has_buffers_of_its_own() {
        let (checked, signed) = [Mode::Checked, Mode::Signed].map(|mode| Limits { mode, ..LIMITS }).into();
        let encrypted = Limits { mode: Mode::Encrypted, ..LIMITS };
        let segments = |limits: &Limits| Reservation::of(limits, 8).segments;
        assert_eq!(segments(&signed), segments(&checked));
        assert_eq!(segments(&encrypted), segments(&checked) + 4 * 32 * 9);
    }

    #[test]
    fn limits_that_nobody_can_have_do_not_wrap_around() {
        let most = u32::MAX;
        let limits = Limits {
            osts: most,
            payload: most,
            streams: most,
            segment: most,
            staging: most,
            flight: most,
            control_memory: most,
            ..LIMITS
        };
        assert_eq!(Reservation::of(&limits, u64::MAX).bytes(&limits), u64::MAX);
    }
}
