//! Options of MPICH's launcher, hydra, for hosts that are namespaces of one machine.

use std::path::Path;

use super::{MpiLaunch, Placement};

/// The names that its launcher may have.
pub(super) const LAUNCHERS: &[&str] = &["mpirun.mpich", "mpiexec.hydra"];
/// The first variable makes hydra call `trib lab remote HOST`. The others keep UCX to the links and
/// to the memory that the ranks of a host share, if the MPICH was built with UCX. Hosts have System
/// V memory and /dev/shm of their own, by which UCX tells which ranks share it.
pub(super) const ENVIRONMENT: &[(&str, &str)] =
    &[("HYDRA_LAUNCHER_EXTRA_ARGS", "lab remote"), ("UCX_TLS", "tcp,self,sm"), ("UCX_NET_DEVICES", "eth0")];

/// What comes before the program.
pub(super) fn arguments(trib: &Path, hosts: &[String], slots: u32, launch: &MpiLaunch) -> Vec<String> {
    let MpiLaunch { ranks, env, options, .. } = launch;
    let (ranks, trib) = (ranks.to_string(), trib.display().to_string());
    let together = match launch.placement {
        Placement::Cyclic => 1,
        Placement::Block => slots,
    };
    let mut arguments: Vec<String> = [
        "-n",
        &ranks,
        "-ppn",
        &together.to_string(),
        "-hosts",
        &hosts.join(","),
        "-iface",
        "eth0",
        "-launcher",
        "rsh",
        "-launcher-exec",
        &trib,
    ]
    .map(str::to_owned)
    .into();
    arguments.extend(env.iter().flat_map(|(name, value)| ["-genv", name, value]).map(str::to_owned));
    arguments.extend(options.iter().cloned());
    arguments
}
