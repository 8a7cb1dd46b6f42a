//! Being in a place for the time of one command.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::lab::{Context as _, Lab, LabError};
use crate::topology::PlaceKind;
use crate::ucx::only_links;

/// Runs `command` in a host or switch and passes signals on to it until it has ended.
///
/// The command finds the place's network, host name, /dev/shm and /tmp, the laboratory's processes,
/// the machine's other files, and in its environment `TRIB_LAB`, `TRIB_MANAGER` and, on a host,
/// `TRIB_HOST`. When this process is killed, the command's process is killed too.
///
/// The calling process must have one thread; it is inside the place afterwards.
pub fn visit(lab: &Lab, place: &str, command: &mut Command) -> Result<ExitStatus, LabError> {
    let kind = lab.place_kind(place)?;
    let entry = lab.entry(place)?;
    let folder = std::env::current_dir();
    command.env("TRIB_LAB", lab.folder()).env("TRIB_MANAGER", lab.manager());
    only_links(lab.topology(), command);
    // It names a folder of the machine, in which memory of one host would be in reach of another.
    command.env_remove("TMPDIR");
    match kind {
        PlaceKind::Host => command.env("TRIB_HOST", place),
        PlaceKind::Switch => command.env_remove("TRIB_HOST"),
    };
    let signals = Signals::new(PASSED_ON.iter().chain(&[SIGCHLD])).context(|| "listen for signals".to_owned())?;
    entry.enter().context(|| format!("enter {place}"))?;
    // Entering a mount namespace leads to its root. If the old folder does not exist there, the
    // root will do.
    if let Ok(folder) = folder {
        let _ = std::env::set_current_dir(folder);
    }
    die_with_visitor(command);
    let program = command.get_program().display().to_string();
    let child = command.spawn().context(|| format!("run `{program}`"))?;
    wait_for(child, signals).context(|| format!("wait for `{program}`"))
}

fn wait_for(mut child: Child, mut signals: Signals) -> io::Result<ExitStatus> {
    let from_terminal = io::IsTerminal::is_terminal(&io::stdin());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for signal in signals.wait() {
            // A signal that is typed at a terminal reaches both processes.
            let passed_on = signal != SIGCHLD && !(from_terminal && matches!(signal, SIGINT | SIGQUIT));
            if let Some(signal) = Signal::from_named_raw(signal).filter(|_| passed_on) {
                match kill_process(Pid::from_child(&child), signal) {
                    Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

/// Makes the kernel kill the command's process when we end.
fn die_with_visitor(command: &mut Command) {
    let bind = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If we ended before the call above, the process has become the keeper's child. A parent
        // outside the PID namespace, as we are, would read as 0.
        if getppid() == Some(Pid::INIT) { Err(rustix::io::Errno::SRCH.into()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls and touches no memory but
    // its own stack.
    unsafe { command.pre_exec(bind) };
}

const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
