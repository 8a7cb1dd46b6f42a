//! Options of Open MPI 4 for hosts that are namespaces of one machine.

use std::path::Path;

use super::{MpiLaunch, Placement, mca};
use crate::lab::LabError;

/// The names that its launcher may have.
pub(super) const LAUNCHERS: &[&str] = &["mpirun.openmpi", "mpirun"];
/// Open MPI wants two permissions to run as root; in a user namespace every user is root.
pub(super) const ENVIRONMENT: &[(&str, &str)] =
    &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// The arguments before the program.
pub(super) fn arguments(
    trib: &Path,
    hosts: &[String],
    slots: u32,
    launch: &MpiLaunch,
) -> Result<Vec<String>, LabError> {
    let MpiLaunch { ranks, env, options, .. } = launch;
    let host = hosts.iter().map(|host| format!("{host}:{slots}")).collect::<Vec<_>>().join(",");
    let agent = format!("{} lab remote", trib.display());
    // Open MPI's daemons cannot run on the hosts without these.
    let needed = [
        ("plm", "rsh"),
        ("plm_rsh_agent", agent.as_str()),
        // Every daemon is started from h0: a tree of launchers would save nothing here.
        ("plm_rsh_no_tree_spawn", "1"),
        // A session of its own for every host's daemon would be a scheduling group of its own
        // (autogroup), and the yield of a rank would not let ranks on other hosts run.
        ("orte_leave_session_attached", "1"),
        // Ranks map files in these folders, so they belong into what is the host's own. It goes
        // with the laboratory, and with it what Open MPI's daemons left when they were killed.
        ("orte_tmpdir_base", "/tmp"),
    ];
    let usual = [
        ("oob_tcp_if_include", "eth0"),
        ("btl_tcp_if_include", "eth0"),
        // Ranks of one host share its memory. Those of others have other names of hosts.
        ("btl", "self,vader,tcp"),
        ("pml", "ob1"),
        ("coll", "^hcoll"),
        // All hosts share the machine's cores, so a rank that waits must let the others work.
        ("mpi_yield_when_idle", "1"),
    ];
    let (wanted, options) = mca::taken_out(options);
    let settings = mca::merged(&needed, &usual, &wanted)?;
    let by = match launch.placement {
        Placement::Cyclic => "node",
        Placement::Block => "slot",
    };
    let mut arguments: Vec<String> = ["-np", &ranks.to_string(), "--host", &host].map(str::to_owned).into();
    arguments.extend(["--map-by", by, "--bind-to", "none"].map(str::to_owned));
    arguments.extend(settings.into_iter().flat_map(|(name, value)| ["--mca".to_owned(), name, value]));
    arguments.extend(env.iter().flat_map(|(name, value)| ["-x".to_owned(), format!("{name}={value}")]));
    arguments.extend(options);
    Ok(arguments)
}
