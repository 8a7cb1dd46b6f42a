//! MPICH, either spinning as installed or yielding.

use std::process::Command;

use super::{Job, Programs, System};
use crate::network::{Mpi, MpiJob, Network};

pub(super) fn command(
    system: &System,
    network: &dyn Network,
    programs: &Programs,
    job: &Job,
    polite: bool,
) -> Result<Command, String> {
    let mut program = vec![programs.peer("collectives.mpich").into_os_string()];
    program.extend(job.arguments.iter().map(Into::into));
    let mut environment = system.environment.clone();
    if polite {
        environment.push(("LD_PRELOAD".to_owned(), programs.peer("politepoll.so").display().to_string()));
    }
    let options = Vec::new();
    network.mpirun(&MpiJob { mpi: Mpi::Mpich, ranks: job.ranks, map: job.map, environment, options, program })
}
