//! Systems whose ranks find one another by themselves: each rank is a command on its host.

use std::path::Path;
use std::process::Command;

use super::{Job, Programs, System};
use crate::network::Network;

pub(super) fn tributary(system: &System, network: &dyn Network, programs: &Programs, job: &Job) -> Vec<Command> {
    ranks(system, network, &programs.trib, job, |command, rank, _| {
        command
            .args(["bench", "worker"])
            .args(&job.arguments)
            .env("TRIB_MANAGER", network.manager())
            .env("TRIB_RANK", rank.to_string())
            .env("TRIB_SIZE", job.ranks.to_string())
            .env("TRIB_LOCAL_RANK", (rank / u32::from(network.hosts())).to_string())
            .env("TRIB_RENDEZVOUS", &job.token);
    })
}

pub(super) fn gloo(system: &System, network: &dyn Network, programs: &Programs, job: &Job) -> Vec<Command> {
    let script = programs.peer("gloo.py");
    ranks(system, network, Path::new("/usr/bin/python3"), job, |command, rank, first| {
        command.arg(&script).args(&job.arguments);
        set_rendezvous(command, rank, job, first);
    })
}

pub(super) fn other(system: &System, network: &dyn Network, line: &str, job: &Job) -> Vec<Command> {
    ranks(system, network, Path::new("/bin/sh"), job, |command, rank, first| {
        command.arg("-c").arg(format!("{line} \"$@\"")).arg("sh").args(&job.arguments);
        set_rendezvous(command, rank, job, first);
    })
}

/// Sets the variables that torch.distributed calls `env://`.
fn set_rendezvous(command: &mut Command, rank: u32, job: &Job, first: &str) {
    command
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", job.ranks.to_string())
        .env("MASTER_ADDR", first)
        .env("MASTER_PORT", MEETING_PORT)
        .env("GLOO_SOCKET_IFNAME", "eth0")
        .env("OMP_NUM_THREADS", "1");
}

fn ranks(
    system: &System,
    network: &dyn Network,
    program: &Path,
    job: &Job,
    finish: impl Fn(&mut Command, u32, &str),
) -> Vec<Command> {
    let hosts = job.map.hosts(job.ranks, network.hosts(), network.leaf_ports());
    let first = format!("h{}", hosts.first().copied().unwrap_or(0));
    let one = |(rank, host): (u32, &u16)| {
        let mut command = network.command(&format!("h{host}"), program);
        finish(&mut command, rank, &first);
        command.envs(system.environment.iter().map(|(name, value)| (name, value)));
        command
    };
    (0..).zip(&hosts).map(one).collect()
}

const MEETING_PORT: &str = "29500";
