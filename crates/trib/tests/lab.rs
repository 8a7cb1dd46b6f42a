//! `trib lab` as a script meets it. Needs root, `ip` and `nft`, and says so where it cannot run.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use trib_lab::namespace::Lab;

/// Runs a script beside a star; `None` with a line that says why where there can be none.
fn star(hosts: &str, script: &str) -> Option<Output> {
    if let Err(reason) = Lab::available() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_trib"));
    command.args(["lab", "star", "--hosts", hosts, "--", "sh", "-ec", script]).stdin(Stdio::null());
    Some(command.env("trib", env!("CARGO_BIN_EXE_trib")).output().unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_script_can_run_on_every_host_and_read_its_counters() {
    let script = "$trib lab exec 1 -- ip -4 -o address show eth0; $trib lab exec switch -- ip -4 -o address show br0
        $trib lab drop; $trib lab counters --json; $trib lab allow";
    let Some(output) = star("2", script) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("10.77.0.3/16") && printed.contains("10.77.0.1/16"), "{printed}");
    let json = &printed[printed.find('{').unwrap()..];
    let counters: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(counters["hosts"].as_array().unwrap().len(), 2);
    assert!(counters["hosts"][0]["tx_bytes"].is_u64() && counters["dropped_between_hosts"].is_u64(), "{json}");
}

#[test]
fn the_commands_exit_code_comes_through_and_the_star_goes_away() {
    let Some(output) = star("1", "echo $TRIB_LAB; exit 7") else { return };
    assert_eq!(output.status.code(), Some(7));
    let id = text(&output.stdout);
    assert!(Lab::attach(id.trim()).is_err(), "{id} is still there");
}

#[test]
fn a_host_that_does_not_exist_is_wrong_usage() {
    let Some(output) = star("2", "$trib lab exec 2 -- true") else { return };
    assert_eq!(output.status.code(), Some(2));
    let outside = Command::new(env!("CARGO_BIN_EXE_trib")).args(["lab", "drop", "--lab", "1.2.3"]).output().unwrap();
    assert_eq!(outside.status.code(), Some(3));
}
