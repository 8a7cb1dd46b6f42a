//! Where a laboratory keeps what must outlive the command that started it.
//!
//! ```text
//! BASE/                   /run/tributary, $XDG_RUNTIME_DIR/tributary or /tmp/tributary-UID, 0700
//!   NAME.lock             held while a command starts or stops the laboratory
//!   NAME/
//!     boot                the boot it was started in: process ids of another boot mean nothing
//!     pid-namespace       and the PID namespace: those of another mean nothing either
//!     owner               of one that ends with a process: this process
//!     topology.toml       what the manager was given
//!     credentials/        the fabric's keys
//!     jobs                the manager's own state, where it may be started again
//!     PROCESS.pid .log    of every daemon, and of the keeper, which holds a lock on PROCESS.pid
//!     places, hosts       what the keeper is to make: names of places, and their /etc/hosts
//!     places.json         what the keeper has made
//!     faults.json         what is broken on purpose
//!     ompi.HOST.UID/      sessions of Open MPI that run, or were killed
//!     lab.json            written last: it came up, and this is its address
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::error::{Context, LabError};
use super::record::Record;
use crate::process::{Process, ProcessId};
use rustix::fs::{FlockOperation, flock};

/// A checked name of a laboratory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabName(String);

impl LabName {
    /// Takes 1 to 32 of a-z, 0-9 and '-', beginning with a letter. Such a name is a file name and
    /// cannot lead out of the folder.
    pub fn new(name: &str) -> Result<Self, LabError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = (1..=32).contains(&name.len()) && name.starts_with(|c: char| c.is_ascii_lowercase());
        if fits && name.chars().all(plain) { Ok(Self(name.to_owned())) } else { Err(LabError::Name(name.to_owned())) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The folder of one laboratory. It is locked against other commands for as long as this value
/// lives.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: Option<File>,
}

impl StateFolder {
    /// Locks the folder of `name` in `base`; the folder itself need not exist.
    pub(crate) fn lock(base: &Path, name: &LabName) -> Result<Self, LabError> {
        let folder = Self::lock_by(base, name, FlockOperation::LockExclusive)?;
        Ok(folder.expect("who waits gets the lock"))
    }

    /// The folder as it is, without the lock: it may only be read.
    pub(crate) fn look_at(base: &Path, name: &LabName) -> Self {
        Self { path: base.join(&name.0), lock_path: base.join(format!("{}.lock", name.0)), _lock: None }
    }

    /// Does the same as [`Self::lock`] without waiting; `None` when another command holds the lock.
    pub(crate) fn try_lock(base: &Path, name: &LabName) -> Result<Option<Self>, LabError> {
        Self::lock_by(base, name, FlockOperation::NonBlockingLockExclusive)
    }

