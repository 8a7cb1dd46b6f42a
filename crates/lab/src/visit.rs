//! Being in a place for the time of one command.

use std::io;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::heeded::heeded;
use crate::lab::{Context as _, Lab, LabError};
use crate::namespace::{Porter, SOCKET, ask, end_with_us};
use crate::topology::PlaceKind;
use crate::typed::{Signals, has_reached_the_command};
use crate::ucx::only_links;

/// Runs `command` in a host or switch and passes signals on to it until it has ended.
///
/// The command finds the place's network, host name, processes, /dev/shm and /tmp, the machine's
/// other files, and in its environment `TRIB_LAB`, `TRIB_MANAGER` and, on a host, `TRIB_HOST`. When
/// this process is killed, the command's process is killed too.
///
/// The calling process must have one thread. It is inside the place afterwards, unless it was in
/// one before: then it is run by the porter of the visit that led there.
pub fn visit(lab: &Lab, place: &str, command: &mut Command) -> Result<ExitStatus, LabError> {
    let kind = lab.place_kind(place)?;
    command.env("TRIB_LAB", lab.folder()).env("TRIB_MANAGER", lab.manager());
    only_links(lab.topology(), command);
    // It names a folder of the machine, in which memory of one host would be in reach of another.
    command.env_remove("TMPDIR");
    match kind {
        PlaceKind::Host => command.env("TRIB_HOST", place),
        PlaceKind::Switch => command.env_remove("TRIB_HOST"),
    };
    let program = command.get_program().display().to_string();
    if lab.is_around_us() {
        return ask(place, command, PASSED_ON).context(|| format!("run `{program}` in {place}"));
    }
    let entry = lab.entry(place)?;
    let porter = Porter::start(lab.folder(), |place| lab.entry(place)).context(|| "start a porter".to_owned())?;
    command.env(SOCKET, porter.socket());
    let folder = std::env::current_dir();
    let signals =
        Signals::new(heeded(PASSED_ON).iter().chain(&[SIGCHLD])).context(|| "listen for signals".to_owned())?;
    entry.enter().context(|| format!("enter {place}"))?;
    // Entering a mount namespace leads to its root. If the old folder does not exist there, the
    // root will do.
    if let Ok(folder) = folder {
        let _ = std::env::set_current_dir(folder);
    }
    end_with_us(command);
    let child = command.spawn().context(|| format!("run `{program}`"))?;
    wait_for(child, signals).context(|| format!("wait for `{program}`"))
}

fn wait_for(mut child: Child, mut signals: Signals) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for signal in signals.wait() {
            let passed_on = signal.si_signo != SIGCHLD && !has_reached_the_command(&signal);
            if let Some(signal) = Signal::from_named_raw(signal.si_signo).filter(|_| passed_on) {
                match kill_process(Pid::from_child(&child), signal) {
                    Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

const PASSED_ON: &[i32] = &[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
