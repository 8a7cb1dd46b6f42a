//! The processor time and context switches that this process has used so far.

/// Processor time and context switches of all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) cpu_ns: f64,
    pub(super) switches: f64,
}

impl Usage {
    /// Reads the usage so far.
    pub(super) fn now() -> Usage {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        // SAFETY: all-zero bytes are a valid `rusage`, which the call then fills in.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
            usage
        };
        Usage {
            cpu_ns: time.tv_sec as f64 * 1e9 + time.tv_nsec as f64,
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as f64,
        }
    }
}
