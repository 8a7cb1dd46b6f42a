//! `trib run` as its users see it: environment, output, exit codes, and nothing left behind.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use trib_lab::process::ProcessId;

fn trib(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trib"));
    command.arg("run").args(arguments).stdin(Stdio::null()).env_remove("TRIB_MANAGER").env_remove("TRIB_HOST");
    command
}

fn shell(options: &[&str], script: &str) -> Command {
    let mut command = trib(options);
    command.args(["--", "sh", "-c", script]);
    command
}

/// The lines of stdout, sorted, because ranks run side by side.
fn lines(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Starts a job whose ranks do `first`, print their ids and do `then`. Returns the launcher and the
/// ranks.
fn waiting_job(ranks: usize, options: &[&str], first: &str, then: &str) -> (Child, Vec<ProcessId>) {
    let mut options = options.to_vec();
    let count = ranks.to_string();
    options.extend(["-n", &count]);
    let mut launcher = shell(&options, &format!("{first}\necho $$; {then}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(launcher.stdout.take().unwrap());
    let ids = output.lines().take(ranks).map(|line| ProcessId::running(line.unwrap().parse().unwrap()).unwrap());
    let ids = ids.collect();
    (launcher, ids)
}

fn all_end(ids: &[ProcessId]) -> bool {
    comes_true(|| ids.iter().all(|id| !id.is_running()))
}

fn comes_true(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn children(pid: u32) -> Vec<ProcessId> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_ascii_whitespace().filter_map(|child| ProcessId::running(child.parse().unwrap())).collect()
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

#[test]
fn every_rank_learns_its_number_and_its_host() {
    let script = "echo $TRIB_RANK $TRIB_SIZE $TRIB_LOCAL_RANK $TRIB_HOST $TRIB_MANAGER";
    let output = shell(&["-n", "3", "--hosts", "a,b", "--manager", "am:1"], script).output().unwrap();
    assert!(output.status.success());
    assert_eq!(lines(&output), ["0 3 0 a am:1", "1 3 1 a am:1", "2 3 0 b am:1"]);
}

#[test]
fn the_ranks_of_a_job_meet_under_one_name_and_those_of_another_job_do_not() {
    let names = || lines(&shell(&["-n", "2"], "echo $TRIB_RENDEZVOUS").output().unwrap());
    let (first, second) = (names(), names());
    assert_eq!(first[0], first[1]);
    assert_ne!(first[0], second[0]);
    assert!(first[0].len() >= 32);
}

#[test]
fn labels_tell_whose_line_it_is_on_either_stream() {
    let output = shell(&["-n", "2", "--label"], "echo out; echo err >&2; printf unfinished").output().unwrap();
    assert_eq!(lines(&output), ["[0] out", "[0] unfinished", "[1] out", "[1] unfinished"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("[0] err\n") && errors.contains("[1] err\n"), "{errors}");
}

#[test]
fn a_reader_that_takes_its_time_gets_every_line() {
    // More than the pipes hold.
    let launcher = shell(&["-n", "1", "--label"], "seq 15000").stdout(Stdio::piped()).spawn().unwrap();
    // Twice as long as output may be silent after the last rank has ended.
    std::thread::sleep(Duration::from_secs(2));
    let output = launcher.wait_with_output().unwrap();
    assert_eq!((output.status.code(), lines(&output).len()), (Some(0), 15000));
}

#[test]
fn a_process_that_a_rank_left_behind_is_not_waited_for() {
    let started = Instant::now();
    let output = shell(&["-n", "1", "--label"], "setsid sleep 20 & echo out").output().unwrap();
    assert_eq!((output.status.code(), lines(&output)), (Some(0), vec!["[0] out".to_owned()]));
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_job_that_is_to_outlive_its_terminal_does() {
    let inner = format!("exec {} run -n 1 -- sh -c 'echo ready; sleep 0.5; echo done'", env!("CARGO_BIN_EXE_trib"));
    // As nohup does it.
    let mut launcher = Command::new("sh");
    launcher.args(["-c", &format!("trap '' HUP; {inner}")]).stdin(Stdio::null()).env_remove("TRIB_MANAGER");
    let mut launcher = launcher.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(launcher.stdout.take().unwrap());
    let mut said = String::new();
    output.read_line(&mut said).unwrap();
    signal(&launcher, Signal::HUP);
    output.read_line(&mut said).unwrap();
    assert_eq!((launcher.wait().unwrap().code(), said.as_str()), (Some(0), "ready\ndone\n"));
}

#[test]
fn only_rank_0_reads_what_is_given() {
    let mut launcher = shell(&["-n", "2"], "echo $TRIB_RANK `cat`");
    let mut launcher = launcher.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut launcher.stdin.take().unwrap(), b"input").unwrap();
    assert_eq!(lines(&launcher.wait_with_output().unwrap()), ["0 input", "1"]);
}

#[test]
fn the_first_failure_ends_the_others_and_is_the_exit_code() {
    let started = Instant::now();
    let output = shell(&["-n", "4"], "[ $TRIB_RANK = 2 ] && exit 7; sleep 60").output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("rank 2 exited with code 7"));
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_rank_that_a_signal_ends_is_a_failure_and_stubborn_ones_are_killed() {
    let script = "[ $TRIB_RANK = 1 ] && { sleep 0.2; kill -9 $$; }; trap '' TERM; while :; do sleep 0.05; done";
    let output = shell(&["-n", "2", "--grace", "0.1"], script).output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 9));
}

#[test]
fn what_a_rank_started_ends_with_the_job() {
    let (mut launcher, ids) = waiting_job(1, &[], "sleep 60 &", "wait");
    let inner = children(ids[0].pid);
    assert!(!inner.is_empty());
    signal(&launcher, Signal::TERM);
    assert_eq!(launcher.wait().unwrap().code(), Some(128 + 15));
    assert!(all_end(&ids) && all_end(&inner));
}

#[test]
fn what_outlives_the_rank_that_started_it_ends_with_a_job_that_fails() {
    let inner = "sh -c 'trap \"\" TERM; echo $$; exec 1>&-; while :; do sleep 0.05; done'";
    for (ranks, last) in [("1", "exit 7"), ("2", "[ $TRIB_RANK = 1 ] && exit 7; exec sleep 60")] {
        let script = format!("{inner} & sleep 0.5; {last}");
        let output = shell(&["-n", ranks, "--grace", "0.2"], &script).output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        let started: Vec<u32> = lines(&output).iter().map(|line| line.parse().unwrap()).collect();
        assert_eq!(started.len().to_string(), ranks);
        assert!(started.iter().all(|pid| ProcessId::running(*pid).is_none()), "{started:?}");
    }
}

#[test]
fn what_the_user_may_not_end_does_not_keep_a_job_that_has_failed() {
    let folder = std::env::temp_dir().join(format!("trib-run-{}", std::process::id()));
    let become_root = folder.join("setpriv");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy("/usr/bin/setpriv", &become_root).unwrap();
    let open = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    // What makes its caller root is in the reach of a user that nobody is.
    let is_root = std::os::unix::fs::chown(&folder, Some(UNUSED), Some(UNUSED)).is_ok();
    open(&folder, 0o700);
    open(&become_root, if is_root { 0o4755 } else { 0o755 });
    let as_nobody = |program: &str, arguments: &[&str]| {
        let id = UNUSED.to_string();
        let user = ["--reuid", &id, "--regid", &id, "--clear-groups", program];
        Command::new("setpriv").args(user).args(arguments).stdin(Stdio::null()).output()
    };
    let program = env!("CARGO_BIN_EXE_trib");
    // It takes root, and a program that others may run.
    if as_nobody(program, &["--version"]).is_ok_and(|done| done.status.success()) {
        let script =
            // It prints on, too, which a label takes as long as something comes.
            format!("{} --reuid 0 sh -c 'while :; do echo; sleep 0.2; done' & echo $!; sleep 0.5; exit 7", become_root.display());
        let began = Instant::now();
        let done =
            as_nobody(program, &["run", "-n", "1", "--label", "--grace", "0.2", "--", "sh", "-c", &script]).unwrap();
        let left: u32 = lines(&done).iter().find_map(|line| line.strip_prefix("[0] ")?.parse().ok()).unwrap();
        assert_eq!(done.status.code(), Some(7));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        if let Some(left) = ProcessId::running(left) {
            assert!(String::from_utf8_lossy(&done.stderr).contains("what ranks 0 have started runs on"), "{done:?}");
            kill_process(Pid::from_raw(left.pid as i32).unwrap(), Signal::KILL).unwrap();
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A user that no machine has.
const UNUSED: u32 = 2_147_480_001;

#[test]
fn an_interrupt_is_passed_on_as_it_is() {
    let (mut launcher, ids) = waiting_job(2, &["--grace", "60"], "trap 'exit 0' INT; trap '' TERM", FOREVER);
    signal(&launcher, Signal::INT);
    assert_eq!(launcher.wait().unwrap().code(), Some(128 + 2));
    assert!(all_end(&ids));
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_grace_period() {
    let traps = "trap '[ $TRIB_RANK = 1 ] || exit 0' INT; trap '' TERM";
    let (mut launcher, ids) = waiting_job(2, &["--grace", "60"], traps, FOREVER);
    signal(&launcher, Signal::INT);
    // Signals of two kinds have no order, so the second must not be sent before the first was
    // passed on.
    assert!(comes_true(|| ids.iter().any(|id| !id.is_running())), "the first was not passed on");
    signal(&launcher, Signal::TERM);
    assert_eq!(launcher.wait().unwrap().code(), Some(128 + 2));
    assert!(all_end(&ids));
}

#[test]
fn ranks_die_with_the_launcher() {
    let (mut launcher, ids) = waiting_job(3, &[], "", "exec sleep 60");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(all_end(&ids), "a rank outlived its launcher");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let output = trib(&["-n", "2", "--", "/nonexistent/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/program"));
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    for arguments in
        [&["--", "true"][..], &["-n", "0", "--", "true"], &["-n", "1"], &["-n", "1", "--hosts", "a,b", "--", "true"]]
    {
        assert_eq!(trib(arguments).output().unwrap().status.code(), Some(2), "{arguments:?}");
    }
}

const FOREVER: &str = "while :; do sleep 0.05; done";
