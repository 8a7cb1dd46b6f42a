//! Files in memory that processes share. They have no name and cannot change their size: nobody can
//! cut one below a process that has mapped it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};

/// A file of `len` zeros. `what` is its name for people who look at a process's mappings.
pub(super) fn create(what: &str, len: usize) -> io::Result<OwnedFd> {
    let memory = memfd_create(what, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, len as u64)?;
    fcntl_add_seals(&memory, SEALS)?;
    Ok(memory)
}

/// Checks that what another process has sent is such a file, of this length.
pub(super) fn check(memory: &OwnedFd, len: usize) -> io::Result<()> {
    // A descriptor that is no memory file has no seals to tell of.
    let seals = fcntl_get_seals(memory)?;
    if !seals.contains(SEALS) || fstat(memory)?.st_size != len as i64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "what the far end sent is no memory to share"));
    }
    Ok(())
}

const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK).union(SealFlags::SEAL);
