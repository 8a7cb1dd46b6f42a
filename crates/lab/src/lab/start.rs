//! From a topology to daemons that are ready.

use std::fmt::Write as _;
use std::io::{PipeWriter, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity};
use tracing::{info, warn};
use trib_control::{Holder, KeyFolder, ManagerUrl, VALIDITY};
use trib_topology::predict::laboratory_file;

use super::daemon::{Setting, Starting};
use super::error::{Context, LabError};
use super::folder::StateFolder;
use super::record::{Daemon, Record};
use super::{GRACE, KEEPER, Keeper, Lab, LabLaunch, Lifetime, MANAGER};
use crate::namespace::fresh::Fresh;
use crate::namespace::{Doors, keeper};
use crate::network::{tool, wire};
use crate::process::{self, Process};
use crate::topology::{Node, Plan, homes};
use crate::ucx::only_links;

/// Starts everything in an empty folder.
pub(super) fn start(launch: &LabLaunch<'_>, folder: &StateFolder) -> Result<Lab, LabError> {
    let deadline = Instant::now() + launch.limit;
    folder.write(TOPOLOGY, launch.topology.file(launch.name.as_str()).as_bytes())?;
    let credentials = folder.path().join(CREDENTIALS);
    make_keys(launch, &credentials).map_err(|error| LabError::Credentials(error.to_string()))?;
    let mut lifeline = None;
    if let Some(plan) = launch.topology.plan() {
        lifeline = Some(start_keeper(launch, folder, &plan, deadline)?);
        build_network(folder, &plan)?;
    }
    let program = launch.program;
    let daemons = Daemons { launch, program, folder, keeper: find_doors(folder, lifeline.is_some())?, deadline };
    let manager = Daemon { name: MANAGER.to_owned(), address: daemons.start_manager(None)? };
    let address = manager.address;
    let url = ManagerUrl::new(address.ip().to_string(), address.port(), credentials).to_string();
    let wanted: Vec<_> = launch.topology.nodes().into_iter().map(|node| (node, None)).collect();
    let nodes = daemons.start_nodes(&url, &wanted)?;
    let record = Record {
        manager: url,
        topology: launch.topology.clone(),
        daemons: std::iter::once(manager).chain(nodes).collect(),
        program: launch.program.to_owned(),
        lifetime: launch.lifetime,
    };
    folder.write_record(&record)?;
    let mut lab = whole(launch, folder)?;
    if launch.lifetime == Lifetime::Owned {
        lab.owned = true;
        if let Some(keeper) = &mut lab.keeper {
            keeper._lifeline = lifeline;
        }
    } else if let Some(mut lifeline) = lifeline {
        lifeline.write_all(&[keeper::STAY]).context(|| "tell the keeper to stay".to_owned())?;
    }
    Ok(lab)
}

/// Makes the credentials of the manager, of users, and of each node.
fn make_keys(launch: &LabLaunch<'_>, folder: &Path) -> Result<(), trib_control::Error> {
    let keys = KeyFolder::at(folder);
    keys.create(VALIDITY)?;
    for node in launch.topology.nodes() {
        keys.add(&Holder::node(&node.name)?, VALIDITY)?;
    }
    Ok(())
}

/// Starts the daemons that have ended where they ran before, with the same keys and the same
/// topology file. Whatever happens, what runs is not touched.
pub(super) fn repair(launch: &LabLaunch<'_>, folder: &StateFolder, lab: Lab) -> Result<Lab, LabError> {
    let ended = lab.ended();
    for name in &ended {
        warn!("{name} has ended and is started again; its log is {}", lab.log(name).display());
    }
    start_again(launch, folder, &lab, &ended)?;
    whole(launch, folder)
}

/// Starts these daemons, which have ended, where they ran before. When one does not come up, none
/// of them is left.
pub(super) fn start_again(
    launch: &LabLaunch<'_>,
    folder: &StateFolder,
    lab: &Lab,
    ended: &[&str],
) -> Result<(), LabError> {
    let deadline = Instant::now() + launch.limit;
    let keeper = find_doors(folder, lab.keeper.is_some())?;
    // The other daemons run this binary; another version might not speak their protocol.
    let daemons = Daemons { launch, program: &lab.record.program, folder, keeper, deadline };
    let begin = || {
        if ended.contains(&MANAGER) {
            daemons.start_manager(lab.record.address(MANAGER))?;
        }
        let mut nodes = launch.topology.nodes();
        nodes.retain(|node| ended.contains(&node.name.as_str()));
        let at = |node: Node| (lab.record.address(&node.name), node);
        let nodes: Vec<_> = nodes.into_iter().map(at).map(|(address, node)| (node, address)).collect();
        daemons.start_nodes(&lab.record.manager, &nodes)
    };
    if let Err(cause) = begin() {
        let started = ended.iter().map(|name| folder.process(name)).collect::<Result<Vec<_>, _>>()?;
        let started: Vec<Process> = started.into_iter().flatten().collect();
        process::end_all(&started, GRACE).context(|| "end what was started again".to_owned())?;
        return Err(LabError::Repair { daemons: ended.join(", "), cause: Box::new(cause) });
    }
    Ok(())
}

