//! Namespaces for a laboratory that is about to begin.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// What the way in needs, prepared in advance so that nothing is allocated between fork and exec.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    /// How the user's own id becomes root in a user namespace; `None` for root, which needs no user
    /// namespace.
    maps: Option<Maps>,
}

#[derive(Clone, Debug)]
struct Maps {
    uid: String,
    gid: String,
}

impl Fresh {
    /// For the user we are.
    pub(crate) fn new() -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let map = |id: u32| format!("0 {id} 1");
        let maps = (!uid.is_root()).then(|| Maps { uid: map(uid.as_raw()), gid: map(gid.as_raw()) });
        Self { maps }
    }

    /// Moves this process into namespaces of its own, and its children into a PID namespace of
    /// their own. All of them belong to the new user namespace. It may be called between fork and
    /// exec, or by a process of one thread.
    pub(crate) fn begin(&self) -> io::Result<()> {
        if let Some(Maps { uid, gid }) = &self.maps {
            unshare(UnshareFlags::NEWUSER)?;
            write(c"/proc/self/setgroups", "deny")?;
            write(c"/proc/self/uid_map", uid)?;
            write(c"/proc/self/gid_map", gid)?;
        }
        let places = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC;
        unshare(UnshareFlags::NEWPID | places)
    }
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: unshare is dangerous where it ends the sharing of the descriptor table; none of our
    // flags does that.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

fn write(path: &std::ffi::CStr, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}
