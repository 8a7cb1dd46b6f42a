//! `trib fabric` and `trib status` with real daemons.

use std::process::{Command, Output, Stdio};

use trib_lab::process::{Process, ProcessId};
use trib_lab::{Lab, LabName, default_base};

/// A fabric of this test's own, which is taken down however the test ends.
struct Local {
    name: String,
}

impl Local {
    fn new(test: &str) -> Self {
        Self { name: format!("{test}-{}", std::process::id()) }
    }

    fn trib(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trib"));
        command.args(arguments).stdin(Stdio::null()).env_remove("TRIB_MANAGER");
        command.output().unwrap()
    }

    fn up(&self, options: &[&str]) -> Output {
        self.trib(&[&["fabric", "up", "--local", "--name", &self.name], options].concat())
    }

    fn down(&self) -> Output {
        self.trib(&["fabric", "down", "--local", "--name", &self.name])
    }

    fn processes(&self) -> Vec<ProcessId> {
        let lab = Lab::find(&default_base(), &LabName::new(&self.name).unwrap()).unwrap().unwrap();
        lab.daemon_names().map(|daemon| lab.process(daemon).unwrap().id()).collect()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.down();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The manager's address that a shell takes from the lines that `up` prints.
fn manager(up: &Output) -> String {
    let script = format!("{}\nprintf %s \"$TRIB_MANAGER\"", text(&up.stdout));
    text(&Command::new("sh").args(["-c", &script]).env_remove("TRIB_MANAGER").output().unwrap().stdout)
}

#[test]
fn up_prints_only_what_a_shell_needs_and_again_the_same() {
    let local = Local::new("again");
    let first = local.up(&["--leaves", "3"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(
        text(&first.stdout).lines().all(|line| line.starts_with("export TRIB_MANAGER=")),
        "{}",
        text(&first.stdout)
    );
    let processes = local.processes();
    assert_eq!(processes.len(), 5);

    let second = local.up(&[]);
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(local.processes(), processes);
    let other = local.up(&["--leaves", "2"]);
    assert_eq!((other.status.code(), other.stdout.len()), (Some(1), 0));

    assert!(local.down().status.success());
    assert!(processes.iter().all(|process| !process.is_running()));
    assert!(!default_base().join(&local.name).exists());
}

#[test]
fn status_shows_every_node_and_an_absent_manager_is_an_environment_error() {
    let local = Local::new("status");
    let up = local.up(&["--workers", "2"]);
    assert!(up.status.success(), "{}", text(&up.stderr));
    let manager = manager(&up);
    let status = local.trib(&["status", "--json", "--manager", &manager]);
    let report: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let nodes = report["nodes"].as_array().unwrap();
    let names: Vec<&str> = nodes.iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["root", "leaf0", "leaf1"]);
    assert!(nodes.iter().all(|node| node["connected"] == true), "{report}");

    let table = text(&local.trib(&["status", "--manager", &manager]).stdout);
    assert!(["root", "leaf0", "leaf1"].iter().all(|node| table.contains(node)), "{table}");

    local.down();
    let status = local.trib(&["status", "--manager", &manager]);
    assert_eq!((status.status.code(), status.stdout.len()), (Some(3), 0));
}

#[test]
fn a_node_that_was_killed_is_started_again_and_nothing_else_changes() {
    let local = Local::new("crash");
    let first = local.up(&["--leaves", "3"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let name = LabName::new(&local.name).unwrap();
    let fabric = Lab::find(&default_base(), &name).unwrap().unwrap();
    let before = local.processes();
    let root = fabric.process("root").unwrap();
    root.signal(rustix::process::Signal::KILL).unwrap();
    root.wait(std::time::Duration::from_secs(5)).unwrap();
    let second = local.up(&[]);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert_eq!(first.stdout, second.stdout);
    assert!(text(&second.stderr).contains("root has ended and is started again"), "{}", text(&second.stderr));
    let after = local.processes();
    assert_eq!(after.len(), 5);
    let kept: Vec<_> = before.iter().filter(|process| after.contains(process)).collect();
    assert_eq!(kept.len(), 4);
}

#[test]
fn a_record_that_cannot_be_read_is_no_obstacle_once_nothing_runs() {
    let local = Local::new("record");
    let up = local.up(&[]);
    assert!(up.status.success(), "{}", text(&up.stderr));
    let record = default_base().join(&local.name).join("lab.json");
    let processes = local.processes();
    std::fs::write(&record, r#"{"manager": 5}"#).unwrap();
    let refused = local.up(&[]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    for id in processes {
        let process = Process::open(id).unwrap().expect("a refused `up` ends nothing");
        process.signal(rustix::process::Signal::KILL).unwrap();
        process.wait(std::time::Duration::from_secs(5)).unwrap();
    }
    let again = local.up(&[]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(local.processes().len(), 4);
}

#[test]
fn a_bare_up_means_the_local_kind() {
    let local = Local::new("bare");
    let up = local.trib(&["fabric", "up", "--name", &local.name]);
    assert!(up.status.success(), "{}", text(&up.stderr));
    assert_eq!(local.processes().len(), 4);
    assert!(local.trib(&["fabric", "down", "--name", &local.name]).status.success());
}
