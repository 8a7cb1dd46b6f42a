//! Forking once more on the way to a program.
//!
//! Who enters a PID namespace stays where he is; only his children are inside. So between fork and exec a command forks
//! again, the process in the middle ends at once, and the program runs as nobody's child: the keeper's, or init's.

use std::io;

/// Continues in a new child; the process that called ends without a word. To be called between fork and exec only.
pub(crate) fn continue_in_child() -> io::Result<()> {
    // The plain system call: a C library's fork() runs handlers and takes locks, which nobody may do between fork and exec.
    // SAFETY: SIGCHLD and no other flag is what fork() passes; the child has a copy of this memory and one thread.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        // SAFETY: ends this process, without running anything of the program it was copied from.
        _ => unsafe { libc::_exit(0) },
    }
}
