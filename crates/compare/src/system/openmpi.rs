//! Open MPI as installed, tuned, restricted to one algorithm, or under the interposer.

use std::process::Command;

use super::{Job, Programs, System};
use crate::network::{Mpi, MpiJob, Network};

/// Open MPI as installed exchanges long messages at half the link's rate: control messages of its
/// rendezvous queue behind bulk data. Without remote puts and with small socket buffers both
/// directions run at full rate.
pub(super) fn tuned() -> Vec<String> {
    let settings = [("btl_tcp_flags", "send,inplace"), ("btl_tcp_sndbuf", "131072"), ("btl_tcp_rcvbuf", "1048576")];
    settings.iter().flat_map(|(name, value)| mca(name, value)).collect()
}

/// The tuned options, with the collectives that combine the ranks of a host first.
pub(super) fn han() -> Vec<String> {
    let mut options = tuned();
    options.extend(mca("coll_han_priority", "100"));
    options
}

/// The tuned options, with the collectives first that write into memory which all ranks of a host
/// map. They are for communicators of one host alone.
pub(super) fn sm() -> Vec<String> {
    let mut options = tuned();
    options.extend(mca("coll_sm_priority", "100"));
    options
}

/// The tuned options, with this allreduce algorithm for every size.
pub(super) fn with_algorithm(number: u8) -> Vec<String> {
    let mut options = tuned();
    options.extend(mca("coll_tuned_use_dynamic_rules", "1"));
    options.extend(mca(ALGORITHM, &number.to_string()));
    options
}

pub(super) fn has_algorithm(options: &[String]) -> bool {
    options.iter().any(|option| option == ALGORITHM)
}

pub(super) fn command(
    system: &System,
    network: &dyn Network,
    programs: &Programs,
    job: &Job,
    options: &[String],
) -> Result<Command, String> {
    network.mpirun(&mpi_job(system, programs, job, options.to_vec()))
}

/// The same program, with the interposer in front of the MPI.
pub(super) fn interposed(
    system: &System,
    network: &dyn Network,
    programs: &Programs,
    job: &Job,
) -> Result<Command, String> {
    let mut mpi = mpi_job(system, programs, job, tuned());
    mpi.environment.push(("LD_PRELOAD".to_owned(), programs.interposer.display().to_string()));
    // What is measured is the tree, also where a prediction would leave the operation to the MPI.
    mpi.environment.push(("TRIB_MPI".to_owned(), "force".to_owned()));
    mpi.environment.push(("TRIB_MANAGER".to_owned(), network.manager()));
    network.mpirun(&mpi)
}

fn mpi_job(system: &System, programs: &Programs, job: &Job, options: Vec<String>) -> MpiJob {
    let mut program = vec![programs.peer("collectives.openmpi").into_os_string()];
    program.extend(job.arguments.iter().map(Into::into));
    let environment = system.environment.clone();
    MpiJob { mpi: Mpi::OpenMpi, ranks: job.ranks, map: job.map, environment, options, program }
}

fn mca(name: &str, value: &str) -> [String; 3] {
    ["--mca".to_owned(), name.to_owned(), value.to_owned()]
}

const ALGORITHM: &str = "coll_tuned_allreduce_algorithm";
/// Numbers and names of coll/tuned's allreduce algorithms that are not the plain
/// gather-and-broadcast.
pub(super) const ALGORITHMS: [(u8, &str); 5] =
    [(2, "nonoverlapping"), (3, "recursive-doubling"), (4, "ring"), (5, "segmented-ring"), (6, "rabenseifner")];
/// The index of the ring among them.
pub(super) const RING: usize = 2;
