//! The /tmp of a place.
//!
//! An MPI maps files in /tmp as memory that its ranks share, so a /tmp that hosts have in common
//! would be a way around their links. Each place has an empty one of its own. What all places need
//! is there nevertheless, each file and folder under its usual path.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::keeper::refused;

/// Mounts an empty /tmp in this mount namespace, and in it what of `shared` was below the old one:
/// folders, and single files. The rest is not hidden, so nothing has to be done for it.
pub(super) fn mount_own(shared: &[PathBuf]) -> Result<(), String> {
    let below = shared.iter().filter(|path| path.starts_with(TMP) && path.as_os_str() != TMP);
    // They are opened first, because afterwards they have no path any more.
    let kept: Vec<(&PathBuf, File)> = below.map(|path| Ok((path, open(path)?))).collect::<Result<_, String>>()?;
    mount("tmpfs", TMP, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")
        .map_err(refused("mount /tmp"))?;
    for (path, file) in kept {
        make_like(path, &file).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        mount_bind_recursive(format!("/proc/self/fd/{}", file.as_raw_fd()), path)
            .map_err(refused(&format!("mount {}", path.display())))?;
    }
    Ok(())
}

/// Makes a folder where `kept` is one, else a file: something to mount it on.
fn make_like(path: &Path, kept: &File) -> io::Result<()> {
    if kept.metadata()?.is_dir() {
        return fs::create_dir_all(path);
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    if path.exists() { Ok(()) } else { File::create(path).map(drop) }
}

fn open(path: &Path) -> Result<File, String> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    file.map(File::from).map_err(|error| format!("cannot open {}: {error}", path.display()))
}

const TMP: &str = "/tmp";
