//! Forking without an exec: on the way to a program, and for processes of the keeper's own.
//!
//! A process that enters a PID namespace stays where it is; only its children are inside. So
//! between fork and exec a command forks again, and the process in the middle ends: the program
//! then runs as an orphan, which init adopts.
//!
//! A process that has ended remains as a zombie until its parent reaps it, and until then its PID
//! namespace cannot go away. A daemon inside must therefore not be left to the init outside, which
//! may be slow or no init at all. It forks a third time, inside, and becomes a child of the place's
//! own init.

use std::io;

/// Continues in a new child of init's. It may be called between fork and exec only.
pub(crate) fn continue_as_orphan() -> io::Result<()> {
    match fork_into(0)? {
        Side::Child => Ok(()),
        Side::Parent(_) => end(0),
    }
}

/// Continues in a new child of the place's init, after entering that place. It may be called
/// between fork and exec only.
pub(crate) fn continue_as_orphan_inside() -> io::Result<()> {
    match fork_into(0)? {
        Side::Child => continue_as_orphan(),
        Side::Parent(child) => {
            // SAFETY: the call waits for our own child, which ends at once, and writes no status.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            end(0)
        }
    }
}

/// The two that return from a fork.
pub(super) enum Side {
    Child,
    Parent(libc::pid_t),
}

/// Forks; the child is in a new namespace of each kind that `namespaces` names, as flags of clone.
/// It may be called between fork and exec, or by a process of one thread.
pub(super) fn fork_into(namespaces: i32) -> io::Result<Side> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // This is the plain system call, because a C library's fork() runs handlers and takes locks,
    // which is not allowed between fork and exec. SAFETY: fork() passes SIGCHLD and no other flag
    // too; the child has a copy of this memory and one thread.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        child => Ok(Side::Parent(child as libc::pid_t)),
    }
}

/// Ends this process without running anything of the program of which it is a copy.
pub(super) fn end(code: i32) -> ! {
    // SAFETY: `_exit` touches no memory.
    unsafe { libc::_exit(code) }
}
