//! `trib bench` in a fabric of its own: every collective, both paths, and the report for programs.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

/// A fabric on loopback, which is taken down however the test ends.
struct Fabric {
    name: String,
    manager: String,
}

impl Fabric {
    fn up(test: &str) -> Fabric {
        Fabric::with_leaves(test, "2")
    }

    fn with_leaves(test: &str, leaves: &str) -> Fabric {
        let name = format!("bench-{}-{test}", std::process::id());
        let up = trib(&["fabric", "up", "--local", "--leaves", leaves, "--name", &name], None);
        let lines = String::from_utf8(up.stdout).unwrap();
        let manager = lines.trim().strip_prefix("export TRIB_MANAGER=").expect("one line to eval").trim_matches('\'');
        Fabric { name, manager: manager.to_owned() }
    }

    fn bench(&self, options: &[&str]) -> Output {
        self.bench_with("3", options)
    }

    fn bench_with(&self, ranks: &str, options: &[&str]) -> Output {
        trib(&[&["bench", "--ranks", ranks], options].concat(), Some(&self.manager))
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        trib(&["fabric", "down", "--local", "--name", &self.name], None);
    }
}

fn trib(arguments: &[&str], manager: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trib"));
    command.args(arguments).stdin(Stdio::null()).env_remove("TRIB_MANAGER").env_remove("TRIB_QUOTA");
    command.envs(manager.map(|url| ("TRIB_MANAGER", url)));
    command.output().unwrap()
}

#[test]
fn every_collective_is_measured_on_both_paths_and_reported() {
    let fabric = Fabric::up("all");
    let options = ["--collective", "all", "--min", "16", "--max", "256K", "--factor", "16384", "--iterations", "4"];
    let output = fabric.bench(&[&options[..], &["--dtype", "bfloat16", "--op", "prod", "--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["ranks"], &report["dtype"]), (&3.into(), &"bfloat16".into()));
    let rows = report["rows"].as_array().unwrap();
    let measured: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| (row["collective"].as_str().unwrap().to_owned(), row["path"].as_str().unwrap().to_owned()))
        .collect();
    // There are two sizes of each collective, and the barrier, which has none.
    assert_eq!((rows.len(), measured.len()), (11, 11), "{measured:?}");
    assert!(rows.iter().all(|row| row["iterations"] == 4 && row["min_us"].as_f64() > Some(0.0)));
}

// The nodes' memory grows with their children. A job that asks for nothing must get a quota for
// which even a node with many children has room.
#[test]
fn thirty_two_ranks_on_one_leaf_need_no_quota() {
    let fabric = Fabric::with_leaves("wide", "1");
    let output = fabric.bench_with("32", &["--max", "64K", "--factor", "16384", "--iterations", "4", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let paths: BTreeSet<&str> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!((&report["ranks"], paths.len()), (&32.into(), 2), "{report}");
}

#[test]
fn waiting_for_a_late_rank_is_cheap() {
    let fabric = Fabric::up("late");
    let output = fabric.bench(&["--wait-late", "3", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| report[name].as_f64().unwrap();
    assert!(number("waited_s") > 2.5, "{report}");
    assert!(number("packets_per_s") < 50.0, "{report}");
    assert!(number("cpu_percent") < 5.0, "{report}");
}

#[test]
fn nonsense_is_refused_before_any_rank_starts() {
    for options in [
        &["--min", "8", "--max", "4"][..],
        &["--dtype", "float32", "--op", "band"],
        &["--dtype", "float64:int32", "--op", "sum"],
        &["--dtype", "float64:float32", "--op", "maxloc"],
        &["--collective", "gather"],
        &["--max", "much"],
    ] {
        let output = trib(&[&["bench", "--ranks", "2"], options].concat(), None);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}
