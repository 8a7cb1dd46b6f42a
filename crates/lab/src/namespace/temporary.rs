//! The /tmp of a place.
//!
//! An MPI maps files in /tmp as memory that its ranks share, so a /tmp that hosts have in common
//! would be a way around their links. Each place has an empty one of its own. Folders that all
//! places need are there nevertheless, each under its usual path.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::keeper::refused;

/// Mounts an empty /tmp in this mount namespace, and in it those of the `shared` folders that were
/// below the old one. Other folders are not hidden, so nothing has to be done for them.
pub(super) fn mount_own(shared: &[PathBuf]) -> Result<(), String> {
    let below = shared.iter().filter(|folder| folder.starts_with(TMP) && folder.as_os_str() != TMP);
    // They are opened first, because afterwards they have no path any more.
    let kept: Vec<(&PathBuf, File)> = below.map(|folder| Ok((folder, open(folder)?))).collect::<Result<_, String>>()?;
    mount("tmpfs", TMP, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")
        .map_err(refused("mount /tmp"))?;
    for (folder, file) in kept {
        fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        mount_bind_recursive(format!("/proc/self/fd/{}", file.as_raw_fd()), folder)
            .map_err(refused(&format!("mount {}", folder.display())))?;
    }
    Ok(())
}

fn open(folder: &Path) -> Result<File, String> {
    let file = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    file.map(File::from).map_err(|error| format!("cannot open {}: {error}", folder.display()))
}

const TMP: &str = "/tmp";
