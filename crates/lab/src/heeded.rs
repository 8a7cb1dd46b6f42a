//! Whether a process was started to outlive its terminal: `nohup` has it ignore SIGHUP. Who catches
//! that signal nevertheless ends with the terminal, and so do the programs that it starts, because
//! a signal that is caught is none that they ignore.
//!
//! SIGINT is another matter: a script's `&` has a process ignore it, and yet it is by SIGINT that
//! other programs end a job.

use std::fs;

use signal_hook::consts::SIGHUP;

/// The signals, but SIGHUP where this process was started to ignore it.
pub fn heeded(signals: &[i32]) -> Vec<i32> {
    let ignored = fs::read_to_string("/proc/self/status").map(|status| ignored(&status)).unwrap_or(0);
    signals.iter().copied().filter(|signal| *signal != SIGHUP || ignored & bit(SIGHUP) == 0).collect()
}

/// The mask of ignored signals in a status of proc(5).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// A signal in such a mask.
const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::{SIGINT, SIGTERM};

    #[test]
    fn a_mask_tells_whether_hangups_are_ignored() {
        let status = |mask: &str| format!("Name:\ttrib\nSigBlk:\t0000000000000000\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        assert_eq!(ignored(&status("0000000000001003")) & bit(SIGHUP), 1);
        assert_eq!(ignored(&status("0000000000001002")) & bit(SIGHUP), 0);
        assert_eq!((ignored("no mask"), ignored(&status("x"))), (0, 0));
        assert_eq!(heeded(&[SIGINT, SIGTERM]), [SIGINT, SIGTERM]);
    }
}
