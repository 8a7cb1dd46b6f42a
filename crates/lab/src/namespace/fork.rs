//! Forking once more on the way to a program.
//!
//! A process that enters a PID namespace stays where it is; only its children are inside. So
//! between fork and exec a command forks again, and the process in the middle ends: the program
//! then runs as an orphan, which init adopts.
//!
//! A process that has ended remains as a zombie until its parent reaps it, and until then its PID
//! namespace cannot go away. A daemon inside must therefore not be left to the init outside, which
//! may be slow or no init at all. It forks a third time, inside, and becomes the keeper's child.

use std::io;

/// Continues in a new child of init's. It may be called between fork and exec only.
pub(crate) fn continue_as_orphan() -> io::Result<()> {
    match fork()? {
        Side::Child => Ok(()),
        Side::Parent(_) => end(),
    }
}

/// Continues in a new child of the keeper's, after entering the keeper's PID namespace. It may be
/// called between fork and exec only.
pub(crate) fn continue_as_orphan_inside() -> io::Result<()> {
    match fork()? {
        Side::Child => continue_as_orphan(),
        Side::Parent(child) => {
            // SAFETY: the call waits for our own child, which ends at once, and writes no status.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            end()
        }
    }
}

enum Side {
    Child,
    Parent(libc::pid_t),
}

fn fork() -> io::Result<Side> {
    // This is the plain system call, because a C library's fork() runs handlers and takes locks,
    // which is not allowed between fork and exec. SAFETY: fork() passes SIGCHLD and no other flag
    // too; the child has a copy of this memory and one thread.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        child => Ok(Side::Parent(child as libc::pid_t)),
    }
}

fn end() -> ! {
    // SAFETY: `_exit` ends this process without running anything of the program of which it is a
    // copy.
    unsafe { libc::_exit(0) }
}
