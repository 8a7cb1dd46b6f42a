//! Processor time and context switches of a process, from /proc.

use std::fs;

/// The sum over all threads of a process, since each of them began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Used {
    pub(crate) cpu_ns: u64,
    pub(crate) switches: u64,
}

/// Reads it; for a process that is gone it is zero.
pub(crate) fn used(pid: u32) -> Used {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Used::default();
    };
    let one = |folder: std::path::PathBuf| {
        // The first number is the time on a processor, nanoseconds.
        let time = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        let number = |text: Option<&str>| text.and_then(|word| word.trim().parse::<u64>().ok()).unwrap_or(0);
        let switches =
            status.lines().filter_map(|line| line.split_once("ctxt_switches:")).map(|(_, n)| number(Some(n)));
        (number(time.split_whitespace().next()), switches.sum::<u64>())
    };
    threads.flatten().map(|entry| one(entry.path())).fold(Used::default(), |sum, (cpu_ns, switches)| Used {
        cpu_ns: sum.cpu_ns + cpu_ns,
        switches: sum.switches + switches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows() {
        let before = used(std::process::id());
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = used(std::process::id());
        assert!(after.cpu_ns > before.cpu_ns && after.switches > before.switches);
        assert_eq!(used(u32::MAX), Used::default());
    }
}
