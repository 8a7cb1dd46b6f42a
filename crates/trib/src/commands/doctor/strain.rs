//! Other reasons for delayed or lost datagrams: a host that is busy, and sockets that were not read
//! in time.
//!
//! A datagram that a host was too busy to answer looks like one that a firewall dropped, until one
//! looks at the kernel's counters.

use std::fmt::Write as _;
use std::fs;

/// The counts of this host's kernel and of the fabric's nodes at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Strain {
    /// Datagrams that this host dropped because a program did not read them in time.
    unread: u64,
    /// The same at all nodes that say it.
    unread_at_nodes: u64,
    /// Processor time in ticks: all of it, and the part that the machine below gave to others.
    ticks: u64,
    stolen: u64,
    /// The mean number of threads that ran or wanted to during the last minute, and the number of
    /// processors for them.
    load: f64,
    processors: usize,
}

impl Strain {
    /// The strain at this moment; `unread_at_nodes` is the sum that the nodes report.
    pub(super) fn now(unread_at_nodes: u64) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (ticks, stolen) = ticks(&read("/proc/stat")).unwrap_or_default();
        Self {
            unread: unread(&read("/proc/net/snmp")).unwrap_or_default(),
            unread_at_nodes,
            ticks,
            stolen,
            load: load(&read("/proc/loadavg")).unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// What disturbed this host between an earlier moment and this one; empty if nothing is known
    /// to have done so.
    pub(super) fn since(&self, before: &Self) -> String {
        let mut text = String::new();
        let dropped = self.unread.saturating_sub(before.unread);
        if dropped > 0 {
            text += &format!(
                "this host dropped {dropped} datagrams because a program did not read them in time (RcvbufErrors): raise \
                 net.core.rmem_max here, or leave programs more processor time; "
            );
        }
        let dropped = self.unread_at_nodes.saturating_sub(before.unread_at_nodes);
        if dropped > 0 {
            text += &format!(
                "nodes dropped {dropped} datagrams that they did not read in time (datagram_socket_overflow in `trib \
                 status`): raise net.core.rmem_max there and restart `trib an`, or give it a core of its own; "
            );
        }
        let load = self.load.max(before.load);
        if load > self.processors as f64 {
            let _ = write!(text, "this host is busy, with a load of {load:.1} on {} processors; ", self.processors);
        }
        let ticks = self.ticks.saturating_sub(before.ticks).max(1);
        let share = self.stolen.saturating_sub(before.stolen) as f64 / ticks as f64;
        if share > STOLEN_MOST {
            let _ = write!(text, "other guests of this machine took {:.0} % of its time (steal); ", 100.0 * share);
        }
        text
    }
}

/// The advice for datagrams or a stream that came late or not at all: first what the kernel knows,
/// and only then the network.
pub(super) fn advice(strain: &str, remedy: &str) -> String {
    match strain {
        "" => remedy.to_owned(),
        strain => format!("{strain}run `trib doctor` again when that is over. If it stays so: {remedy}"),
    }
}

/// RcvbufErrors of UDP. The file has two lines for it, names and numbers.
fn unread(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut both = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    both.find(|(name, _)| *name == "RcvbufErrors")?.1.parse().ok()
}

/// All ticks of all processors, and those that were stolen. The time of guests is already in the
/// others.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    Some((fields.iter().sum(), *fields.get(7)?))
}

fn load(loadavg: &str) -> Option<f64> {
    loadavg.split_ascii_whitespace().next()?.parse().ok()
}

/// The largest share of time that others may take without being mentioned.
const STOLEN_MOST: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Strain = Strain { unread: 7, unread_at_nodes: 3, ticks: 1000, stolen: 10, load: 0.3, processors: 2 };

    #[test]
    fn a_quiet_host_leaves_the_way_to_blame() {
        let later = Strain { ticks: 1400, stolen: 11, ..QUIET };
        assert_eq!(later.since(&QUIET), "");
        assert_eq!(advice("", "look at the firewall"), "look at the firewall");
    }

    #[test]
    fn what_the_kernel_knows_comes_before_the_way() {
        for (later, word) in [
            (Strain { unread: 9, ..QUIET }, "dropped 2 datagrams"),
            (Strain { unread_at_nodes: 8, ..QUIET }, "nodes dropped 5 datagrams"),
            (Strain { load: 14.2, ..QUIET }, "a load of 14.2 on 2 processors"),
            (Strain { ticks: 1100, stolen: 60, ..QUIET }, "50 % of its time"),
        ] {
            let advice = advice(&later.since(&QUIET), "look at the firewall");
            let (cause, way) = (advice.find(word), advice.find("firewall"));
            assert!(cause.is_some() && cause < way && advice.contains("again when that is over"), "{advice}");
        }
    }

    #[test]
    fn the_kernels_files_are_read_by_their_names_and_total() {
        let snmp = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 10 0 4 11 4 0\nUdpLite: RcvbufErrors\nUdpLite: 9\n";
        assert_eq!(unread(snmp), Some(4));
        assert_eq!(ticks("cpu  100 0 50 800 5 0 5 40 0 0\ncpu0 1 1\n"), Some((1000, 40)));
        assert_eq!(load("0.52 0.58 0.59 1/234 5678\n"), Some(0.52));
        for text in ["", "Udp: RcvbufErrors", "cpu x", "cpu  1 2 3"] {
            assert_eq!((unread(text), ticks(text)), (None, None), "{text:?}");
        }
        // These are the figures of the machine itself.
        let now = Strain::now(0);
        assert!(now.ticks > 0 && now.processors > 0);
    }
}
