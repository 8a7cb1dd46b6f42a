//! `trib lab` as a script uses it.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const TRIB: &str = env!("CARGO_BIN_EXE_trib");

/// Runs a script beside a laboratory. If there can be none here, it returns `None` and prints why.
fn beside(test: &str, options: &[&str], script: &str) -> Option<Output> {
    let name = format!("{test}-{}", std::process::id());
    let mut command = Command::new(TRIB);
    command.args(["lab", "up", "--name", &name]).args(options).args(["--", "sh", "-ec", script]);
    let output = command.env("trib", TRIB).stdin(Stdio::null()).output().unwrap();
    let errors = text(&output.stderr);
    if output.status.code() == Some(3) && errors.contains("cannot be built here") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {errors}");
        return None;
    }
    Some(output)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SMALL: &[&str] = &["--hosts", "3", "--leaf-ports", "2"];

#[test]
fn a_script_can_run_in_every_place_and_read_the_counters() {
    let script = "for place in spine leaf1 h2; do $trib lab exec $place -- sh -c 'hostname; ip -4 -o address'; done
        $trib lab counters --json";
    let Some(output) = beside("places", SMALL, script) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for line in ["spine\n", "leaf1\n", "h2\n", "10.77.0.1/16", "10.77.2.2/16", "10.77.128.3/16"] {
        assert!(printed.contains(line), "{line:?} is not in\n{printed}");
    }
    let counters: serde_json::Value = serde_json::from_str(&printed[printed.find('{').unwrap()..]).unwrap();
    let links = counters["links"].as_array().unwrap();
    assert_eq!(links.len(), 2 * (2 + 3));
    assert!(links.iter().all(|link| link["wire_bytes"].is_u64() && link["drops"] == 0), "{counters}");
}

#[test]
fn the_commands_exit_code_comes_through_and_the_laboratory_goes_away() {
    let Some(output) = beside("code", SMALL, "echo $TRIB_LAB; exit 7") else { return };
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let name = text(&output.stdout);
    let status = Command::new(TRIB).args(["lab", "status", "--name", name.trim()]).output().unwrap();
    assert_eq!(status.status.code(), Some(3), "{name} is still there");
}

#[test]
fn a_command_in_a_place_ends_as_it_would_anywhere() {
    let script = "code() { $trib lab exec \"$@\" || echo $?; }
        code h0 -- sh -c 'exit 9'; code h1 -- sh -c 'kill -TERM $$'; code --timeout 0.3 h0 -- sleep 60
        $trib lab exec h0 -- sleep 60 & sleep 0.3; kill -TERM $!; wait $! || echo $?
        cd /usr; $trib lab exec h0 -- pwd";
    let Some(output) = beside("exec", SMALL, script) else { return };
    assert_eq!(text(&output.stdout), "9\n143\n124\n143\n/usr\n", "{}", text(&output.stderr));
}

#[test]
fn what_is_killed_and_started_again_beside_a_command_ends_with_the_laboratory() {
    let script = "for process in manager leaf1; do $trib lab fault kill --process $process; done
        $trib lab fault start --process manager; $trib lab fault start --process leaf1
        $trib lab exec h0 -- $trib status > /dev/null; $trib lab status --json";
    let Some(output) = beside("start", &["--hosts", "3", "--leaf-ports", "2", "--backups", "1"], script) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let daemons = status["daemons"].as_array().unwrap();
    assert!(daemons.iter().all(|daemon| daemon["state"] == "running"), "{status}");
    for pid in daemons.iter().map(|daemon| daemon["pid"].as_u64().unwrap()) {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left of {status}");
    }
}

