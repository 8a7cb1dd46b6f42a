//! Process 1 of a place: it makes what is the place's own, and then holds its PID namespace open.
//!
//! Whatever becomes an orphan in the place becomes its child, and the kernel reaps it. It runs no
//! program and ends with the keeper.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::fork::{Side, fork_into};
use super::keeper::refused;
use super::temporary;

/// The namespaces of a place.
const OWN: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;

/// Process 1 of a place, as the keeper sees it.
pub(super) struct Init {
    pub(super) pid: libc::pid_t,
    /// Nothing but its end when the place is made; otherwise what went wrong.
    report: io::PipeReader,
}

impl Init {
    /// Starts one. The calling process must have one thread.
    pub(super) fn start(name: &str, shared: &[PathBuf]) -> io::Result<Self> {
        let (report, mut to_report) = io::pipe()?;
        match fork_into(OWN)? {
            Side::Parent(pid) => Ok(Self { pid, report }),
            Side::Child => {
                if let Err(reason) = furnish(name, shared) {
                    // A keeper that does not read this has ended, and this process with it.
                    let _ = to_report.write_all(reason.as_bytes());
                }
                drop(to_report);
                loop {
                    std::thread::park();
                }
            }
        }
    }

    /// Waits until the place is as it is to be.
    pub(super) fn ready(&mut self) -> Result<(), String> {
        let mut reason = String::new();
        self.report.read_to_string(&mut reason).map_err(|error| format!("cannot hear of it: {error}"))?;
        if reason.is_empty() { Ok(()) } else { Err(reason) }
    }
}

/// Makes this process's fresh namespaces those of a place.
fn furnish(name: &str, shared: &[PathBuf]) -> Result<(), String> {
    rustix::system::sethostname(name.as_bytes()).map_err(refused("set the host name"))?;
    // Programs of different hosts must find neither each other's memory nor each other, and must
    // see their own interfaces only.
    mount_fresh("proc", "/proc", MountFlags::NOEXEC)?;
    mount_fresh("tmpfs", "/dev/shm", MountFlags::empty())?;
    temporary::mount_own(shared)?;
    mount_fresh("sysfs", "/sys", MountFlags::NOEXEC)?;
    // A pause of the program is no reason to forget how much the path carries.
    fs::write(SLOW_START, "0").map_err(|error| format!("cannot write {SLOW_START}: {error}"))?;
    // A machine that runs containers passes bridged packets through its firewall as well. A switch
    // does not, and it costs a node 10 to 20 % of its work. The files exist only where the kernel
    // does this.
    for file in BRIDGE_FIREWALL.iter().filter(|file| Path::new(file).exists()) {
        fs::write(file, "0").map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    Ok(())
}

fn mount_fresh(kind: &str, path: &str, more: MountFlags) -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | more;
    mount(kind, path, kind, flags, None).map_err(refused(&format!("mount {path}")))
}

const SLOW_START: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
const BRIDGE_FIREWALL: [&str; 3] = [
    "/proc/sys/net/bridge/bridge-nf-call-iptables",
    "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
    "/proc/sys/net/bridge/bridge-nf-call-arptables",
];