    fn lock_by(base: &Path, name: &LabName, operation: FlockOperation) -> Result<Option<Self>, LabError> {
        let lock_path = base.join(format!("{}.lock", name.0));
        loop {
            create_private(base)?;
            let lock = match OpenOptions::new().create(true).append(true).mode(0o600).open(&lock_path) {
                // Since the line above, another command took down the last laboratory, and the base
                // with it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.context(|| format!("open {}", lock_path.display()))?,
            };
            match flock(&lock, operation) {
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => continue,
                locked => locked.context(|| format!("lock {}", lock_path.display()))?,
            }
            // While we waited, the file may have been removed with its laboratory. Then nobody else
            // sees the lock that we hold.
            let held = lock.metadata().context(|| format!("look at {}", lock_path.display()))?.ino();
            if fs::metadata(&lock_path).is_ok_and(|now| now.ino() == held) {
                return Ok(Some(Self { path: base.join(&name.0), lock_path, _lock: Some(lock) }));
            }
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an empty folder and notes the boot and our PID namespace.
    pub(crate) fn create(&self) -> Result<(), LabError> {
        create_private(&self.path)?;
        self.write(NAMESPACE, pid_namespace()?.as_bytes())?;
        self.write("boot", boot_id()?.as_bytes())
    }

    /// Notes that the laboratory is to end with this process.
    pub(crate) fn write_owner(&self) -> Result<(), LabError> {
        self.write(OWNER, &fs::read(OWN_STAT).context(|| format!("read {OWN_STAT}"))?)
    }

    /// Whether the process with which the laboratory was to end has ended.
    pub(crate) fn has_lost_its_owner(&self) -> Result<bool, LabError> {
        let owner = self.path.join(OWNER);
        Ok(owner.exists() && self.process_of(&owner)?.is_none())
    }

    /// Writes a file that only we may read; it appears whole or not at all.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), LabError> {
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

    /// Lets every user read a file of the folder. The folder itself stays closed: the file can be
    /// reached only where it is mounted elsewhere.
    pub(crate) fn make_readable(&self, name: &str) -> Result<(), LabError> {
        let path = self.path.join(name);
        let readable = fs::set_permissions(&path, fs::Permissions::from_mode(0o644));
        readable.context(|| format!("open {} for all", path.display()))
    }

    /// Notes that the laboratory is up.
    pub(crate) fn write_record(&self, record: &Record) -> Result<(), LabError> {
        let text = serde_json::to_vec_pretty(record).expect("a record has string keys only");
        self.write("lab.json", &text)
    }

    /// The record, if the laboratory came up in this boot.
    ///
    /// # Errors
    /// [`LabError::Record`] when there is a record and this version does not understand it.
    pub(crate) fn record(&self) -> Result<Option<Record>, LabError> {
        if !self.is_of_this_boot()? {
            return Ok(None);
        }
        let path = self.path.join("lab.json");
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|_| LabError::Record(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context(|| format!("read {}", path.display())),
        }
    }

    /// The daemon's process; `None` when it does not run.
    pub(crate) fn process(&self, daemon: &str) -> Result<Option<Process>, LabError> {
        self.process_of(&self.path.join(format!("{daemon}.pid")))
    }

    /// Every process of this laboratory that still runs, whether or not it ever came up.
    pub(crate) fn processes(&self) -> Result<Vec<Process>, LabError> {
        if !self.is_of_this_boot()? {
            return Ok(Vec::new());
        }
        let mut processes = Vec::new();
        for pid_file in self.pid_files()? {
            processes.extend(self.process_of(&pid_file)?);
        }
        Ok(processes)
    }

    /// Refuses a laboratory with processes in a PID namespace that is not ours. They can be neither
    /// seen nor ended from here; only the locks that they hold tell of them.
    pub(crate) fn check_in_sight(&self) -> Result<(), LabError> {
        if self.runs_elsewhere()? { Err(LabError::Elsewhere(self.path.clone())) } else { Ok(()) }
    }

    /// Whether something of it runs in a PID namespace that is not ours.
    pub(crate) fn runs_elsewhere(&self) -> Result<bool, LabError> {
        if !self.is_of_another_namespace()? {
            return Ok(false);
        }
        for path in self.pid_files()? {
            let file = OpenOptions::new().read(true).write(true).open(&path);
            let file = file.context(|| format!("open {}", path.display()))?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the folder and tells whether there was one.
    pub(crate) fn clear(&self) -> Result<bool, LabError> {
        match fs::remove_dir_all(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context(|| format!("remove {}", self.path.display())),
        }
    }

    /// Removes the lock's file too, and the base if this was the last laboratory in it.
    pub(crate) fn vanish(self) {
        let _ = fs::remove_file(&self.lock_path);
        if let Some(base) = self.path.parent() {
            let _ = fs::remove_dir(base);
        }
    }

    fn pid_files(&self) -> Result<Vec<PathBuf>, LabError> {
        let entries = fs::read_dir(&self.path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.context(|| format!("read {}", self.path.display()))?;
        let is_pid_file = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pid");
        Ok(entries.iter().map(fs::DirEntry::path).filter(is_pid_file).collect())
    }

    fn process_of(&self, pid_file: &Path) -> Result<Option<Process>, LabError> {
        if self.is_of_another_namespace()? {
            return Ok(None);
        }
        let line = fs::read_to_string(pid_file).unwrap_or_default();
        let Some(id) = ProcessId::from_stat(&line) else {
            return Ok(None);
        };
        Process::open(id).context(|| format!("open process {} of {}", id.pid, pid_file.display()))
    }

    fn is_of_this_boot(&self) -> Result<bool, LabError> {
        let noted = fs::read_to_string(self.path.join("boot")).unwrap_or_default();
        Ok(noted == boot_id()?)
    }

    /// Earlier versions noted no PID namespace; what they started counts as of ours.
    fn is_of_another_namespace(&self) -> Result<bool, LabError> {
        let noted = fs::read_to_string(self.path.join(NAMESPACE)).unwrap_or_default();
        Ok(!noted.is_empty() && noted != pid_namespace()?)
    }
}

/// The folder that holds all laboratories of this user on this machine.
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

/// Makes a folder that only we may enter, or makes sure that the folder in place is such a one. In
/// /tmp another user may have made it first, and what is in it is executed and trusted.
fn create_private(path: &Path) -> Result<(), LabError> {
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
        Err(LabError::Unsafe { path: path.to_owned(), uid })
    }
}

fn boot_id() -> Result<String, LabError> {
    fs::read_to_string(BOOT_ID).context(|| format!("read {BOOT_ID}"))
}

/// Our PID namespace, as its link in /proc reads.
fn pid_namespace() -> Result<String, LabError> {
    let link = fs::read_link(OWN_NAMESPACE).context(|| format!("read {OWN_NAMESPACE}"))?;
    Ok(link.to_string_lossy().into_owned())
}

/// The file that notes the PID namespace.
const NAMESPACE: &str = "pid-namespace";
/// The file that names the process with which the laboratory is to end.
pub(super) const OWNER: &str = "owner";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const OWN_NAMESPACE: &str = "/proc/self/ns/pid";
const OWN_STAT: &str = "/proc/self/stat";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::scratch::Scratch;

    #[test]
    fn names_cannot_leave_the_folder() {
        for name in ["", ".", "..", "a/b", "-a", "0a", "A", "a b", "a.lock", &"a".repeat(33)] {
            assert!(LabName::new(name).is_err(), "{name:?}");
        }
        for name in ["local", "a", "lab-2", &"a".repeat(32)] {
            LabName::new(name).unwrap();
        }
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let scratch = Scratch::new();
        let base = scratch.path().join("open");
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = StateFolder::lock(&base, &LabName::new("a").unwrap());
        assert!(matches!(refused, Err(LabError::Unsafe { .. })));
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let scratch = Scratch::new();
        let target = scratch.path().join("target");
        DirBuilder::new().mode(0o700).create(&target).unwrap();
        let base = scratch.path().join("link");
        std::os::unix::fs::symlink(&target, &base).unwrap();
        let refused = StateFolder::lock(&base, &LabName::new("a").unwrap());
        assert!(matches!(refused, Err(LabError::Unsafe { .. })));
    }

    #[test]
    fn process_ids_of_an_earlier_boot_are_nobody() {
        let scratch = Scratch::new();
        let folder = StateFolder::lock(scratch.path(), &LabName::new("a").unwrap()).unwrap();
        folder.create().unwrap();
        let own = fs::read("/proc/self/stat").unwrap();
        folder.write("self.pid", &own).unwrap();
        assert_eq!(folder.processes().unwrap().len(), 1);
        folder.write("boot", b"another").unwrap();
        assert_eq!(folder.processes().unwrap().len(), 0);
    }

    #[test]
    fn processes_of_another_pid_namespace_are_nobody_and_keep_the_folder_while_they_run() {
        let scratch = Scratch::new();
        let folder = StateFolder::lock(scratch.path(), &LabName::new("a").unwrap()).unwrap();
        folder.create().unwrap();
        folder.write_owner().unwrap();
        folder.write("self.pid", &fs::read(OWN_STAT).unwrap()).unwrap();
        let daemon = File::open(folder.path().join("self.pid")).unwrap();
        flock(&daemon, FlockOperation::LockShared).unwrap();
        assert!(!folder.has_lost_its_owner().unwrap());
        folder.check_in_sight().unwrap();
        folder.write(NAMESPACE, b"pid:[1]").unwrap();
        assert!(folder.processes().unwrap().is_empty() && folder.process("self").unwrap().is_none());
        assert!(matches!(folder.check_in_sight(), Err(LabError::Elsewhere(_))));
        drop(daemon);
        folder.check_in_sight().unwrap();
        assert!(folder.has_lost_its_owner().unwrap());
        fs::remove_file(folder.path().join(NAMESPACE)).unwrap();
        assert_eq!(folder.processes().unwrap().len(), 1);
    }

    #[test]
    fn one_command_at_a_time_even_when_the_lock_file_goes_away() {
        let scratch = Scratch::new();
        let base = scratch.path().to_owned();
        let name = LabName::new("a").unwrap();
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
