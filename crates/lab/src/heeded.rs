//! Signals that a process was started to ignore: `nohup` ignores SIGHUP, and a script's `&` SIGINT.
//! Who catches such a signal nevertheless ends with the terminal, and so do the programs that it
//! starts, because a signal that is caught is none that they ignore.

use std::fs;

/// Those of the signals that this process does not ignore.
pub fn heeded(signals: &[i32]) -> Vec<i32> {
    let ignored = fs::read_to_string("/proc/self/status").map(|status| ignored(&status)).unwrap_or(0);
    signals.iter().copied().filter(|signal| ignored & bit(*signal) == 0).collect()
}

/// The mask of ignored signals in a status of proc(5).
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: i32) -> u64 {
    signal.checked_sub(1).and_then(|at| 1u64.checked_shl(at as u32)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    #[test]
    fn a_mask_tells_which_signals_are_ignored() {
        let status = "Name:\ttrib\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        assert_eq!(ignored(status) & bit(SIGHUP), 1);
        assert_eq!(ignored(status) & bit(SIGINT), 2);
        assert_eq!((ignored(status) & bit(SIGTERM), ignored("no mask"), bit(0)), (0, 0, 0));
        assert!(heeded(&[SIGTERM]).contains(&SIGTERM));
    }
}
