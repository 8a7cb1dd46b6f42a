//! From a topology to daemons that are ready.

use std::fmt::Write as _;
use std::io::{PipeWriter, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity};
use tracing::info;
use trib_control::{Credentials, ManagerUrl};

use super::daemon::{Setting, Starting};
use super::error::{Context, LabError};
use super::folder::StateFolder;
use super::record::Record;
use super::{KEEPER, Keeper, Lab, LabLaunch, Lifetime, MANAGER};
use crate::namespace::fresh::Fresh;
use crate::namespace::{Doors, keeper};
use crate::network::{tool, wire};
use crate::topology::{Node, Plan, homes};

/// Starts everything in an empty folder.
pub(super) fn start(launch: &LabLaunch<'_>, folder: &StateFolder) -> Result<Lab, LabError> {
    let deadline = Instant::now() + launch.limit;
    folder.write("topology.toml", launch.topology.file(launch.name.as_str()).as_bytes())?;
    let credentials = folder.path().join("credentials");
    Credentials::create(&credentials).map_err(|error| LabError::Credentials(error.to_string()))?;
    let mut lifeline = None;
    if let Some(plan) = launch.topology.plan() {
        lifeline = Some(start_keeper(launch, folder, &plan, deadline)?);
        build_network(folder, &plan)?;
    }
    let daemons = Daemons { launch, folder, keeper: find_doors(folder, lifeline.is_some())?, deadline };
    let manager = daemons.start_manager(&credentials)?;
    let manager = ManagerUrl::new(manager.ip().to_string(), manager.port(), credentials).to_string();
    let nodes = daemons.start_nodes(&manager)?;
    let record = Record {
        manager,
        topology: launch.topology.clone(),
        daemons: std::iter::once(MANAGER.to_owned()).chain(nodes).collect(),
        program: launch.program.to_owned(),
    };
    folder.write_record(&record)?;
    let gone = || std::io::Error::other("a daemon ended as soon as it was ready");
    let mut lab = Lab::whole(folder, launch.name)?.ok_or_else(gone).context(|| "start the laboratory".to_owned())?;
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

/// Starts the process that makes the places; it ends when the pipe is closed that this gives.
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
    let starting = Starting::launch(folder.path(), KEEPER, Setting::Fresh(Fresh::new()), launch.lifetime, &mut command)
        .map_err(|error| explain(&error))?;
    // It listens nowhere, so that no address is what it should give.
    let (_name, _nowhere) = starting.ready_somewhere(deadline, launch.limit)?;
    Ok(lifeline)
}

/// The cores that we may run on.
fn own_cores() -> Result<Vec<usize>, LabError> {
    let allowed = sched_getaffinity(None).map_err(std::io::Error::from).context(|| "ask for cores".to_owned())?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect())
}

/// What the kernel says to those who may not have namespaces is no help to anybody.
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
    folder: &'a StateFolder,
    keeper: Option<(u32, Doors)>,
    deadline: Instant,
}

impl Daemons<'_> {
    fn start_manager(&self, credentials: &Path) -> Result<SocketAddr, LabError> {
        let nodes = self.launch.topology.nodes();
        let root = nodes.first().expect("a topology has a root");
        let mut command = Command::new(self.launch.program);
        command.arg("am").arg("--topology").arg(self.folder.path().join("topology.toml"));
        command.arg("--credentials").arg(credentials).arg("--listen").arg(any_port(root.listen[0]));
        let address = self.start(MANAGER, root, &mut command)?.ready(self.deadline, self.launch.limit)?;
        info!("{MANAGER} listens on {address}");
        Ok(address)
    }

    /// All nodes are started before the first is waited for: they find each other in their own time.
    fn start_nodes(&self, manager: &str) -> Result<Vec<String>, LabError> {
        let mut starting = Vec::new();
        for node in self.launch.topology.nodes() {
            let mut command = Command::new(self.launch.program);
            command.args(["an", "--name", &node.name, "--manager", manager, "--listen", &any_ports(&node)]);
            command.args(["--workers", &self.launch.topology.workers().to_string()]);
            let daemon = self.start(&node.name, &node, &mut command)?;
            starting.push((node.name, daemon));
        }
        let mut names = Vec::new();
        for (name, node) in starting {
            let address = node.ready(self.deadline, self.launch.limit)?;
            info!("{name} listens on {address}");
            names.push(name);
        }
        Ok(names)
    }

    /// Starts a daemon where the node is, if the node is anywhere.
    fn start(&self, name: &str, node: &Node, command: &mut Command) -> Result<Starting, LabError> {
        let entry = match &self.keeper {
            Some((keeper, doors)) => doors.entry(*keeper, &node.name).context(|| format!("enter {}", node.name))?,
            None => None,
        };
        // A daemon reports to us alone, and takes its manager from its arguments.
        command.env_remove("TRIB_MANAGER").stdin(Stdio::null());
        Starting::launch(
            self.folder.path(),
            name,
            entry.map_or(Setting::Here, Setting::Inside),
            self.launch.lifetime,
            command,
        )
    }
}

fn any_ports(node: &Node) -> String {
    let all: Vec<String> = node.listen.iter().map(|address| any_port(*address)).collect();
    all.join(",")
}

fn any_port(address: IpAddr) -> String {
    SocketAddr::new(address, 0).to_string()
}
