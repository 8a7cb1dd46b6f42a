//! Where the keeper holds the namespaces of each place, so that others can open them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::Entry;

/// What the keeper writes into the state folder when all places exist.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Doors {
    /// The places by name.
    pub(super) places: BTreeMap<String, Door>,
}

/// The keeper's file descriptors for the namespaces of one place, and the core of the machine to
/// which the place keeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Door {
    pub(super) net: i32,
    pub(super) mnt: i32,
    pub(super) uts: i32,
    pub(super) ipc: i32,
    pub(super) pid: i32,
    /// The PID namespace, as its link in /proc reads. A process whose own link reads the same is
    /// inside.
    pub(super) pid_namespace: String,
    pub(super) core: Option<usize>,
}

impl Doors {
    /// Reads what the keeper wrote.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(folder.join(FILE))?)?)
    }

    /// Names of the places.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// True for a process in one of the places.
    pub(crate) fn are_around_us(&self) -> bool {
        let Ok(own) = fs::read_link("/proc/self/ns/pid") else { return false };
        self.places.values().any(|door| own.to_string_lossy() == door.pid_namespace)
    }

    /// The way into a place; `None` when there is no such place.
    ///
    /// # Errors
    /// An error when the keeper, whose process id is `keeper`, has ended or belongs to another
    /// user.
    pub(crate) fn entry(&self, keeper: u32, place: &str) -> io::Result<Option<Entry>> {
        let Some(door) = self.places.get(place) else { return Ok(None) };
        let file = |number: i32| fs::File::open(format!("/proc/{keeper}/fd/{number}"));
        let others = [file(door.mnt)?.into(), file(door.uts)?.into(), file(door.ipc)?.into(), file(door.pid)?.into()];
        Entry::open(keeper, file(door.net)?.into(), others, door.core).map(Some)
    }

    /// The file that stands for a place's network when it is named to `ip`. It can be opened while
    /// the keeper lives.
    pub(crate) fn network(&self, keeper: u32, place: &str) -> Option<PathBuf> {
        self.places.get(place).map(|door| PathBuf::from(format!("/proc/{keeper}/fd/{}", door.net)))
    }
}

/// The file's name in the state folder.
pub(super) const FILE: &str = "places.json";
