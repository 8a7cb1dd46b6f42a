//! What of ours is installed for MPI programs.

use std::path::{Path, PathBuf};

use crate::Abi;

/// The files beside `trib`: `bin/trib` and `lib/`, or all in one folder where they were built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    folder: PathBuf,
}

impl Parts {
    /// Those that belong to this `trib`.
    pub fn beside(trib: &Path) -> Parts {
        let own = trib.parent().unwrap_or(Path::new("."));
        let built = own.join(PRELOADED);
        let folder = if built.exists() { own.to_owned() } else { own.join("../lib") };
        Parts { folder: folder.canonicalize().unwrap_or(folder) }
    }

    /// The library that is preloaded, if it is there.
    pub fn preloaded(&self) -> Option<PathBuf> {
        Some(self.folder.join(PRELOADED)).filter(|path| path.exists())
    }

    /// Where it would be.
    pub fn preloaded_at(&self) -> PathBuf {
        self.folder.join(PRELOADED)
    }

    /// Where the library is that the preloaded one needs for programs with this ABI, and whether it
    /// is there.
    pub fn for_abi(&self, abi: Abi) -> (PathBuf, bool) {
        let path = self.folder.join(format!("libtrib_mpi_{}.so", abi.key()));
        let is_there = path.exists();
        (path, is_there)
    }

    /// The folder of the component for Open MPI 4.1, if it is there.
    pub fn component_folder(&self) -> Option<PathBuf> {
        let folder = self.folder.join("tributary/openmpi");
        folder.join("mca_coll_tributary.so").exists().then_some(folder)
    }
}

const PRELOADED: &str = "libtrib_mpi.so";
