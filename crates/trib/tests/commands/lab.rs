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
