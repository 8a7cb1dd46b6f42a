//! When something kills a laboratory, nothing of it is left. The same laboratory also runs without
//! root.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use trib_lab::process::ProcessId;
use trib_lab::{Lab, LabName, default_base};

const TRIB: &str = env!("CARGO_BIN_EXE_trib");

/// A laboratory under a name of this test's own, which is taken down however the test ends.
struct Small {
    name: String,
}

impl Small {
    fn new(test: &str) -> Self {
        Self { name: format!("{test}-{}", std::process::id()) }
    }

    /// The command that starts it. The caller adds what to run beside it.
    fn up(&self) -> Command {
        let mut command = Command::new(TRIB);
        command.args(["lab", "up", "--hosts", "2", "--leaf-ports", "1", "--name", &self.name]);
        command.stdin(Stdio::null()).env("TRIB_LOG", "warn");
        command
    }

    fn folder(&self) -> PathBuf {
        default_base().join(&self.name)
    }

    fn keeper(&self) -> ProcessId {
        ProcessId::from_stat(&fs::read_to_string(self.folder().join("keeper.pid")).unwrap()).unwrap()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Lab::down(&default_base(), &LabName::new(&self.name).unwrap());
    }
}

/// Whether the laboratory came up. If there can be none here, it returns false and prints why.
fn is_up(output: &Output) -> bool {
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) && errors.contains("cannot be built here") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {errors}");
        return false;
    }
    assert!(output.status.success(), "{errors}");
    true
}

/// The keeper's PID namespace, and the namespaces that it holds.
fn namespaces(keeper: ProcessId) -> Vec<String> {
    let folder = PathBuf::from(format!("/proc/{}", keeper.pid));
    let links = fs::read_dir(folder.join("fd")).unwrap().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut held: Vec<String> =
        links.map(|link| link.display().to_string()).filter(|link| link.contains(":[")).collect();
    held.push(fs::read_link(folder.join("ns/pid")).unwrap().display().to_string());
    assert!(held.iter().filter(|link| link.starts_with("net:[")).count() >= 5, "{held:?}");
    held
}

/// The processes of this machine that are in one of these namespaces.
fn inside(namespaces: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        for namespace in fs::read_dir(process.path().join("ns")).into_iter().flatten().flatten() {
            if let Ok(link) = fs::read_link(namespace.path())
                && namespaces.contains(&link.display().to_string())
            {
                found.push(format!("{}: {}", process.path().display(), link.display()));
            }
        }
    }
    found
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} takes more than 10 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn killing_the_keeper_leaves_nothing_and_the_next_one_sweeps_the_folder() {
    let small = Small::new("keeper");
    if !is_up(&small.up().output().unwrap()) {
        return;
    }
    let mut guest = Command::new(TRIB);
    let mut guest = guest.args(["lab", "exec", "--name", &small.name, "h0", "--", "sleep", "60"]).spawn().unwrap();
    let keeper = small.keeper();
    let held = namespaces(keeper);
    let is_sleep = |line: &String| {
        let process = line.split_once(':').map_or("", |(process, _)| process);
        fs::read_to_string(format!("{process}/comm")).is_ok_and(|name| name == "sleep\n")
    };
    wait_until("entering h0", || inside(&held).iter().any(is_sleep));
    kill(keeper.pid);
    wait_until("the end of all processes", || inside(&held).is_empty());
    assert!(!guest.wait().unwrap().success(), "a program inside outlived the keeper");
    let status = Command::new(TRIB).args(["lab", "status", "--name", &small.name]).output().unwrap();
    assert_eq!(status.status.code(), Some(3), "{status:?}");
    let other = Small::new("sweeper");
    let beside = other.up().args(["--", "true"]).output().unwrap();
    assert!(beside.status.success(), "{beside:?}");
    assert!(!small.folder().exists(), "the folder is left");
}

#[test]
fn killing_who_runs_a_command_beside_it_leaves_nothing_either() {
    let small = Small::new("owner");
    let ready = std::env::temp_dir().join(format!("{}.ready", small.name));
    let script = format!("touch {}; exec sleep 60", ready.display());
    let mut owner: Child = small.up().args(["--", "sh", "-c", &script]).spawn().unwrap();
    let ended = || small.folder().join("lab.json").exists() && ready.exists();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !ended() {
        if let Some(status) = owner.try_wait().unwrap() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no laboratory here ({status})");
            assert_eq!(status.code(), Some(3));
            return;
        }
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::remove_file(&ready).unwrap();
    let held = namespaces(small.keeper());
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the end of all processes", || inside(&held).is_empty());
}

#[test]
fn users_who_are_not_root_have_laboratories_too() {
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the other tests have shown it, they ran without root");
        return;
    }
    let program = Program::for_all();
    let name = format!("nobody-{}", std::process::id());
    let script = "id -u; $0 lab exec h1 -- sh -c 'id -u; hostname; echo $TRIB_HOST'
        $0 lab exec h0 -- $0 lab exec leaf1 -- hostname
        $0 lab fault loss --link h1 --percent 50; $0 lab fault list; $0 lab fault clear; $0 lab counters | grep -c h1
        $0 lab exec h1 -- $0 status | grep -c up";
    let mut command = Command::new(&program.0);
    command.args(["lab", "up", "--hosts", "2", "--leaf-ports", "1", "--name", &name, "--", "sh", "-ec", script]);
    command.arg(&program.0).uid(NOBODY).gid(NOBODY).current_dir("/").env_clear();
    let output = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("TRIB_LOG", "warn").output().unwrap();
    if !is_up(&output) {
        return;
    }
    let lines = ["65534", "0", "h1", "h1", "leaf1", "loss 50 % on h1 up", "loss 50 % on h1 down", "2", "3"];
    let printed = String::from_utf8(output.stdout).unwrap();
    for (line, wanted) in printed.lines().zip(lines) {
        assert!(line.starts_with(wanted), "{line:?} instead of {wanted:?} in\n{printed}");
    }
    assert_eq!(printed.lines().count(), lines.len(), "{printed}");
    assert!(!Path::new("/tmp/tributary-65534").join(&name).exists(), "the folder is left");
}

/// A copy of the binary in a place where every user may run it.
struct Program(PathBuf);

impl Program {
    fn for_all() -> Self {
        let path = std::env::temp_dir().join(format!("trib-for-all-{}", std::process::id()));
        // Another process writes it: were it this one, a program that another test has just begun
        // to start would hold the file open for writing for a moment, and nobody can run it then.
        let copied = Command::new("install").args(["-m", "755", TRIB]).arg(&path).status().unwrap();
        assert!(copied.success());
        Self(path)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const NOBODY: u32 = 65_534;
