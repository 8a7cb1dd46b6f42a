//! The quota of a job as the core uses it.

use trib_messages::quota::QuotaField;
use trib_wire::Layout;
use trib_wire::ids::CHILDREN_MAX;

use crate::time::Nanos;

/// What one job may use at one node. `trib_messages::job::Limits` has the meaning of each
/// field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of groups alive at once.
    pub groups: u32,
    /// The number of LLT slots of a group, 1..=64.
    pub window: u32,
    /// The number of LLT slots of all groups together.
    pub osts: u32,
    /// The largest number of payload bytes in an LLT fragment; a multiple of 8.
    pub payload: u32,
    /// The number of groups that may stream at once.
    pub streams: u32,
    /// The largest number of payload bytes in a SAT segment; a multiple of 8.
    pub segment: u32,
    /// The number of segments that a child may be ahead of the fold.
    pub staging: u32,
    /// The number of segments of a group between fold and delivered result.
    pub flight: u32,
    /// The bytes of a node for groups, creations and control frames that wait.
    pub control_memory: u32,
    /// Vectors that take more bytes on the wire are streamed.
    pub stream_threshold: u64,
    /// The number of streaming operations of one lease. With 0 a lease lasts until it is revoked.
    pub lease_operations: u32,
    /// The time after which a silent side sends a heartbeat.
    pub heartbeat: Nanos,
    /// The time after which a silent side is dead.
    pub dead_after: Nanos,
}

/// The smallest SAT segment into which short vectors are cut, in bytes.
pub const SEGMENT_MIN: u32 = 16 * 1024;
/// A vector has at least this many segments, unless they would be smaller than `SEGMENT_MIN`. The
/// time that a segment takes on a link is added to the operation once for every level of the tree.
pub const SEGMENTS_MIN: u64 = 128;

impl Limits {
    /// Whether every field is in its range and the fields go together. A grant with other limits is
    /// refused.
    pub fn are_valid(&self) -> bool {
        let values = [
            (QuotaField::Groups, self.groups),
            (QuotaField::Window, self.window),
            (QuotaField::Osts, self.osts),
            (QuotaField::Payload, self.payload),
            (QuotaField::Streams, self.streams),
            (QuotaField::Segment, self.segment),
            (QuotaField::Staging, self.staging),
            (QuotaField::Flight, self.flight),
            (QuotaField::ControlMemory, self.control_memory),
        ];
        values.into_iter().all(|(field, value)| field.check(u64::from(value)).is_ok())
            && self.osts >= self.window
            && self.heartbeat > Nanos(0)
            && self.dead_after > self.heartbeat
    }

    /// The number of groups that a node may pass on for children that are nodes, without folding
    /// for them. Each such child folds for as many as the job may have, at most.
    pub fn relays(&self, nodes_below: usize) -> usize {
        (self.groups as usize).saturating_mul(nodes_below)
    }

    /// The indices of groups lie below this at any node, whatever its children are. Each may have a
    /// companion, and those of an epoch before keep theirs beside new ones.
    pub fn indices(&self) -> usize {
        2 * 2 * (self.groups.max(1) as usize + self.relays(CHILDREN_MAX))
    }

    /// The part of the control memory that groups may take, in bytes.
    pub fn lists(&self) -> u64 {
        u64::from(self.control_memory) / 2
    }

    /// The part of it that creations may take which have no verdict, in bytes. Where groups of an
    /// earlier epoch come again, they may take what is left of the part for groups besides.
    pub fn creations(&self) -> u64 {
        u64::from(self.control_memory) / 4
    }

    /// The elements of one fragment of a vector.
    pub fn fragment_for(&self, layout: Layout) -> u32 {
        layout.within(self.payload)
    }

    /// The elements of one segment of a vector of `vector` elements. Short vectors are cut finer,
    /// so that the levels of the tree work at the same time.
    pub fn segment_for(&self, vector: u64, layout: Layout) -> u32 {
        let bytes = layout.most(&(0..vector));
        let fine = (bytes / SEGMENTS_MIN).next_multiple_of(u64::from(SEGMENT_MIN)).max(u64::from(SEGMENT_MIN));
        layout.within(fine.min(u64::from(self.segment)) as u32)
    }
}

impl From<&trib_messages::job::Limits> for Limits {
    fn from(l: &trib_messages::job::Limits) -> Limits {
        Limits {
            groups: l.groups,
            window: l.window,
            osts: l.osts,
            payload: l.payload,
            streams: l.streams,
            segment: l.segment,
            staging: l.staging,
            flight: l.flight,
            control_memory: l.control_memory,
            stream_threshold: l.stream_threshold,
            lease_operations: l.lease_operations,
            heartbeat: Nanos::from_millis(u64::from(l.heartbeat_ms)),
            dead_after: Nanos::from_millis(u64::from(l.dead_after_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use trib_messages::quota::QuotaRow;

    use super::*;

    const LIMITS: Limits = Limits {
        groups: 1,
        window: 1,
        osts: 64,
        payload: 16,
        streams: 1,
        segment: 16,
        staging: 1,
        flight: 1,
        control_memory: 1 << 16,
        stream_threshold: 0,
        lease_operations: 0,
        heartbeat: Nanos(1),
        dead_after: Nanos(3),
    };

    /// The limits with this value in a field.
    fn with(field: QuotaField, value: u32) -> Option<Limits> {
        Some(match field {
            QuotaField::Groups => Limits { groups: value, ..LIMITS },
            QuotaField::Window => Limits { window: value, ..LIMITS },
            QuotaField::Osts => Limits { osts: value, ..LIMITS },
            QuotaField::Payload => Limits { payload: value, ..LIMITS },
            QuotaField::Streams => Limits { streams: value, ..LIMITS },
            QuotaField::Segment => Limits { segment: value, ..LIMITS },
            QuotaField::Staging => Limits { staging: value, ..LIMITS },
            QuotaField::Flight => Limits { flight: value, ..LIMITS },
            QuotaField::ControlMemory => Limits { control_memory: value, ..LIMITS },
            _ => return None,
        })
    }

    #[test]
    fn every_value_that_may_be_granted_is_valid_and_none_beyond() {
        for field in QuotaField::all() {
            let QuotaRow { least, most, step, name, .. } = *field.row();
            let is_valid = |value: u64| Some(with(field, u32::try_from(value).ok()?)?.are_valid());
            // All groups together have no fewer fragments than one group.
            let least = if field == QuotaField::Osts { LIMITS.window.into() } else { least };
            assert_ne!(is_valid(least), Some(false), "{name} = {least}");
            assert_ne!(is_valid(most), Some(false), "{name} = {most}");
            assert_ne!(is_valid(least.saturating_sub(1)), Some(true), "{name} = {least} - 1");
            assert_ne!(is_valid(most.saturating_add(step)), Some(true), "{name} = {most} + {step}");
        }
    }
}
