//! What of ours takes a program's collectives.

use std::path::PathBuf;

use crate::{Abi, Launcher, Linked, Mpi, Parts};

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
    /// The launcher's MPI has no ABI of the standard.
    #[error(
        "the program is linked for the MPI standard's ABI, which Open MPI has not before version 6, and {0} is of {1}: \
         start it with the MPI that it was built for. If a library translates between the two, say --through preload"
    )]
    NoStandardAbi(String, String),
    /// The component is wanted and cannot be used.
    #[error("the component is for Open MPI 4.1, and {0}")]
    NoComponent(String),
    /// Nothing is installed.
    #[error("{0} is not there; `make install` installs it where it finds an mpicc")]
    NotInstalled(String),
    /// What the preloaded library needs for the program's ABI is not installed.
    #[error("{path} is not there, which {abi} needs; in Tributary's sources `{build}` builds it")]
    NotBuilt {
        /// The library.
        path: String,
        /// For which ABI it is.
        abi: Abi,
        /// What builds it.
        build: &'static str,
    },
}

impl Way {
    /// What fits this launcher and a program that is linked so, if that is known.
    ///
    /// # Errors
    /// If nothing does.
    pub fn of(launcher: &Launcher, linked: Option<Linked>, parts: &Parts, means: Option<Means>) -> Result<Way, NoWay> {
        let abi = linked.map(|linked| linked.abi);
        let fits = match (abi, &launcher.mpi) {
            (None | Some(Abi::Standard), _) => true,
            (Some(Abi::OpenMpi), mpi) => matches!(mpi, Mpi::OpenMpi(..)),
            (Some(Abi::Mpich), mpi) => *mpi == Mpi::Hydra,
        };
        if let Some(abi) = abi.filter(|_| !fits) {
            let (launcher, mpi) = (launcher.path.display().to_string(), launcher.mpi.to_string());
            return Err(NoWay::TwoMpis { abi, launcher, mpi });
        }
        if abi == Some(Abi::Standard) && is_before_the_standards(&launcher.mpi) && means.is_none() {
            return Err(NoWay::NoStandardAbi(launcher.path.display().to_string(), launcher.mpi.to_string()));
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
        let library =
            parts.preloaded().ok_or_else(|| NoWay::NotInstalled(parts.preloaded_at().display().to_string()))?;
        // Scripts that Hydra starts may find an MPI with either of two ABIs.
        let needed = abi.or_else(|| is_before_the_standards(&launcher.mpi).then_some(Abi::OpenMpi));
        if let Some(abi) = needed
            && let (path, false) = parts.for_abi(abi)
        {
            return Err(NoWay::NotBuilt { path: path.display().to_string(), abi, build: abi.built_by() });
        }
        Ok(Way::Preloaded(library))
    }

    /// Whether collectives that such a program calls in Fortran stay with the MPI all the same.
    pub fn leaves_out_fortran(&self, launcher: &Launcher, linked: Option<Linked>) -> bool {
        matches!(self, Way::Preloaded(_))
            && matches!(launcher.mpi, Mpi::OpenMpi(..))
            && linked.is_some_and(|linked| linked.fortran)
    }
}

/// Whether it is an Open MPI that has its own ABI alone.
fn is_before_the_standards(mpi: &Mpi) -> bool {
    matches!(mpi, Mpi::OpenMpi(major, _) if *major < 6)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder of its own with these files.
    fn folder(name: &str, files: &[&str]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("trib-launcher-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("tributary/openmpi")).unwrap();
        for file in files {
            fs::write(folder.join(file), "").unwrap();
        }
        folder
    }

    fn launcher(mpi: Mpi) -> Launcher {
        Launcher { path: "mpirun".into(), mpi, said: String::new() }
    }

    fn linked(abi: Abi) -> Option<Linked> {
        Some(Linked { abi, fortran: false })
    }

    const COMPONENT: &str = "tributary/openmpi/mca_coll_tributary.so";

    #[test]
    fn the_component_comes_first_and_a_program_of_another_mpi_is_refused() {
        let folder = folder("first", &[]);
        let parts = Parts::beside(&folder.join("trib"));
        let (old, new) = (launcher(Mpi::OpenMpi(4, 1)), launcher(Mpi::OpenMpi(5, 0)));
        assert!(matches!(Way::of(&old, None, &parts, None), Err(NoWay::NotInstalled(_))));
        for name in ["libtrib_mpi.so", "libtrib_mpi_openmpi.so", "libtrib_mpi_mpich.so"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let parts = Parts::beside(&folder.join("trib"));
        assert!(matches!(Way::of(&old, None, &parts, None), Ok(Way::Preloaded(_))), "there is no component");
        assert!(matches!(Way::of(&old, None, &parts, Some(Means::Component)), Err(NoWay::NoComponent(_))));
        fs::write(folder.join(COMPONENT), "").unwrap();
        assert!(matches!(Way::of(&old, linked(Abi::OpenMpi), &parts, None), Ok(Way::Component(_))));
        assert!(matches!(Way::of(&old, None, &parts, Some(Means::Preload)), Ok(Way::Preloaded(_))));
        assert!(matches!(Way::of(&new, None, &parts, None), Ok(Way::Preloaded(_))));
        assert!(matches!(Way::of(&new, None, &parts, Some(Means::Component)), Err(NoWay::NoComponent(_))));
        assert!(matches!(Way::of(&launcher(Mpi::Hydra), linked(Abi::Mpich), &parts, None), Ok(Way::Preloaded(_))));
        let two = Way::of(&launcher(Mpi::Hydra), linked(Abi::OpenMpi), &parts, None).unwrap_err().to_string();
        assert!(two.contains("each rank would take itself"), "{two}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_library_for_the_programs_abi_must_be_there() {
        let folder = folder("abi", &["libtrib_mpi.so", "libtrib_mpi_openmpi.so", "libtrib_mpi_abi.so"]);
        let parts = Parts::beside(&folder.join("trib"));
        let hydra = launcher(Mpi::Hydra);
        let missing = Way::of(&hydra, linked(Abi::Mpich), &parts, None).unwrap_err().to_string();
        assert!(
            missing.contains("/libtrib_mpi_mpich.so is not there") && missing.contains("MPICC=mpicc.mpich"),
            "{missing}"
        );
        assert!(matches!(Way::of(&hydra, linked(Abi::Standard), &parts, None), Ok(Way::Preloaded(_))));
        assert!(matches!(Way::of(&hydra, None, &parts, None), Ok(Way::Preloaded(_))), "a script may have either");
        fs::remove_file(folder.join("libtrib_mpi_openmpi.so")).unwrap();
        let open = Way::of(&launcher(Mpi::OpenMpi(5, 0)), None, &parts, None);
        assert!(matches!(open, Err(NoWay::NotBuilt { abi: Abi::OpenMpi, .. })));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_for_the_standards_abi_is_none_of_an_old_open_mpis() {
        let folder = folder("standard", &["libtrib_mpi.so", "libtrib_mpi_abi.so", COMPONENT]);
        let parts = Parts::beside(&folder.join("trib"));
        for version in [(4, 1), (5, 0)] {
            let mpi = launcher(Mpi::OpenMpi(version.0, version.1));
            let none = Way::of(&mpi, linked(Abi::Standard), &parts, None);
            assert!(matches!(none, Err(NoWay::NoStandardAbi(..))), "{version:?}");
            let said = Way::of(&mpi, linked(Abi::Standard), &parts, Some(Means::Preload));
            assert!(matches!(said, Ok(Way::Preloaded(_))), "{version:?}");
        }
        let new = Way::of(&launcher(Mpi::OpenMpi(6, 0)), linked(Abi::Standard), &parts, None);
        assert!(matches!(new, Ok(Way::Preloaded(_))));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn fortran_under_open_mpi_needs_the_component() {
        let fortran = |abi| Some(Linked { abi, fortran: true });
        let (old, hydra) = (launcher(Mpi::OpenMpi(4, 1)), launcher(Mpi::Hydra));
        let (preloaded, component) = (Way::Preloaded("/l".into()), Way::Component("/c".into()));
        assert!(preloaded.leaves_out_fortran(&old, fortran(Abi::OpenMpi)));
        assert!(!component.leaves_out_fortran(&old, fortran(Abi::OpenMpi)));
        assert!(!preloaded.leaves_out_fortran(&old, linked(Abi::OpenMpi)) && !preloaded.leaves_out_fortran(&old, None));
        assert!(!preloaded.leaves_out_fortran(&hydra, fortran(Abi::Mpich)));
    }
}
