//! Fabrics of shell scripts: what starts, finds and ends daemons must not depend on what the daemons are.

use super::scratch::Scratch;
use super::*;
use crate::topology::Local;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A base folder and a program that does what a test wants instead of `trib`.
struct Stage {
    _scratch: Scratch,
    base: PathBuf,
    program: PathBuf,
    name: LabName,
}

impl Stage {
    fn new(script: &str) -> Self {
        let scratch = Scratch::new();
        let program = scratch.path().join("trib");
        fs::write(&program, format!("#!/usr/bin/python3\n{PRELUDE}\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        Self { base: scratch.path().join("base"), program, _scratch: scratch, name: LabName::new("test").unwrap() }
    }

    fn up(&self, leaves: u16) -> Result<Lab, LabError> {
        Lab::up(&LabLaunch {
            base: &self.base,
            name: &self.name,
            topology: &Topology::Local(Local { leaves, workers: 1 }),
            program: &self.program,
            limit: Duration::from_secs(20),
            lifetime: Lifetime::Detached,
        })
    }

    fn pids(&self, lab: &Lab) -> Vec<u32> {
        lab.daemons().into_iter().map(|(_, pid)| pid).collect()
    }

    fn down(&self) -> bool {
        Lab::down(&self.base, &self.name).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = Lab::down(&self.base, &self.name);
    }
}

const PRELUDE: &str = r#"
import os, signal, socket, sys, time
def ready():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(b"READY=1\nX_TRIB_ADDRESS=127.0.0.1:4000", os.environ["NOTIFY_SOCKET"])
"#;
const GOOD: &str = "ready(); time.sleep(60)";

#[test]
fn up_again_finds_the_same_daemons_and_down_removes_everything() {
    let stage = Stage::new(GOOD);
    let first = stage.up(2).unwrap();
    assert_eq!(first.daemon_names().collect::<Vec<_>>(), ["manager", "root", "leaf0", "leaf1"]);
    assert!(first.manager().contains("127.0.0.1:4000"), "{}", first.manager());
    let second = stage.up(2).unwrap();
    assert_eq!(stage.pids(&first), stage.pids(&second));
    assert_eq!(first.manager(), second.manager());
    assert!(Lab::find(&stage.base, &stage.name).unwrap().is_some());
    assert!(stage.down());
    assert!(first.daemons().is_empty());
    assert!(!stage.base.exists(), "something is left in the base folder");
    assert!(!stage.down());
}

#[test]
fn a_running_fabric_of_another_shape_is_not_passed_off_as_the_one_asked_for() {
    let stage = Stage::new(GOOD);
    stage.up(2).unwrap();
    let error = stage.up(3).unwrap_err();
    assert!(matches!(error, LabError::Different { .. }), "{error}");
}

#[test]
fn after_a_crash_the_rest_is_cleared_and_all_of_it_starts_again() {
    let stage = Stage::new(GOOD);
    let first = stage.up(2).unwrap();
    let root = first.process("root").unwrap();
    root.signal(rustix::process::Signal::KILL).unwrap();
    root.wait(Duration::from_secs(5)).unwrap();
    assert!(Lab::find(&stage.base, &stage.name).unwrap().is_none());
    let second = stage.up(2).unwrap();
    assert!(first.daemons().is_empty());
    assert!(second.daemons().len() == 4);
}

#[test]
fn when_one_daemon_fails_none_is_left_and_its_log_is_in_the_error() {
    let stage = Stage::new(
        r#"if "leaf1" in sys.argv: sys.exit("leaf1 has no key")
ready(); time.sleep(60)"#,
    );
    let error = stage.up(2).unwrap_err().to_string();
    assert!(error.contains("leaf1 ended before it was ready") && error.contains("leaf1 has no key"), "{error}");
    let folder = StateFolder::lock(&stage.base, &stage.name).unwrap();
    assert_eq!(folder.processes().unwrap().len(), 0);
}

#[test]
fn down_ends_daemons_that_ignore_sigterm_or_are_stopped() {
    let stage = Stage::new("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nready(); time.sleep(60)");
    let fabric = stage.up(1).unwrap();
    fabric.process("root").unwrap().signal(rustix::process::Signal::STOP).unwrap();
    assert!(stage.down());
    assert!(fabric.daemons().is_empty());
}