/// The laboratory that has just come up.
fn whole(launch: &LabLaunch<'_>, folder: &StateFolder) -> Result<Lab, LabError> {
    let gone = || std::io::Error::other("a daemon ended as soon as it was ready");
    let lab = Lab::of_folder(folder, launch.name)?.filter(|lab| lab.ended().is_empty());
    lab.ok_or_else(gone).context(|| "start the laboratory".to_owned())
}

/// Starts the process that makes the places. It ends when the pipe that this returns is closed.
fn start_keeper(
    launch: &LabLaunch<'_>,
    folder: &StateFolder,
    plan: &Plan,
    deadline: Instant,
) -> Result<PipeWriter, LabError> {
    tool::check()?;
    let (mut names, mut hosts) = (String::new(), "127.0.0.1 localhost\n".to_owned());
    let cores = if launch.topology.is_pinned() { own_cores()? } else { Vec::new() };
    let homes = (!cores.is_empty()).then(|| homes(plan, cores.len()));
    for (at, place) in plan.places.iter().enumerate() {
        let core = homes.as_ref().map(|homes| format!(" {}", cores[homes[at]])).unwrap_or_default();
        writeln!(names, "{}{core}", place.name).expect("writing to memory cannot fail");
        writeln!(hosts, "{} {}", place.address, place.name).expect("writing to memory cannot fail");
    }
    folder.write(keeper::PLACES, names.as_bytes())?;
    folder.write(keeper::HOSTS, hosts.as_bytes())?;
    folder.make_readable(keeper::HOSTS)?;
    let (input, lifeline) = std::io::pipe().context(|| "make a pipe".to_owned())?;
    let mut command = Command::new(launch.program);
    command.args(["lab", "keep"]).arg(folder.path()).stdin(input);
    for shared in shared_paths(launch, folder) {
        command.arg("--share").arg(shared);
    }
    let starting = Starting::launch(folder.path(), KEEPER, Setting::Fresh(Fresh::new()), launch.lifetime, &mut command)
        .map_err(|error| explain(&error))?;
    // The keeper listens on no address, so the missing address is right.
    let (_name, _nowhere) = starting.ready_somewhere(deadline, launch.limit)?;
    Ok(lifeline)
}

/// What places share even if it is below /tmp: what the laboratory itself needs, and the folder in
/// which the user works. The program is named beside its folder because that may be /tmp itself.
fn shared_paths(launch: &LabLaunch<'_>, folder: &StateFolder) -> Vec<PathBuf> {
    let beside = launch.program.parent().map(Path::to_owned);
    let program = Some(launch.program.to_owned());
    [Some(folder.path().to_owned()), beside, program, std::env::current_dir().ok()].into_iter().flatten().collect()
}

/// The cores that we may run on.
fn own_cores() -> Result<Vec<usize>, LabError> {
    let allowed = sched_getaffinity(None).map_err(std::io::Error::from).context(|| "ask for cores".to_owned())?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect())
}

/// The kernel's answer to a user who may not have namespaces does not say what to do, so this does.
fn explain(error: &LabError) -> LabError {
    let advice = "run as root, or allow user namespaces (sysctl user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)";
    LabError::Unavailable(format!("{error}; {advice}"))
}

/// Makes links and addresses, from the top of the plan down.
fn build_network(folder: &StateFolder, plan: &Plan) -> Result<(), LabError> {
    let gone = || std::io::Error::other("the keeper has ended");
    let keeper = super::find_keeper(folder)?.ok_or_else(gone).context(|| "build the network".to_owned())?;
    let Keeper { pid, doors, .. } = keeper;
    for place in &plan.places {
        let entry = doors.entry(pid, &place.name).context(|| format!("enter {}", place.name))?;
        let entry = entry.ok_or_else(gone).context(|| format!("enter {}", place.name))?;
        let script = wire::ip_script(plan, place, |name| doors.network(pid, name));
        tool::run(&entry, "ip", &["-batch", "-"], &script.unwrap_or_default())?;
    }
    for place in &plan.places {
        if let Some(entry) = doors.entry(pid, &place.name).context(|| format!("enter {}", place.name))? {
            tool::run(&entry, "tc", &["-batch", "-"], &wire::tc_script(plan, place))?;
        }
    }
    Ok(())
}

