//! Forking once more on the way to a program.
//!
//! Who enters a PID namespace stays where he is; only his children are inside. So between fork and exec a command forks
//! again and the process in the middle ends: the program runs as nobody's child, which is init's.
//!
//! A process that ended is forgotten when its parent has asked for it, and until then its PID namespace cannot go away. So
//! what is to be a daemon inside must not be left to the init outside, which may be slow or no init at all: it forks a third
//! time, inside, and becomes the keeper's child.

use std::io;

/// Continues in a new child of init's. To be called between fork and exec only.
pub(crate) fn continue_as_orphan() -> io::Result<()> {
    match fork()? {
        Side::Child => Ok(()),
        Side::Parent(_) => end(),
    }
}

/// Continues in a new child of the keeper's, after entering the keeper's PID namespace. To be called between fork and exec
/// only.
pub(crate) fn continue_as_orphan_inside() -> io::Result<()> {
    match fork()? {
        Side::Child => continue_as_orphan(),
        Side::Parent(child) => {
            // SAFETY: asks for the end of our own child, which comes at once, and for nothing else.
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
    // The plain system call: a C library's fork() runs handlers and takes locks, which nobody may do between fork and exec.
    // SAFETY: SIGCHLD and no other flag is what fork() passes; the child has a copy of this memory and one thread.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        child => Ok(Side::Parent(child as libc::pid_t)),
    }
}

fn end() -> ! {
    // SAFETY: ends this process, without running anything of the program it was copied from.
    unsafe { libc::_exit(0) }
}
