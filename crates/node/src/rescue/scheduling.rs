//! What the rescue asks of the kernel: which threads there are, whether they wait for a processor,
//! and who goes first.

use std::fs;
use std::io;

/// A thread of this process, by the kernel's number.
pub(super) type Thread = libc::pid_t;

/// How a thread is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Policy {
    number: libc::c_int,
    priority: libc::c_int,
}

/// The calling thread.
pub(super) fn own() -> Thread {
    // SAFETY: the call touches no memory.
    unsafe { libc::gettid() }
}

/// All threads of this process.
pub(super) fn threads() -> Vec<Thread> {
    let Ok(entries) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What a thread has run so far, in nanoseconds, if it runs or is ready to.
pub(super) fn ready(thread: Thread) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name, which stands in parentheses, may contain any character.
    let (_, behind) = stat.rsplit_once(')')?;
    if !behind.trim_start().starts_with('R') {
        return None;
    }
    let times = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    times.split_ascii_whitespace().next()?.parse().ok()
}

/// A thread's name.
pub(super) fn name(thread: Thread) -> String {
    fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Lets a thread go before all programs that have no priority of their own; returns how it was
/// scheduled before.
pub(super) fn put_first(thread: Thread) -> io::Result<Policy> {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter lives across both calls.
    let number = unsafe {
        check(libc::sched_getparam(thread, &raw mut parameter))?;
        check(libc::sched_getscheduler(thread))?
    };
    let before = Policy { number: number & !libc::SCHED_RESET_ON_FORK, priority: parameter.sched_priority };
    restore(thread, Policy { number: libc::SCHED_RR, priority: 1 })?;
    Ok(before)
}

/// Schedules a thread like this, and the threads that it starts as all others. A process without
/// privileges could not take the second part back, so it is part of every call.
pub(super) fn restore(thread: Thread, policy: Policy) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: policy.priority };
    let number = policy.number | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter lives across the call.
    check(unsafe { libc::sched_setscheduler(thread, number, &raw const parameter) }).map(drop)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
pub(super) const TIME_SHARED: Policy = Policy { number: libc::SCHED_OTHER, priority: 0 };
#[cfg(test)]
pub(super) const IDLE: Policy = Policy { number: libc::SCHED_IDLE, priority: 0 };

/// Pins the calling thread to the first core that it may use.
#[cfg(test)]
pub(super) fn stay_on_one_core() {
    // SAFETY: sets of cores are plain bits, and the calls affect this thread alone.
    unsafe {
        let (mut all, mut one) = (core::mem::zeroed::<libc::cpu_set_t>(), core::mem::zeroed::<libc::cpu_set_t>());
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&all), &raw mut all), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|core| libc::CPU_ISSET(*core, &all)).unwrap();
        libc::CPU_SET(first, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &raw const one), 0);
    }
}
