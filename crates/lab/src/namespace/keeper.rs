//! The process that owns a laboratory: process 1 of its PID namespace.
//!
//! It makes the places, says that it is ready, and then only waits. Until its owner tells it to
//! stay, it waits for the end of its standard input; afterwards it waits for ever. The laboratory
//! ends with it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{UnshareFlags, move_into_link_name_space};

use super::doors::{Door, Doors, FILE};
use super::fresh::unshare;
use super::temporary;

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

/// Raises the limit of open files: with four files for each place, a large laboratory needs more
/// than the usual limit.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A refusal does no harm yet: if the limit does not suffice, opening a file fails with a
    // message of its own.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Mounts what all places share: /proc with the laboratory's own processes, and a hosts file with
/// its names.
fn prepare_mounts(folder: &Path) -> Result<(), String> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(refused("make mounts private"))?;
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(refused("mount /proc; in a container this takes --security-opt systempaths=unconfined or root"))?;
    mount_bind(folder.join(HOSTS), "/etc/hosts").map_err(refused("mount /etc/hosts"))
}

fn make_places<'a>(lines: impl Iterator<Item = &'a str>, shared: &[PathBuf]) -> Result<Doors, String> {
    let home = Home::open().map_err(|error| format!("cannot open the keeper's own namespaces: {error}"))?;
    let link = fs::read_link("/proc/self/ns/pid").map_err(|error| format!("cannot read /proc: {error}"))?;
    let mut doors = Doors { pid_namespace: link.to_string_lossy().into_owned(), ..Doors::default() };
    for line in lines {
        let (name, core) = line.split_once(' ').map_or((line, None), |(name, core)| (name, core.parse().ok()));
        let door = make_place(name, shared).map_err(|reason| format!("place {name}: {reason}"))?;
        let door = Door { core, ..door };
        doors.places.insert(name.to_owned(), door);
        home.come_back().map_err(|error| format!("cannot leave {name}: {error}"))?;
    }
    Ok(doors)
}

/// Makes one place around this process, and keeps it open until the keeper ends.
fn make_place(name: &str, shared: &[PathBuf]) -> Result<Door, String> {
    unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC)
        .map_err(|error| format!("cannot make namespaces: {error}"))?;
    rustix::system::sethostname(name.as_bytes()).map_err(refused("set the host name"))?;
    // Programs of different hosts must not find each other's memory, and must see their own
    // interfaces only.
    mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)
        .map_err(refused("mount /dev/shm"))?;
    temporary::mount_own(shared)?;
    mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(refused("mount /sys"))?;
    // A pause of the program is no reason to forget how much the path carries.
    fs::write(SLOW_START, "0").map_err(|error| format!("cannot write {SLOW_START}: {error}"))?;
    // A machine that runs containers passes bridged packets through its firewall as well. A switch
    // does not, and it costs a node 10 to 20 % of its work. The files exist only where the kernel
    // does this.
    for file in BRIDGE_FIREWALL.iter().filter(|file| Path::new(file).exists()) {
        fs::write(file, "0").map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    let keep = |kind: &str| own(kind).map(keep_open).map_err(|error| format!("cannot open namespace {kind}: {error}"));
    Ok(Door { net: keep("net")?, mnt: keep("mnt")?, uts: keep("uts")?, ipc: keep("ipc")?, core: None })
}

/// The keeper's own namespaces, to which it comes back from each place.
struct Home([OwnedFd; 4]);

impl Home {
    fn open() -> io::Result<Self> {
        Ok(Self([own("net")?, own("uts")?, own("ipc")?, own("mnt")?]))
    }

    fn come_back(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|handle| Ok(move_into_link_name_space(handle.as_fd(), None)?))
    }
}

fn own(kind: &str) -> io::Result<OwnedFd> {
    File::open(format!("/proc/self/ns/{kind}")).map(Into::into)
}

/// Open until this process ends.
fn keep_open(handle: OwnedFd) -> i32 {
    let number = handle.as_raw_fd();
    std::mem::forget(handle);
    number
}

/// Reports by the protocol that the daemons use.
fn report_ready() -> io::Result<()> {
    let path = std::env::var_os("NOTIFY_SOCKET").ok_or(io::ErrorKind::NotFound)?;
    UnixDatagram::unbound()?.send_to(b"READY=1", path).map(drop)
}

/// Returns when the owner has ended; never, once the owner has told the keeper to stay.
fn wait_for_owner() {
    let mut word = [0];
    loop {
        match io::stdin().read(&mut word) {
            Ok(1) if word[0] == STAY => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
    loop {
        std::thread::park();
    }
}

pub(super) fn refused<E: std::fmt::Display>(action: &str) -> impl Fn(E) -> String {
    move |error| format!("the kernel refuses to {action}: {error}")
}

const SLOW_START: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
const BRIDGE_FIREWALL: [&str; 3] = [
    "/proc/sys/net/bridge/bridge-nf-call-iptables",
    "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
    "/proc/sys/net/bridge/bridge-nf-call-arptables",
];