#[test]
fn commands_inside_leave_the_laboratory_alone() {
    let script = "folder=$($trib lab exec h0 -- sh -c 'echo $TRIB_LAB')
        inside() { $trib lab exec h0 -- $trib \"$@\" 2>&1 || echo code $?; }
        inside fabric up --local --name inner-$$ > /dev/null
        inside fabric down --local --name inner-$$ > /dev/null
        inside lab up --hosts 3 --leaf-ports 2 --name $TRIB_LAB
        inside lab down --name $TRIB_LAB
        inside fabric up --local --name $TRIB_LAB
        inside fabric down --local --name $TRIB_LAB
        $trib lab exec h0 -- $trib status > /dev/null
        $trib lab status | grep -o running; ls $folder/lab.json";
    let Some(output) = beside("inside", SMALL, script) else { return };
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    let refusals = printed.matches("cannot be seen from here").count();
    assert_eq!((refusals, printed.matches("code 2\n").count()), (4, 4), "{printed}");
    assert_eq!(printed.matches("running\n").count(), 4, "{printed}");
}

/// Types Ctrl-C ten times at a terminal in which a laboratory's command runs a program in a place,
/// and later sends SIGINT with kill to `trib lab up` alone. After each, SIGTERM asks the program
/// how many SIGINTs have come: of signals that wait, the lower number comes first.
const TERMINAL: &str = r#"
import os, pty, select, signal, sys, time
program = """import signal
heeded = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
print("ready", flush=True)
count = 0
while True:
    if signal.sigwait(heeded) == signal.SIGINT:
        count += 1
        print("interrupted", flush=True)
    elif count:
        print("in all", count, flush=True)
        count = 0
    else:
        break
"""
null, trib, name = sys.argv[1] == "null", sys.argv[2], sys.argv[3]
child, terminal = pty.fork()
if child == 0:
    if null:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    up = [trib, "lab", "up", "--hosts", "1", "--leaf-ports", "1", "--name", name, "--"]
    os.execv(trib, up + [trib, "lab", "exec", "h0", "--", "python3", "-c", program])
told, deadline = b"", time.monotonic() + 60
def expect(words):
    global told
    while words not in told:
        came = select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]
        more = os.read(terminal, 4096) if came else b""
        if not more:
            os.kill(child, signal.SIGKILL)
            sys.exit(told.decode() + "\nand not: " + words.decode())
        told += more
    before, told = told.split(words, 1)
    return before.decode()
def counted():
    os.kill(child, signal.SIGTERM)
    expect(b"in all ")
    return expect(b"\r\n")
expect(b"ready")
for _ in range(10):
    os.write(terminal, b"\x03")
    expect(b"interrupted")
typed = counted()
os.kill(child, signal.SIGINT)
expect(b"interrupted")
print("typed", typed, "sent", counted())
os.kill(child, signal.SIGTERM)
os.waitpid(child, 0)
"#;

#[test]
fn what_is_typed_comes_once_and_what_is_sent_comes_too_whatever_stdin_is() {
    if beside("terminal", SMALL, "true").is_none() {
        return;
    }
    for stdin in ["null", "terminal"] {
        let name = format!("{stdin}-{}", std::process::id());
        let output = Command::new("python3").args(["-c", TERMINAL, stdin, TRIB, &name]).output().unwrap();
        assert_eq!(text(&output.stdout), "typed 10 sent 1\n", "{stdin}: {}", text(&output.stderr));
    }
}

#[test]
fn what_does_not_exist_is_wrong_usage_and_tells_what_does() {
    let Some(output) = beside("usage", SMALL, "$trib lab exec h3 -- true") else { return };
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("it has h0, h1, h2, leaf0, leaf1, spine"), "{}", text(&output.stderr));
    let Some(output) = beside("usage", SMALL, "$trib lab fault cut --link spine") else { return };
    assert_eq!(output.status.code(), Some(2));
    let Some(output) = beside("usage", SMALL, "$trib lab fault kill --process h0") else { return };
    assert_eq!(output.status.code(), Some(2));
    let outside = Command::new(TRIB).args(["lab", "counters", "--name", "no-such-lab"]).output().unwrap();
    assert_eq!(outside.status.code(), Some(3));
}
