//! What a process inherits, for one that has another parent.

use rustix::process::{Pid, getpriority_process, setpriority_process};
use rustix::thread::{sched_getaffinity, sched_setaffinity};

/// Gives this process the cores, the niceness and the limits of `other`. What the kernel refuses
/// stays as it is: then the other has more than our user may give.
pub(super) fn take_after(other: Pid) {
    let _ = sched_getaffinity(Some(other)).and_then(|cores| sched_setaffinity(None, &cores));
    let _ = getpriority_process(Some(other)).and_then(|nice| setpriority_process(None, nice));
    for resource in 0..=LAST_LIMIT {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the first call writes one limit, the second reads it.
        unsafe {
            if libc::prlimit(other.as_raw_nonzero().get(), resource, std::ptr::null(), &raw mut limit) == 0 {
                libc::setrlimit(resource, &raw const limit);
            }
        }
    }
}

/// The kernel numbers limits from 0 to this one.
const LAST_LIMIT: libc::__rlimit_resource_t = libc::RLIMIT_RTTIME;
