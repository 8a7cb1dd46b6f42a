//! One network namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::LabError;
use super::ip::{ip, tool};

/// A namespace that exists under a name of `ip netns`. Who made it owns it: when that value is dropped, the namespace is
/// removed with every process in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    handle: Arc<File>,
    owned: bool,
}

impl Namespace {
    /// Makes it, with its loopback up.
    pub(super) fn create(name: String) -> Result<Self, LabError> {
        ip(&format!("netns add {name}"))?;
        let namespace = match Self::open(name.clone()) {
            Ok(mut namespace) => {
                namespace.owned = true;
                namespace
            }
            Err(error) => {
                let _ = remove(&name);
                return Err(error);
            }
        };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// One that somebody else owns.
    pub(super) fn open(name: String) -> Result<Self, LabError> {
        let path = Path::new(FOLDER).join(&name);
        match File::open(&path) {
            Ok(handle) => Ok(Self { name, handle: Arc::new(handle), owned: false }),
            Err(source) => Err(LabError::Io { action: format!("open {}", path.display()), source }),
        }
    }

    /// True if there is one of this name.
    pub(super) fn exists(name: &str) -> bool {
        Path::new(FOLDER).join(name).exists()
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the command's process run inside. Its pid is the program's own, so it can be stopped and continued.
    pub fn enter(&self, command: &mut Command) {
        let handle = Arc::clone(&self.handle);
        let enter = move || move_into(&handle);
        // SAFETY: between fork and exec the closure makes one system call; it neither allocates nor locks.
        unsafe { command.pre_exec(enter) };
    }

    /// The command that runs `program` inside.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        self.enter(&mut command);
        command
    }

    /// Runs `work` on a thread of its own inside; sockets that it opens stay inside wherever they are passed.
    ///
    /// # Panics
    /// When `work` does.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let inside = || {
            move_into(&self.handle)?;
            Ok(work())
        };
        std::thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// `ip -n NAME` with these arguments.
    pub(super) fn ip(&self, arguments: &str) -> Result<String, LabError> {
        ip(&format!("-n {} {arguments}", self.name))
    }

    /// `nft` inside, with one argument.
    pub(super) fn nft(&self, script: &str) -> Result<String, LabError> {
        tool(self.command("nft").arg(script))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if let Err(error) = remove(&self.name) {
            tracing::warn!("namespace {} stays behind: {error}", self.name);
        }
    }
}

/// Kills what runs in a namespace and removes its name; the kernel then takes its links apart.
pub(super) fn remove(name: &str) -> Result<(), LabError> {
    let removed = kill_inside(name).and_then(|()| ip(&format!("netns del {name}")).map(drop));
    // Two sweeps at once find the same orphan; the slower one has nothing left to do.
    if Namespace::exists(name) { removed } else { Ok(()) }
}

/// Nobody but the laboratory's own processes can be inside a namespace that the laboratory made.
fn kill_inside(name: &str) -> Result<(), LabError> {
    let pids = ip(&format!("netns pids {name}"))?;
    for pid in pids.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    Ok(())
}

fn move_into(handle: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Where `ip netns` keeps the names.
const FOLDER: &str = "/run/netns";