fn find_doors(folder: &StateFolder, wanted: bool) -> Result<Option<(u32, Doors)>, LabError> {
    let keeper = if wanted { super::find_keeper(folder)? } else { None };
    Ok(keeper.map(|Keeper { pid, doors, .. }| (pid, doors)))
}

/// What the daemons are started with.
struct Daemons<'a> {
    launch: &'a LabLaunch<'a>,
    program: &'a Path,
    folder: &'a StateFolder,
    keeper: Option<(u32, Doors)>,
    deadline: Instant,
}

impl Daemons<'_> {
    /// Starts the manager at its former address, or at any port.
    fn start_manager(&self, address: Option<SocketAddr>) -> Result<SocketAddr, LabError> {
        let nodes = self.launch.topology.nodes();
        let root = nodes.first().expect("a topology has a root");
        let folder = self.folder.path();
        let listen = address.map_or_else(|| any_port(root.listen[0]), |address| address.to_string());
        let mut command = Command::new(self.program);
        command.arg("am").arg("--topology").arg(folder.join(TOPOLOGY));
        // Hosts and nodes share this machine's cores, as they did where these constants were
        // measured.
        self.folder.write(CONSTANTS, laboratory_file().as_bytes())?;
        command.arg("--constants").arg(folder.join(CONSTANTS));
        command.arg("--credentials").arg(folder.join(CREDENTIALS)).arg("--listen").arg(listen);
        // With this file, a manager that is started again knows the jobs that run.
        command.arg("--state").arg(folder.join(JOBS));
        let address = self.start(MANAGER, root, &mut command)?.ready(self.deadline, self.launch.limit)?;
        info!("{MANAGER} listens on {address}");
        Ok(address)
    }

    /// Starts each node at its former address, or at any port. All of them are started before the
    /// first one is waited for, because they find each other in their own time.
    fn start_nodes(&self, manager: &str, nodes: &[(Node, Option<SocketAddr>)]) -> Result<Vec<Daemon>, LabError> {
        let mut starting = Vec::new();
        for (node, address) in nodes {
            let mut command = Command::new(self.program);
            command.args(["an", "--name", &node.name, "--manager", manager, "--listen", &listen(node, *address)]);
            command.args(["--workers", &self.launch.topology.workers().to_string()]);
            let daemon = self.start(&node.name, node, &mut command)?;
            starting.push((&node.name, daemon));
        }
        let mut daemons = Vec::new();
        for (name, node) in starting {
            let address = node.ready(self.deadline, self.launch.limit)?;
            info!("{name} listens on {address}");
            daemons.push(Daemon { name: name.clone(), address });
        }
        Ok(daemons)
    }

    /// Starts a daemon in the node's place, if it has one.
    fn start(&self, name: &str, node: &Node, command: &mut Command) -> Result<Starting, LabError> {
        let entry = match &self.keeper {
            Some((keeper, doors)) => doors.entry(*keeper, &node.name).context(|| format!("enter {}", node.name))?,
            None => None,
        };
        // A daemon reports to us alone and takes its manager from its arguments, so it must not
        // inherit ours.
        command.env_remove("TRIB_MANAGER").stdin(Stdio::null());
        only_links(self.launch.topology, command);
        Starting::launch(
            self.folder.path(),
            name,
            entry.map_or(Setting::Here, Setting::Inside),
            self.launch.lifetime,
            command,
        )
    }
}

/// The addresses on which a node is to listen. The first is the one that it gave when it was ready.
fn listen(node: &Node, first: Option<SocketAddr>) -> String {
    let mut all: Vec<String> = node.listen.iter().map(|address| any_port(*address)).collect();
    if let Some(first) = first {
        all[0] = first.to_string();
    }
    all.join(",")
}

fn any_port(address: IpAddr) -> String {
    SocketAddr::new(address, 0).to_string()
}

const TOPOLOGY: &str = "topology.toml";
const CREDENTIALS: &str = "credentials";
const CONSTANTS: &str = "constants.toml";
const JOBS: &str = "jobs";
