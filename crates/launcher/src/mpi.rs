//! Which MPI a launcher belongs to.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::asking::said;

/// An MPI, as its launcher describes itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mpi {
    /// Open MPI, with its version: (4, 1).
    OpenMpi(u32, u32),
    /// MPICH, and what starts programs as it does (MVAPICH, Intel MPI): by Hydra.
    Hydra,
}

/// A launcher that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launcher {
    /// Where it is.
    pub path: PathBuf,
    /// Its MPI.
    pub mpi: Mpi,
    /// The line in which it says so.
    pub said: String,
}

/// Why there is no launcher.
#[derive(Debug, thiserror::Error)]
pub enum NoLauncher {
    /// It is no program that runs.
    #[error("{0} cannot be started ({1}); load your MPI's module, or say --launcher PATH")]
    Missing(String, String),
    /// It is not one of those whose options are known.
    #[error(
        "{0} says \"{1}\" of itself, and options are known of Open MPI's and of Hydra (MPICH, Intel MPI). Under any other \
         launcher let LD_PRELOAD={2} be set for the ranks"
    )]
    Unknown(String, String, String),
    /// It has not said in time what it is.
    #[error(
        "{0} --version did not end within {1:?}: look whether the file system that it is on answers, and run it by hand"
    )]
    Silent(String, Duration),
}

impl Launcher {
    /// Asks the launcher of this name, on PATH or with a path of its own.
    ///
    /// # Errors
    /// If it does not run, or is of no MPI whose options are known. `library` is what is to be
    /// preloaded then.
    pub fn ask(name: &OsStr, library: &str) -> Result<Launcher, NoLauncher> {
        Self::ask_within(name, library, None)
    }

    /// Asks it in the same way, for a limited time.
    ///
    /// # Errors
    /// Also if the limit is over.
    pub fn ask_within(name: &OsStr, library: &str, limit: Option<Duration>) -> Result<Launcher, NoLauncher> {
        let (words, program) = (name.to_string_lossy().into_owned(), name.to_owned());
        let command = || {
            let mut command = Command::new(program);
            command.arg("--version");
            Ok(command)
        };
        let asked = said(command, limit).map_err(|error| match (limit, error.kind()) {
            (Some(limit), io::ErrorKind::TimedOut) => NoLauncher::Silent(words.clone(), limit),
            _ => NoLauncher::Missing(words.clone(), error.to_string()),
        })?;
        let text = asked.out + &asked.err;
        let Some((mpi, said)) = mpi_of(&text) else {
            let first = text.lines().next().unwrap_or("nothing").trim().to_owned();
            return Err(NoLauncher::Unknown(words, first, library.to_owned()));
        };
        Ok(Launcher { path: PathBuf::from(name), mpi, said })
    }
}

/// Reads what a launcher says of itself.
fn mpi_of(text: &str) -> Option<(Mpi, String)> {
    let line = |wanted: &str| text.lines().find(|line| line.contains(wanted)).map(|line| line.trim().to_owned());
    // "mpirun (Open MPI) 4.1.4"; under another name than mpirun, "mpiexec (OpenRTE) 4.1.4".
    if let Some(said) = line("(Open MPI)").or_else(|| line("(OpenRTE)")) {
        let version = said.rsplit(' ').next()?;
        let mut numbers = version.split(['.', 'r', 'a']).map_while(|part| part.parse().ok());
        return Some((Mpi::OpenMpi(numbers.next()?, numbers.next().unwrap_or(0)), said));
    }
    line("Intel(R) MPI Library").or_else(|| line("HYDRA")).map(|said| (Mpi::Hydra, said))
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mpi::OpenMpi(major, minor) => write!(f, "Open MPI {major}.{minor}"),
            Mpi::Hydra => f.write_str("MPICH or a relative of it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_say_what_they_are() {
        for (text, expected) in [
            ("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...", Some(Mpi::OpenMpi(4, 1))),
            ("mpirun (Open MPI) 5.0.11\n", Some(Mpi::OpenMpi(5, 0))),
            ("mpirun.openmpi (OpenRTE) 4.1.4\n", Some(Mpi::OpenMpi(4, 1))),
            ("HYDRA build details:\n    Version:    4.0.2\n", Some(Mpi::Hydra)),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.19\n", Some(Mpi::Hydra)),
            ("slurm 23.02\n", None),
            ("", None),
        ] {
            assert_eq!(mpi_of(text).map(|found| found.0), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_launcher_is_named() {
        let missing = Launcher::ask(OsStr::new("/nonexistent/mpirun"), "lib").unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/mpirun cannot be started"), "{missing}");
        let other = Launcher::ask(OsStr::new("true"), "/x/libtrib_mpi.so").unwrap_err().to_string();
        assert!(other.contains("LD_PRELOAD=/x/libtrib_mpi.so"), "{other}");
        let limit = Some(Duration::from_secs(60));
        assert_eq!(
            Launcher::ask_within(OsStr::new("true"), "/x/libtrib_mpi.so", limit).unwrap_err().to_string(),
            other
        );
    }
}
