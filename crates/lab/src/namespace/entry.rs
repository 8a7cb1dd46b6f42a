//! The way into a place.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};

/// Open handles on the namespaces of one place, and on the laboratory's user namespace.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    handles: Arc<Handles>,
}

#[derive(Debug)]
struct Handles {
    /// `None` when we are in it already, because the kernel refuses to enter one's own user
    /// namespace.
    user: Option<OwnedFd>,
    net: OwnedFd,
    /// Mount, UTS (host name), IPC (System V memory) and PID namespaces.
    others: [OwnedFd; 4],
    /// The one core on which processes of this place run.
    core: Option<usize>,
}

impl Entry {
    /// Opens the keeper's user namespace, besides the namespaces of a place.
    pub(super) fn open(keeper: u32, net: OwnedFd, others: [OwnedFd; 4], core: Option<usize>) -> io::Result<Self> {
        let users = Path::new("/proc").join(keeper.to_string()).join("ns/user");
        let is_own = std::fs::read_link(&users)? == std::fs::read_link("/proc/self/ns/user")?;
        let user = if is_own { None } else { Some(File::open(&users)?.into()) };
        Ok(Self { handles: Arc::new(Handles { user, net, others, core }) })
    }

    /// Moves this process into the place, and its children into the place's PID namespace, which
    /// the kernel allows to a process outside all places only. If the place keeps to a core, so
    /// does the process. The working directory becomes `/`. It may be called between fork and
    /// exec, or by a process of one thread.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.enter_network()?;
        for handle in &self.handles.others {
            move_into_link_name_space(handle.as_fd(), None)?;
        }
        match self.handles.core {
            None => Ok(()),
            Some(core) => {
                let mut own = CpuSet::new();
                own.set(core);
                Ok(sched_setaffinity(None, &own)?)
            }
        }
    }

    /// Makes the command's process run in the place's network namespace and in no other of its
    /// namespaces: for `ip`, `tc` and `nft`.
    pub(crate) fn only_network(&self, command: &mut Command) {
        let entry = self.clone();
        // SAFETY: between fork and exec the closure makes system calls only; it neither allocates
        // nor locks.
        unsafe { command.pre_exec(move || entry.enter_network()) };
    }

    fn enter_network(&self) -> io::Result<()> {
        if let Some(user) = &self.handles.user {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        Ok(move_into_link_name_space(self.handles.net.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// Makes the kernel kill the command's process when this process ends, which has entered the
/// command's place.
pub(crate) fn end_with_us(command: &mut Command) {
    let bind = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If we ended before the call above, the process has become a child of the place's init. A
        // parent outside the PID namespace, as we are, would read as 0.
        if getppid() == Some(Pid::INIT) { Err(rustix::io::Errno::SRCH.into()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls and touches no memory but
    // its own stack.
    unsafe { command.pre_exec(bind) };
}
