//! Where a fabric keeps what must outlive the command that started it.
//!
//! ```text
//! BASE/                   /run/tributary, $XDG_RUNTIME_DIR/tributary or /tmp/tributary-UID, mode 0700
//!   NAME.lock             held while a command starts or stops the fabric
//!   NAME/
//!     boot                the boot it was started in: process ids of another boot mean nothing
//!     topology.toml       what the manager was given
//!     credentials/        the fabric's keys
//!     PROCESS.pid .log    of every daemon
//!     fabric.json         written last: the fabric came up, and this is its address
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::error::{Context, FabricError};
use super::shape::Shape;
use crate::process::{Process, ProcessId};

/// A checked name of a fabric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FabricName(String);

impl FabricName {
    /// Takes 1 to 32 of a-z, 0-9 and '-', beginning with a letter: a file name that cannot lead anywhere else.
    pub fn new(name: &str) -> Result<Self, FabricError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = (1..=32).contains(&name.len()) && name.starts_with(|c: char| c.is_ascii_lowercase());
        if fits && name.chars().all(plain) {
            Ok(Self(name.to_owned()))
        } else {
            Err(FabricError::Name(name.to_owned()))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a later command needs to know of a fabric that came up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) manager: String,
    pub(crate) shape: Shape,
    pub(crate) daemons: Vec<String>,
}

/// The folder of one fabric, locked against other commands for as long as this value lives.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// Locks the folder of `name` in `base`; the folder itself need not exist.
    pub(crate) fn lock(base: &Path, name: &FabricName) -> Result<Self, FabricError> {
        let lock_path = base.join(format!("{}.lock", name.0));
        loop {
            create_private(base)?;
            let lock = match OpenOptions::new().create(true).append(true).mode(0o600).open(&lock_path) {
                // Another command took down the last fabric, and the base with it, since the line above.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.context(|| format!("open {}", lock_path.display()))?,
            };
            flock(&lock, FlockOperation::LockExclusive).context(|| format!("lock {}", lock_path.display()))?;
            // While we waited the file may have been removed with its fabric; then we hold a lock that nobody sees.
            let held = lock.metadata().context(|| format!("look at {}", lock_path.display()))?.ino();
            if fs::metadata(&lock_path).is_ok_and(|now| now.ino() == held) {
                return Ok(Self { path: base.join(&name.0), lock_path, _lock: lock });
            }
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an empty folder and notes the boot.
    pub(crate) fn create(&self) -> Result<(), FabricError> {
        create_private(&self.path)?;
        self.write("boot", boot_id()?.as_bytes())
    }

    /// Writes a file that only we may read; it appears whole or not at all.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), FabricError> {
        let part = self.path.join(format!("{name}.part"));
        let whole = self.path.join(name);
        let written = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)
            .and_then(|mut file| file.write_all(content))
            .and_then(|()| fs::rename(&part, &whole));
        written.context(|| format!("write {}", whole.display()))
    }

    /// Notes that the fabric came up.
    pub(crate) fn write_record(&self, record: &Record) -> Result<(), FabricError> {
        let text = serde_json::to_vec_pretty(record).expect("a record has string keys only");
        self.write("fabric.json", &text)
    }

    /// The record, if the fabric came up in this boot and its record is whole.
    pub(crate) fn record(&self) -> Result<Option<Record>, FabricError> {
        if !self.is_of_this_boot()? {
            return Ok(None);
        }
        let text = fs::read(self.path.join("fabric.json")).unwrap_or_default();
        Ok(serde_json::from_slice(&text).ok())
    }

    /// The daemon's process, while it runs.
    pub(crate) fn process(&self, daemon: &str) -> Result<Option<Process>, FabricError> {
        self.process_of(&self.path.join(format!("{daemon}.pid")))
    }

    /// Every process of this fabric that still runs, whether or not it ever came up.
    pub(crate) fn processes(&self) -> Result<Vec<Process>, FabricError> {
        if !self.is_of_this_boot()? {
            return Ok(Vec::new());
        }
        let mut processes = Vec::new();
        for entry in fs::read_dir(&self.path).context(|| format!("read {}", self.path.display()))? {
            let path = entry.context(|| format!("read {}", self.path.display()))?.path();
            if path.extension().is_some_and(|extension| extension == "pid") {
                processes.extend(self.process_of(&path)?);
            }
        }
        Ok(processes)
    }

    /// Removes the folder; tells whether there was one.
    pub(crate) fn clear(&self) -> Result<bool, FabricError> {
        match fs::remove_dir_all(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context(|| format!("remove {}", self.path.display())),
        }
    }

    /// Removes the lock's file too, and the base if this was the last fabric in it.
    pub(crate) fn vanish(self) {
        let _ = fs::remove_file(&self.lock_path);
        if let Some(base) = self.path.parent() {
            let _ = fs::remove_dir(base);
        }
    }

    fn process_of(&self, pid_file: &Path) -> Result<Option<Process>, FabricError> {
        let line = fs::read_to_string(pid_file).unwrap_or_default();
        let Some(id) = ProcessId::from_stat(&line) else {
            return Ok(None);
        };
        Process::open(id).context(|| format!("open process {} of {}", id.pid, pid_file.display()))
    }

    fn is_of_this_boot(&self) -> Result<bool, FabricError> {
        let noted = fs::read_to_string(self.path.join("boot")).unwrap_or_default();
        Ok(noted == boot_id()?)
    }
}

