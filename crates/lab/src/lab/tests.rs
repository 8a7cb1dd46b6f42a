//! Fabrics of shell scripts. What starts, finds and ends daemons must not depend on what the
//! daemons are.

use super::scratch::Scratch;
use super::*;
use crate::topology::Local;
use std::fs;
use std::process::Command;

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
        let (source, program) = (scratch.path().join("trib.py"), scratch.path().join("trib"));
        fs::write(&source, format!("#!/usr/bin/python3\n{PRELUDE}\n{script}\n")).unwrap();
        // Another process writes it: were it this one, a program that another test has just begun
        // to start would hold the file open for writing for a moment, and nobody can run it then.
        assert!(Command::new("install").args(["-m", "700"]).args([&source, &program]).status().unwrap().success());
        Self { base: scratch.path().join("base"), program, _scratch: scratch, name: LabName::new("test").unwrap() }
    }

    fn up(&self, leaves: u16) -> Result<Lab, LabError> {
        Lab::up(&LabLaunch {
            base: &self.base,
            name: &self.name,
            topology: &Topology::Local(Local { leaves, workers: 1, backups: 0, shared_host: false }),
            program: &self.program,
            limit: LIMIT,
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

const LIMIT: Duration = Duration::from_secs(20);
const PRELUDE: &str = r#"
import os, signal, socket, sys, time
def ready():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(b"READY=1\nX_TRIB_ADDRESS=127.0.0.1:4000", os.environ["NOTIFY_SOCKET"])
"#;
const GOOD: &str = r#"print(*sys.argv, flush=True)
ready(); time.sleep(60)"#;

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
fn what_has_ended_is_started_again_where_it_was_and_what_runs_is_left_alone() {
    let stage = Stage::new(GOOD);
    let first = stage.up(2).unwrap();
    for ended in [&["leaf1"][..], &["manager"], &["manager", "root", "leaf0", "leaf1"]] {
        let before = Lab::find(&stage.base, &stage.name).unwrap().unwrap();
        ended.iter().for_each(|daemon| end(&before, daemon));
        let after = stage.up(2).unwrap();
        for daemon in first.daemon_names() {
            let same = before.process(daemon).unwrap().id() == after.process(daemon).unwrap().id();
            assert_eq!(same, !ended.contains(&daemon), "{daemon} after the end of {ended:?}");
        }
        assert_eq!(after.manager(), first.manager());
    }
    let command = |daemon: &str| fs::read_to_string(stage.base.join("test").join(format!("{daemon}.log"))).unwrap();
    for daemon in ["manager", "leaf1"] {
        let told = command(daemon);
        let listened: Vec<&str> = told.lines().map(|line| line.rsplit_once("--listen ").unwrap().1).collect();
        assert!(listened[0].starts_with("127.0.0.1:0"), "{told}");
        assert!(listened[1..].iter().all(|listen| listen.starts_with("127.0.0.1:4000")), "{told}");
        assert_eq!(listened.len(), 3, "{told}");
    }
}

#[test]
fn one_daemon_that_has_ended_is_started_again_and_no_other() {
    let stage = Stage::new(GOOD);
    let mut lab = stage.up(2).unwrap();
    for daemon in ["leaf0", "manager"] {
        end(&lab, daemon);
        end(&lab, "leaf1");
        let former = lab.process(daemon).unwrap().id();
        lab.start(daemon, LIMIT).unwrap();
        assert_ne!(lab.process(daemon).unwrap().id(), former);
        let running: Vec<String> = lab.daemons().into_iter().map(|(name, _)| name).collect();
        assert!(running.contains(&daemon.to_owned()) && !running.contains(&"leaf1".to_owned()), "{running:?}");
        let told = fs::read_to_string(lab.log(daemon)).unwrap();
        let again = told.lines().last().unwrap().rsplit_once("--listen ").unwrap().1;
        assert!(again.starts_with("127.0.0.1:4000"), "{told}");
        lab.start("leaf1", LIMIT).unwrap();
    }
}

#[test]
fn a_daemon_that_runs_or_does_not_exist_is_not_started() {
    let stage = Stage::new(GOOD);
    let mut lab = stage.up(1).unwrap();
    let before = stage.pids(&lab);
    assert!(matches!(lab.start("leaf0", LIMIT), Err(LabError::Runs(_))));
    let unknown = lab.start("leaf7", LIMIT).unwrap_err().to_string();
    assert!(unknown.contains("manager, root, leaf0"), "{unknown}");
    // One that another command has started meanwhile is not started twice.
    end(&lab, "leaf0");
    stage.up(1).unwrap();
    assert!(matches!(lab.start("leaf0", LIMIT), Err(LabError::Runs(_))));
    assert_eq!(stage.pids(&Lab::find(&stage.base, &stage.name).unwrap().unwrap())[..2], before[..2]);
}

#[test]
fn another_shape_is_refused_while_anything_runs_and_built_when_nothing_does() {
    let stage = Stage::new(GOOD);
    let first = stage.up(1).unwrap();
    end(&first, "root");
    let error = stage.up(2).unwrap_err();
    assert!(matches!(error, LabError::Different { .. }), "{error}");
    assert_eq!(first.daemons().len(), 2);
    end(&first, "manager");
    end(&first, "leaf0");
    assert_eq!(stage.up(2).unwrap().daemons().len(), 4);
}

#[test]
fn what_cannot_be_repaired_is_told_and_what_runs_goes_on() {
    let stage = Stage::new(
        r#"if "--listen 127.0.0.1:4000" in " ".join(sys.argv): sys.exit("the port has gone to another program")
ready(); time.sleep(60)"#,
    );
    let first = stage.up(2).unwrap();
    end(&first, "leaf1");
    let before = stage.pids(&first);
    let error = stage.up(2).unwrap_err().to_string();
    assert!(
        ["leaf1", "the port has gone to another program", "down"].iter().all(|word| error.contains(word)),
        "{error}"
    );
    assert_eq!(stage.pids(&Lab::find(&stage.base, &stage.name).unwrap().unwrap()), before);
}

#[test]
fn a_record_that_cannot_be_read_ends_nothing() {
    let stage = Stage::new(GOOD);
    let first = stage.up(1).unwrap();
    fs::write(stage.base.join("test/lab.json"), r#"{"manager": 5}"#).unwrap();
    let error = stage.up(1).unwrap_err();
    assert!(matches!(error, LabError::Record(_)), "{error}");
    assert_eq!(first.daemons().len(), 3);
    assert!(stage.down());
    assert!(first.daemons().is_empty());
}

/// Kills a daemon.
fn end(lab: &Lab, daemon: &str) {
    let process = lab.process(daemon).unwrap();
    process.signal(rustix::process::Signal::KILL).unwrap();
    process.wait(Duration::from_secs(5)).unwrap();
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
