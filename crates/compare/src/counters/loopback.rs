//! What the hosts of a launch tell themselves over their loopback: ranks of one host that share its
//! memory tell each other nothing there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// What one host's loopback has carried since the host was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

/// Reads it for every host on which one of these processes runs, by network namespace.
pub(crate) fn carried(pids: &[u32]) -> BTreeMap<PathBuf, Carried> {
    let one = |pid: &u32| {
        let host = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        let carried = read(&fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?)?;
        Some((host, carried))
    };
    pids.iter().filter_map(one).collect()
}

/// The most that a host's loopback has carried between two readings; `None` if no host was read
/// twice.
pub(crate) fn most(before: &BTreeMap<PathBuf, Carried>, after: &BTreeMap<PathBuf, Carried>) -> Option<Carried> {
    let both = after.iter().filter_map(|(host, now)| Some((before.get(host)?, now)));
    let each = both.map(|(old, now)| Carried {
        bytes: now.bytes.saturating_sub(old.bytes),
        packets: now.packets.saturating_sub(old.packets),
    });
    each.max_by_key(|carried| carried.bytes)
}

/// What a table of interfaces says that `lo` has received, which is what it has sent.
fn read(table: &str) -> Option<Carried> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix("lo:"))?;
    let mut numbers = line.split_ascii_whitespace().map_while(|word| word.parse().ok());
    Some(Carried { bytes: numbers.next()?, packets: numbers.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_told_from_links() {
        let table = "Inter-|   Receive\n face |bytes    packets errs\n  eth0:  74  1  0\n    lo: 1200  3  0\n";
        assert_eq!(read(table), Some(Carried { bytes: 1200, packets: 3 }));
        assert_eq!(read("  eth0: 74 1 0\n"), None);
    }

    #[test]
    fn the_busiest_host_counts_from_the_first_reading_on() {
        let reading =
            |of: [(&str, u64); 2]| of.map(|(host, bytes)| (host.into(), Carried { bytes, packets: 1 })).into();
        let (before, after) = (reading([("a", 100), ("b", 5)]), reading([("a", 150), ("b", 90)]));
        assert_eq!(most(&before, &after), Some(Carried { bytes: 85, packets: 0 }));
        assert_eq!(most(&BTreeMap::new(), &after), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_host() {
        assert_eq!(carried(&[std::process::id(), u32::MAX]).len(), 1);
    }
}