/// The folder that holds all fabrics of this user on this machine.
pub fn default_base() -> PathBuf {
    let uid = rustix::process::getuid();
    let runtime = if uid.is_root() {
        Some(PathBuf::from("/run"))
    } else {
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
    };
    match runtime {
        Some(folder) if folder.is_absolute() && is_writable(&folder) => folder.join("tributary"),
        _ => PathBuf::from(format!("/tmp/tributary-{}", uid.as_raw())),
    }
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

/// Makes a folder that only we may enter, or makes sure that the one in place is such a folder: in /tmp somebody else may
/// have been there first, and what is in it gets executed and trusted.
fn create_private(path: &Path) -> Result<(), FabricError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).context(|| format!("create {}", path.display())),
    }
    let found = fs::symlink_metadata(path).context(|| format!("look at {}", path.display()))?;
    let uid = rustix::process::getuid().as_raw();
    if found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(FabricError::Unsafe { path: path.to_owned(), uid })
    }
}

fn boot_id() -> Result<String, FabricError> {
    fs::read_to_string(BOOT_ID).context(|| format!("read {BOOT_ID}"))
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::scratch::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn names_cannot_leave_the_folder() {
        for name in ["", ".", "..", "a/b", "-a", "0a", "A", "a b", "a.lock", &"a".repeat(33)] {
            assert!(FabricName::new(name).is_err(), "{name:?}");
        }
        for name in ["local", "a", "lab-2", &"a".repeat(32)] {
            FabricName::new(name).unwrap();
        }
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let scratch = Scratch::new();
        let base = scratch.path().join("open");
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = StateFolder::lock(&base, &FabricName::new("a").unwrap());
        assert!(matches!(refused, Err(FabricError::Unsafe { .. })));
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let scratch = Scratch::new();
        let target = scratch.path().join("target");
        DirBuilder::new().mode(0o700).create(&target).unwrap();
        let base = scratch.path().join("link");
        std::os::unix::fs::symlink(&target, &base).unwrap();
        let refused = StateFolder::lock(&base, &FabricName::new("a").unwrap());
        assert!(matches!(refused, Err(FabricError::Unsafe { .. })));
    }

    #[test]
    fn process_ids_of_an_earlier_boot_are_nobody() {
        let scratch = Scratch::new();
        let folder = StateFolder::lock(scratch.path(), &FabricName::new("a").unwrap()).unwrap();
        folder.create().unwrap();
        let own = fs::read("/proc/self/stat").unwrap();
        folder.write("self.pid", &own).unwrap();
        assert_eq!(folder.processes().unwrap().len(), 1);
        folder.write("boot", b"another").unwrap();
        assert_eq!(folder.processes().unwrap().len(), 0);
    }

    #[test]
    fn one_command_at_a_time_even_when_the_lock_file_goes_away() {
        let scratch = Scratch::new();
        let base = scratch.path().to_owned();
        let name = FabricName::new("a").unwrap();
        let first = StateFolder::lock(&base, &name).unwrap();
        let second = std::thread::spawn({
            let (base, name) = (base.clone(), name.clone());
            move || StateFolder::lock(&base, &name).unwrap()
        });
        first.vanish();
        let second = second.join().unwrap();
        assert!(second.lock_path.exists(), "the second command holds a lock that nobody sees");
    }
}
