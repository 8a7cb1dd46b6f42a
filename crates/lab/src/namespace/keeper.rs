//! The process that owns a laboratory: process 1 of its PID namespace.
//!
//! It makes the places, says that it is ready, and then only waits. Until its owner tells it to
//! stay, it waits for the end of its standard input; afterwards it waits for ever. The laboratory
//! ends with it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::doors::{Door, Doors, FILE};
use super::init::Init;

/// The byte with which the laboratory's owner tells the keeper, on its standard input, to outlive
/// it.
pub(crate) const STAY: u8 = b's';
/// The file with the names of the places, in the state folder. It has one name on a line, and
/// behind the name of a pinned place its core.
pub(crate) const PLACES: &str = "places";
/// The file in the state folder that the places see as /etc/hosts.
pub(crate) const HOSTS: &str = "hosts";

/// Runs as the keeper of the laboratory whose state is in `folder`, until it is killed or its owner
/// has ended. The `shared` folders are seen by all places, even if they are below /tmp.
///
/// # Errors
/// A sentence that says what the kernel refused.
pub fn run(folder: &Path, shared: &[PathBuf]) -> Result<(), String> {
    if std::process::id() != 1 {
        return Err("a keeper is started by `trib lab up` only".to_owned());
    }
    let places = fs::read_to_string(folder.join(PLACES)).map_err(|error| format!("cannot read {PLACES}: {error}"))?;
    reap_orphans();
    raise_file_limit();
    prepare_mounts(folder)?;
    let doors = make_places(places.lines(), shared)?;
    let text = serde_json::to_vec(&doors).expect("names and numbers only");
    fs::write(folder.join(FILE), text).map_err(|error| format!("cannot write {FILE}: {error}"))?;
    report_ready().map_err(|error| format!("cannot report to the owner: {error}"))?;
    wait_for_owner();
    Ok(())
}

/// Orphans of the whole laboratory become this process's children. With SIGCHLD ignored, the kernel
/// reaps them as they end.
fn reap_orphans() {
    // SAFETY: the call installs no handler; only the disposition changes.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Raises the limit of open files: with five files for each place, a large laboratory needs more
/// than the usual limit.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A refusal does no harm yet: if the limit does not suffice, opening a file fails with a
    // message of its own.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Mounts what all places share, a hosts file with their names, and the /proc of this process.
fn prepare_mounts(folder: &Path) -> Result<(), String> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(refused("make mounts private"))?;
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(refused("mount /proc; in a container this takes --security-opt systempaths=unconfined or root"))?;
    mount_bind(folder.join(HOSTS), "/etc/hosts").map_err(refused("mount /etc/hosts"))
}

/// Makes all places at once, and keeps them open until the keeper ends. They are opened when all
/// have been made, so that no place's own process holds a way into another.
fn make_places<'a>(lines: impl Iterator<Item = &'a str>, shared: &[PathBuf]) -> Result<Doors, String> {
    let mut inits = Vec::new();
    for line in lines {
        let (name, core) = line.split_once(' ').map_or((line, None), |(name, core)| (name, core.parse().ok()));
        let init = Init::start(name, shared).map_err(|error| format!("cannot make namespaces for {name}: {error}"))?;
        inits.push((name, core, init));
    }
    for (name, _, init) in &mut inits {
        init.ready().map_err(|reason| format!("place {name}: {reason}"))?;
    }
    let mut doors = Doors::default();
    for (name, core, init) in inits {
        let door =
            open_door(init.pid, core).map_err(|error| format!("cannot open the namespaces of {name}: {error}"))?;
        doors.places.insert(name.to_owned(), door);
    }
    Ok(doors)
}

/// Opens the namespaces in which a process is.
fn open_door(pid: libc::pid_t, core: Option<usize>) -> io::Result<Door> {
    let path = |kind: &str| format!("/proc/{pid}/ns/{kind}");
    let keep = |kind: &str| File::open(path(kind)).map(keep_open);
    let pid_namespace = fs::read_link(path("pid"))?.to_string_lossy().into_owned();
    let (net, mnt, uts, ipc, pid) = (keep("net")?, keep("mnt")?, keep("uts")?, keep("ipc")?, keep("pid")?);
    Ok(Door { net, mnt, uts, ipc, pid, pid_namespace, core })
}

/// Open until this process ends.
fn keep_open(file: File) -> i32 {
    let number = file.as_raw_fd();
    std::mem::forget(file);
    number
}

/// Reports by the protocol that the daemons use.
fn report_ready() -> io::Result<()> {
    let path = std::env::var_os("NOTIFY_SOCKET").ok_or(io::ErrorKind::NotFound)?;
    UnixDatagram::unbound()?.send_to(b"READY=1", path).map(drop)
}

/// Waits until the owner has ended; for ever, once the owner has told the keeper to stay.
fn wait_for_owner() {
    let mut word = [0];
    if io::stdin().read_exact(&mut word).is_ok() && word == [STAY] {
        loop {
            std::thread::park();
        }
    }
}

pub(super) fn refused<E: std::fmt::Display>(action: &str) -> impl Fn(E) -> String {
    move |error| format!("the kernel refuses to {action}: {error}")
}
