//! Sets of elements of a vector.

use std::ops::Range;

/// A set of elements as ranges in order that do not touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranges {
    ranges: Vec<Range<u64>>,
}

impl Ranges {
    /// Adds a range; false if an element of it was there already.
    pub fn add(&mut self, new: Range<u64>) -> bool {
        if new.is_empty() {
            return true;
        }
        let from = self.ranges.partition_point(|r| r.end < new.start);
        let to = self.ranges.partition_point(|r| r.start <= new.end);
        let fresh = !self.meets(&new);
        let mut joined = new;
        for old in &self.ranges[from..to] {
            joined = joined.start.min(old.start)..joined.end.max(old.end);
        }
        self.ranges.splice(from..to, [joined]);
        fresh
    }

    /// Whether an element of the range is in the set.
    pub fn meets(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        !range.is_empty() && self.ranges.get(at).is_some_and(|r| r.start < range.end)
    }

    /// Hull of the elements of `range` that are not in the set.
    pub fn missing(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let (mut start, mut end) = (range.start, range.end);
        for held in &self.ranges {
            if held.start <= start && start < held.end {
                start = held.end;
            }
        }
        for held in self.ranges.iter().rev() {
            if held.start < end && end <= held.end {
                end = held.start;
            }
        }
        (start < end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_tell_what_is_missing() {
        let mut set = Ranges::default();
        assert!(set.add(10..20));
        assert!(set.add(30..40));
        assert_eq!(set.missing(&(0..50)), Some(0..50));
        assert_eq!(set.missing(&(10..40)), Some(20..30));
        assert!(set.add(20..30));
        assert_eq!(set.ranges.len(), 1);
        assert!(!set.add(39..41));
        assert_eq!(set.missing(&(10..41)), None);
        assert_eq!(set.missing(&(5..10)), Some(5..10));
        assert!(set.meets(&(0..11)) && !set.meets(&(0..10)) && !set.meets(&(15..15)));
        assert!(set.add(0..0));
    }
}
