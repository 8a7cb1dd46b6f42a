//! Which MPI is at hand, and what of ours takes the collectives of its programs.

use std::ffi::OsStr;
use std::time::Duration;

use trib_launcher::{Launcher, NoLauncher, NoWay, Parts, Way, linked_within};

use super::check::Report;
use crate::commands::own_program;

/// Asks the launcher on PATH, and looks at the program if one is given. Without an MPI nothing is
/// wrong: jobs need none.
pub(super) fn examine(program: Option<&OsStr>, limit: Duration, report: &mut Report) {
    let Ok(trib) = own_program() else { return };
    let parts = Parts::beside(&trib);
    let library = parts.preloaded_at().display().to_string();
    let launcher = match Launcher::ask_within(OsStr::new("mpirun"), &library, Some(limit)) {
        Ok(launcher) => launcher,
        Err(NoLauncher::Missing(..)) => return report.good("mpi", "no mpirun on PATH, which only MPI programs need"),
        Err(silent @ NoLauncher::Silent(..)) => {
            return report.warn("mpi", silent, "MPI programs would not start either");
        }
        Err(unknown) => return report.warn("mpi", unknown, "`trib mpirun --launcher PROGRAM` takes another one"),
    };
    let linked = match program.map(|program| linked_within(program, Some(limit))).transpose() {
        Ok(linked) => linked.flatten(),
        Err(_) => {
            let found = format!("{}; ldd did not end within {limit:?}", launcher.said);
            return report.warn("mpi", found, "look whether the file systems of the program and its libraries answer");
        }
    };
    let of = match (program, linked) {
        (Some(program), Some(linked)) => format!("; {} is linked for {}", program.display(), linked.abi),
        (Some(program), None) => format!("; {} is linked with no MPI that can be told", program.display()),
        (None, _) => String::new(),
    };
    match Way::of(&launcher, linked, &parts, None) {
        Ok(way) if way.leaves_out_fortran(&launcher, linked) => report.warn(
            "mpi",
            format!(
                "{}{of}, and for Fortran, whose collectives stay with that MPI; those of C go through the tree if C \
                 initialises MPI",
                launcher.said
            ),
            "Open MPI shows no calls of Fortran to a library that is preloaded: take Open MPI 4.1, for which there is a \
             component, or MPICH",
        ),
        Ok(way) => report.good("mpi", format!("{}{of}: {}", launcher.said, words(&way))),
        Err(why @ (NoWay::NotInstalled(_) | NoWay::NotBuilt { .. })) => {
            report.warn(
                "mpi",
                format!("{}{of}: its programs' collectives stay with it", launcher.said),
                why.to_string(),
            );
        }
        Err(why) => report.warn("mpi", format!("{}{of}", launcher.said), why.to_string()),
    }
}

fn words(way: &Way) -> &'static str {
    match way {
        Way::Component(_) => {
            "the component takes collectives of C, C++ and Fortran (trib mpirun, or mpi/README.md by hand)"
        }
        Way::Preloaded(_) => "libtrib_mpi.so takes blocking collectives (trib mpirun, or LD_PRELOAD)",
    }
}
