//! What of ours takes a program's collectives.

use std::path::PathBuf;

use crate::{Abi, Launcher, Mpi, Parts};

/// What is loaded into the ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// The component for Open MPI, in this folder.
    Component(PathBuf),
    /// This library is preloaded.
    Preloaded(PathBuf),
}

/// What the user wants of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// The component.
    Component,
    /// The preloaded library.
    Preload,
}

/// Why nothing of ours fits.
#[derive(Debug, thiserror::Error)]
pub enum NoWay {
    /// Launcher and program are of two MPIs: each rank would be a program of its own.
    #[error(
        "the program is linked for {abi}, and {launcher} is of {mpi}: each rank would take itself for a program of one rank. \
         Say --launcher with that MPI's own"
    )]
    TwoMpis {
        /// The program's.
        abi: Abi,
        /// The launcher.
        launcher: String,
        /// Its MPI.
        mpi: String,
    },
    /// The component is wanted and cannot be used.
    #[error("the component is for Open MPI 4.1, and {0}")]
    NoComponent(String),
    /// Nothing is installed.
    #[error("{0} is not there; `make install` installs it where it finds an mpicc")]
    NotInstalled(String),
}

impl Way {
    /// What fits this launcher and a program with this ABI, if that is known.
    ///
    /// # Errors
    /// If nothing does.
    pub fn of(launcher: &Launcher, abi: Option<Abi>, parts: &Parts, means: Option<Means>) -> Result<Way, NoWay> {
        let fits = match (abi, &launcher.mpi) {
            (None | Some(Abi::Standard), _) => true,
            (Some(Abi::OpenMpi), mpi) => matches!(mpi, Mpi::OpenMpi(..)),
            (Some(Abi::Mpich), mpi) => *mpi == Mpi::Hydra,
        };
        if let Some(abi) = abi.filter(|_| !fits) {
            let (launcher, mpi) = (launcher.path.display().to_string(), launcher.mpi.to_string());
            return Err(NoWay::TwoMpis { abi, launcher, mpi });
        }
        let component = parts.component_folder().filter(|_| launcher.mpi == Mpi::OpenMpi(4, 1));
        match (means, component) {
            (None | Some(Means::Component), Some(folder)) => return Ok(Way::Component(folder)),
            (Some(Means::Component), None) if launcher.mpi == Mpi::OpenMpi(4, 1) => {
                let missing = "it is not installed: the mpicc at hand had no inner headers (Debian: libopenmpi-dev)";
                return Err(NoWay::NoComponent(missing.to_owned()));
            }
            (Some(Means::Component), None) => {
                return Err(NoWay::NoComponent(format!("{} is of {}", launcher.path.display(), launcher.mpi)));
            }
            _ => {}
        }
        parts
            .preloaded()
            .map(Way::Preloaded)
            .ok_or_else(|| NoWay::NotInstalled(parts.preloaded_at().display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_component_comes_first_and_a_program_of_another_mpi_is_refused() {
        let folder = std::env::temp_dir().join(format!("trib-launcher-{}", std::process::id()));
        fs::create_dir_all(folder.join("tributary/openmpi")).unwrap();
        let parts = Parts::beside(&folder.join("trib"));
        let launcher = |mpi| Launcher { path: "mpirun".into(), mpi, said: String::new() };
        let (old, new) = (launcher(Mpi::OpenMpi(4, 1)), launcher(Mpi::OpenMpi(5, 0)));
        assert!(matches!(Way::of(&old, None, &parts, None), Err(NoWay::NotInstalled(_))));
        fs::write(folder.join("libtrib_mpi.so"), "").unwrap();
        let parts = Parts::beside(&folder.join("trib"));
        assert!(matches!(Way::of(&old, None, &parts, None), Ok(Way::Preloaded(_))), "there is no component");
        assert!(matches!(Way::of(&old, None, &parts, Some(Means::Component)), Err(NoWay::NoComponent(_))));
        fs::write(folder.join("tributary/openmpi/mca_coll_tributary.so"), "").unwrap();
        assert!(matches!(Way::of(&old, Some(Abi::OpenMpi), &parts, None), Ok(Way::Component(_))));
        assert!(matches!(Way::of(&old, None, &parts, Some(Means::Preload)), Ok(Way::Preloaded(_))));
        assert!(matches!(Way::of(&new, None, &parts, None), Ok(Way::Preloaded(_))));
        assert!(matches!(Way::of(&new, None, &parts, Some(Means::Component)), Err(NoWay::NoComponent(_))));
        assert!(matches!(Way::of(&launcher(Mpi::Hydra), Some(Abi::Mpich), &parts, None), Ok(Way::Preloaded(_))));
        let two = Way::of(&launcher(Mpi::Hydra), Some(Abi::OpenMpi), &parts, None).unwrap_err().to_string();
        assert!(two.contains("each rank would take itself"), "{two}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
