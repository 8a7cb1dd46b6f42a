//! Options of Open MPI 4 for hosts that are namespaces of one machine.

use std::path::Path;

use super::MpiLaunch;

/// Names of its launcher.
pub(super) const LAUNCHERS: &[&str] = &["mpirun.openmpi", "mpirun"];
/// It refuses root twice; in a user namespace everybody is root.
pub(super) const ENVIRONMENT: &[(&str, &str)] =
    &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// What comes before the program. `folder` goes with the laboratory, whatever its daemons have left in it when they were killed.
pub(super) fn arguments(trib: &Path, folder: &Path, hosts: &[String], launch: &MpiLaunch) -> Vec<String> {
    let MpiLaunch { ranks, env, options, .. } = launch;
    let slots = ranks.div_ceil(hosts.len().try_into().unwrap_or(u32::MAX));
    let used = hosts.iter().take(usize::try_from(*ranks).unwrap_or(usize::MAX));
    let host = used.map(|host| format!("{host}:{slots}")).collect::<Vec<_>>().join(",");
    let agent = format!("{} lab remote", trib.display());
    let folder = folder.display().to_string();
    let settings = [
        ("plm", "rsh"),
        ("plm_rsh_agent", agent.as_str()),
        // Every daemon is started from h0: a tree of launchers would save nothing here.
        ("plm_rsh_no_tree_spawn", "1"),
        // A session of its own for every host's daemon would be a scheduling group of its own (autogroup), and ranks that
        // yield to others would reach nobody.
        ("orte_leave_session_attached", "1"),
        // Its sessions are named after the host and the user, who is root in every user namespace: in the machine's folder what
        // one user has left of an `h0` would be in the way of another's.
        ("orte_tmpdir_base", folder.as_str()),
        ("oob_tcp_if_include", "eth0"),
        ("btl_tcp_if_include", "eth0"),
        ("btl", "self,tcp"),
        ("pml", "ob1"),
        ("coll", "^hcoll"),
        // All hosts share the machine's cores: who waits must let the others work.
        ("mpi_yield_when_idle", "1"),
    ];
    let mut arguments: Vec<String> = ["-np", &ranks.to_string(), "--host", &host].map(str::to_owned).into();
    arguments.extend(["--map-by", "node", "--bind-to", "none"].map(str::to_owned));
    arguments.extend(settings.iter().flat_map(|(name, value)| ["--mca", name, value]).map(str::to_owned));
    arguments.extend(env.iter().flat_map(|(name, value)| ["-x".to_owned(), format!("{name}={value}")]));
    arguments.extend(options.iter().cloned());
    arguments
}
