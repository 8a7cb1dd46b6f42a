//! Which processes the ranks of a job are. Nothing depends on it but what people read: an error or
//! an explanation names a rank with its host and its process.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use trib_wire::Rank;

/// The processes of all ranks. Hosts stand in it once.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Processes {
    hosts: Vec<String>,
    /// By rank, which of `hosts`.
    at: Vec<u32>,
    /// By rank; 0, or none at all, where it is not known.
    pids: Vec<u32>,
}

/// Where one rank runs.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Process {
    /// Its host.
    pub host: String,
    /// Its process there; 0: not known.
    pub pid: u32,
}

impl Processes {
    /// By rank: their hosts, and the processes as far as they are known.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a String>, pids: Vec<u32>) -> Processes {
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut each, mut at) = (Vec::new(), Vec::new());
        for host in hosts {
            at.push(*known.entry(host).or_insert_with(|| {
                each.push(host.clone());
                each.len() as u32 - 1
            }));
        }
        Processes { hosts: each, at, pids }
    }

    /// Where a rank runs, if that is known. A table that contradicts itself knows less, and does no
    /// harm.
    pub fn of(&self, rank: Rank) -> Option<Process> {
        let host = self.hosts.get(*self.at.get(rank.0 as usize)? as usize)?;
        Some(Process { host: host.clone(), pid: self.pids.get(rank.0 as usize).copied().unwrap_or(0) })
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => write!(f, "on {}", self.host),
            pid => write!(f, "on {} (PID {pid})", self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn ranks_are_named_with_host_and_process_as_far_as_these_are_known() {
        let hosts = ["h0", "h1", "h0"].map(String::from);
        let processes = Processes::new(&hosts, [10, 11].to_vec());
        assert_eq!(processes.hosts, ["h0", "h1"]);
        let said = |rank| processes.of(Rank(rank)).map(|process| process.to_string());
        assert_eq!(said(1).as_deref(), Some("on h1 (PID 11)"));
        assert_eq!(said(2).as_deref(), Some("on h0"));
        assert_eq!(said(3), None);
        let twisted = Processes { at: [7].to_vec(), ..processes };
        assert_eq!(twisted.of(Rank(0)), None);
    }
}
