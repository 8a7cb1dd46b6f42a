//! The environment of a rank.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::process::Command;

use super::Job;
use crate::failure::Failure;

/// What the environments of all ranks are made of.
#[derive(Debug)]
pub(super) struct Environment<'a> {
    size: u32,
    hosts: &'a [String],
    manager: Option<&'a str>,
    wait_ms: Option<u128>,
    rendezvous: String,
}

impl<'a> Environment<'a> {
    /// Draws the name under which the ranks meet.
    pub(super) fn new(job: &'a Job) -> Result<Self, Failure> {
        let Job { ranks: size, hosts, manager, wait, .. } = job;
        if hosts.len() > *size as usize {
            return Err(Failure::Usage(format!("{} hosts but only {size} ranks: every host needs one", hosts.len())));
        }
        let wait_ms = wait.map(|wait| wait.as_millis());
        Ok(Self { size: *size, hosts, manager: manager.as_deref(), wait_ms, rendezvous: random_name()? })
    }

    /// The name under which the ranks meet.
    pub(super) fn rendezvous(&self) -> &str {
        &self.rendezvous
    }

    /// The command of one rank.
    pub(super) fn command(&self, rank: u32, program: &[OsString]) -> Command {
        let (host, local_rank) = self.host_of(rank);
        let mut command = Command::new(&program[0]);
        command
            .args(&program[1..])
            .env("TRIB_RANK", rank.to_string())
            .env("TRIB_SIZE", self.size.to_string())
            .env("TRIB_LOCAL_RANK", local_rank.to_string())
            .env("TRIB_RENDEZVOUS", &self.rendezvous);
        if let Some(manager) = self.manager {
            command.env("TRIB_MANAGER", manager);
        }
        if let Some(ms) = self.wait_ms {
            command.env("TRIB_WAIT_MS", ms.to_string());
        }
        if let Some(host) = host {
            command.env("TRIB_HOST", host);
        }
        command
    }

    /// The host of a rank and the rank's number there. Hosts get consecutive blocks of ranks whose
    /// sizes differ by at most one.
    fn host_of(&self, rank: u32) -> (Option<&'a str>, u32) {
        let (size, hosts) = (u64::from(self.size), self.hosts.len() as u64);
        if hosts == 0 {
            return (None, rank);
        }
        let host = u64::from(rank) * hosts / size;
        let first = (host * size).div_ceil(hosts);
        let local_rank = u32::try_from(u64::from(rank) - first).expect("a block is no longer than the job");
        (Some(&self.hosts[host as usize]), local_rank)
    }
}

/// A name of 128 random bits, which cannot be guessed: a process that knows the name can join the
/// job.
fn random_name() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::Environment(format!("cannot read /dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts_of(size: u32, hosts: &[&str]) -> Vec<(Option<String>, u32)> {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let environment = Environment { size, hosts: &hosts, manager: None, wait_ms: None, rendezvous: String::new() };
        (0..size).map(|rank| environment.host_of(rank)).map(|(host, local)| (host.map(str::to_owned), local)).collect()
    }

    #[test]
    fn ranks_fill_hosts_in_blocks() {
        let expected =
            [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)].map(|(host, local)| (Some(host.to_owned()), local));
        assert_eq!(hosts_of(5, &["a", "b"]), expected);
        assert_eq!(hosts_of(2, &[]), [(None, 0), (None, 1)]);
    }

    #[test]
    fn every_host_gets_its_share_and_counts_from_zero() {
        for size in 1..40 {
            for count in 1..=size {
                let names: Vec<String> = (0..count).map(|host| host.to_string()).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let ranks = hosts_of(size, &names);
                for (host, name) in names.iter().enumerate() {
                    let locals: Vec<u32> =
                        ranks.iter().filter(|(at, _)| at.as_deref() == Some(name)).map(|&(_, local)| local).collect();
                    let share = locals.len() as u32;
                    assert_eq!(locals, (0..share).collect::<Vec<_>>(), "{size} ranks, host {host} of {count}");
                    assert!((size / count..=size.div_ceil(count)).contains(&share));
                }
            }
        }
    }

    #[test]
    fn two_jobs_do_not_meet() {
        let (first, second) = (random_name().unwrap(), random_name().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.len(), 32);
    }
}
