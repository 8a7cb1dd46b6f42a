//! Signals that come from a terminal.
//!
//! The kernel sends them to all processes of a process group, a command that runs in ours included.
//! Were they passed on, the command would see each of them twice, and many programs take a second
//! SIGINT for more than the first. What a process sends, with kill(2), comes to us alone.

use libc::siginfo_t;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

/// Signals, each with what the kernel tells of its origin.
pub(crate) type Signals = SignalsInfo<WithRawSiginfo>;

/// Whether a command in our process group has received this signal, too.
pub(crate) fn has_reached_the_command(signal: &siginfo_t) -> bool {
    let leads_session = rustix::process::getsid(None) == Ok(rustix::process::getpid());
    goes_to_the_group(signal.si_signo, signal.si_code, leads_session)
}

fn goes_to_the_group(signal: i32, code: i32, leads_session: bool) -> bool {
    // What processes send has a code of 0 or less.
    let from_kernel = code > 0;
    match signal {
        SIGINT | SIGQUIT => from_kernel,
        // The end of a terminal comes to the leader of its session, and to others when that one
        // has ended.
        SIGHUP => from_kernel && !leads_session,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGTERM;

    #[test]
    fn only_what_the_kernel_sends_to_a_whole_group_has_reached_the_command() {
        for signal in [SIGINT, SIGQUIT, SIGHUP] {
            assert!(goes_to_the_group(signal, KERNEL, false));
            for code in [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL] {
                assert!(!goes_to_the_group(signal, code, false), "{signal} {code}");
            }
        }
        assert!(goes_to_the_group(SIGINT, KERNEL, true) && !goes_to_the_group(SIGHUP, KERNEL, true));
        assert!(!goes_to_the_group(SIGTERM, KERNEL, false));
    }

    /// SI_KERNEL of sigaction(2).
    const KERNEL: i32 = 0x80;
}
