//! Which MPI a program is linked with.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use crate::asking::said;

/// The ABI of the MPI library that a program is linked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abi {
    /// Open MPI's.
    OpenMpi,
    /// That of MPICH and its relatives.
    Mpich,
    /// The MPI standard's.
    Standard,
}

/// What a program has of an MPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Linked {
    /// Its ABI.
    pub abi: Abi,
    /// Whether that includes what Fortran calls.
    pub fortran: bool,
}

/// What a program on PATH or with a path of its own is linked with; `None` if it is not linked with
/// an MPI, or that cannot be told: scripts find theirs when they run. The system's `ldd` is asked,
/// which runs nothing of a program that belongs to it.
pub fn linked_with(program: &OsStr) -> Option<Linked> {
    linked_within(program, None).ok().flatten()
}

/// The same, told within a limit.
///
/// # Errors
/// `TimedOut` if the limit is over.
pub fn linked_within(program: &OsStr, limit: Option<Duration>) -> io::Result<Option<Linked>> {
    let program = program.to_owned();
    let command = move || {
        let path = find(&program).ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new("ldd");
        command.arg(path);
        Ok(command)
    };
    match said(command, limit) {
        Ok(asked) => Ok(linked_in(&asked.out)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether a word names a program on PATH or with a path of its own.
pub fn is_program(word: &OsStr) -> bool {
    let about = find(word).and_then(|path| path.metadata().ok());
    about.is_some_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn find(program: &OsStr) -> Option<std::path::PathBuf> {
    let given = std::path::Path::new(program);
    if given.components().count() > 1 {
        return given.exists().then(|| given.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(given)).find(|path| path.is_file())
}

/// Looks for the names of MPI libraries among those that a program needs.
fn linked_in(libraries: &str) -> Option<Linked> {
    let names = || libraries.split_ascii_whitespace();
    let has = |stem: &str| names().any(|name| name.starts_with(stem));
    let abi = if has("libmpi_abi.so") {
        Abi::Standard
    } else if has("libmpi.so.40") || has("libmpi_mpifh.so.40") {
        Abi::OpenMpi
    } else if has("libmpich.so") || has("libmpi.so.12") || has("libmpichfort.so") {
        Abi::Mpich
    } else {
        return None;
    };
    let fortran = ["libmpi_mpifh.so", "libmpi_usempi", "libmpichfort.so", "libmpifort.so"].into_iter().any(has);
    Some(Linked { abi, fortran })
}

impl Abi {
    /// Its name in those of our libraries.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Abi::OpenMpi => "openmpi",
            Abi::Mpich => "mpich",
            Abi::Standard => "abi",
        }
    }

    /// What builds our library for it.
    pub(crate) fn built_by(self) -> &'static str {
        match self {
            Abi::OpenMpi => "make -C mpi MPICC=mpicc.openmpi",
            Abi::Mpich => "make -C mpi MPICC=mpicc.mpich",
            Abi::Standard => "make -C mpi",
        }
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abi::OpenMpi => "Open MPI's ABI",
            Abi::Mpich => "MPICH's ABI",
            Abi::Standard => "the MPI standard's ABI",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_by_the_libraries_that_they_need() {
        for (library, expected) in [
            ("\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x0)\n", Some(Abi::OpenMpi)),
            ("\tlibmpich.so.12 => not found\n", Some(Abi::Mpich)),
            ("\tlibmpi.so.12 => /opt/intel/libmpi.so.12 (0x0)\n", Some(Abi::Mpich)),
            ("\tlibmpi_abi.so.1 => /x/libmpi_abi.so.1 (0x0)\n", Some(Abi::Standard)),
            ("\tlibm.so.6 => /lib/libm.so.6 (0x0)\n", None),
        ] {
            assert_eq!(linked_in(library).map(|linked| linked.abi), expected, "{library}");
        }
        assert_eq!(linked_with(OsStr::new("sh")), None);
        assert_eq!(linked_with(OsStr::new("/nonexistent")), None);
        assert!(is_program(OsStr::new("sh")) && !is_program(OsStr::new("/tmp")) && !is_program(OsStr::new("-np")));
    }

    #[test]
    fn programs_in_fortran_are_told_by_their_mpis_library_for_it() {
        let c = "\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x0)\n";
        for (more, fortran) in [
            ("", false),
            ("\tlibmpi_mpifh.so.40 => /usr/lib/libmpi_mpifh.so.40 (0x0)\n", true),
            ("\tlibmpi_usempif08.so.40 => /usr/lib/libmpi_usempif08.so.40 (0x0)\n", true),
        ] {
            assert_eq!(linked_in(&format!("{c}{more}")), Some(Linked { abi: Abi::OpenMpi, fortran }), "{more}");
        }
    }
}
