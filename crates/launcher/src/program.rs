//! Which MPI a program is linked with.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};

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

/// The ABI of a program on PATH or with a path of its own; `None` if it is not linked with an MPI,
/// or that cannot be told: scripts find theirs when they run. The system's `ldd` is asked, which
/// runs nothing of a program that belongs to it.
pub fn abi_of(program: &OsStr) -> Option<Abi> {
    let path = find(program)?;
    let asked = Command::new("ldd").arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    abi_in(&String::from_utf8_lossy(&asked.stdout))
}

fn find(program: &OsStr) -> Option<std::path::PathBuf> {
    let given = std::path::Path::new(program);
    if given.components().count() > 1 {
        return given.exists().then(|| given.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(given)).find(|path| path.is_file())
}

/// Looks for the names of MPI libraries among those that a program needs.
fn abi_in(libraries: &str) -> Option<Abi> {
    let names = || libraries.split_ascii_whitespace();
    let has = |stem: &str| names().any(|name| name.starts_with(stem));
    if has("libmpi_abi.so") {
        Some(Abi::Standard)
    } else if has("libmpi.so.40") || has("libmpi_mpifh.so.40") {
        Some(Abi::OpenMpi)
    } else if has("libmpich.so") || has("libmpi.so.12") || has("libmpichfort.so") {
        Some(Abi::Mpich)
    } else {
        None
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
            assert_eq!(abi_in(library), expected, "{library}");
        }
        assert_eq!(abi_of(OsStr::new("sh")), None);
        assert_eq!(abi_of(OsStr::new("/nonexistent")), None);
    }
}
