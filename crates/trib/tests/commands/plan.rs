//! `trib topology` and `trib plan`: files in, drawings and plans out, and nothing left of a
//! calibration.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use trib_lab::process::ProcessId;
use trib_lab::{Lab, LabName, default_base};

/// A folder of the test's own, which is removed however the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("trib-plan-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn trib(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trib")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = trib(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

// The exit code and what stderr says.
fn failing(arguments: &[&str]) -> (Option<i32>, String) {
    let output = trib(arguments);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

const SLURM: &str = "SwitchName=leaf0 Nodes=tux[0-3] LinkSpeed=10\nSwitchName=leaf1 Nodes=tux[4-7] LinkSpeed=10\n\
    SwitchName=spine0 Switches=leaf[0-1] LinkSpeed=10\nSwitchName=spine1 Switches=leaf[0-1] LinkSpeed=10\n";

#[test]
fn a_slurm_file_is_shown_converted_and_planned() {
    let folder = Folder::new("slurm");
    let (file, picture) = (folder.file("topology.conf", SLURM), folder.path("fabric.svg"));
    let shown = stdout(&["topology", "show", &file, "--svg", &picture]);
    assert!(shown.starts_with("Fabric topology: 8 hosts, 4 switches, 4 aggregation nodes, 12 links\n"), "{shown}");
    assert!(shown.contains("leaf0  node  hosts tux[0-3] 10gbit  up spine[0-1] 10gbit"), "{shown}");
    assert!(std::fs::read_to_string(&picture).unwrap().contains(">tux7<"));

    let converted = folder.path("fabric.toml");
    stdout(&["topology", "convert", &file, "--out", &converted]);
    let as_json =
        |file: &str| -> Value { serde_json::from_str(&stdout(&["topology", "show", file, "--json"])).unwrap() };
    assert_eq!(as_json(&converted)["links"].as_array().unwrap().len(), 12);
    assert_eq!(as_json(&converted)["switches"], as_json(&file)["switches"]);

    stdout(&["topology", "convert", &file, "--nodes", "spine[0-1]", "--out", &converted]);
    let nodes = as_json(&converted)["nodes"].clone();
    assert_eq!((&nodes[0]["name"], &nodes[1]["name"], &nodes[2]), (&"spine0".into(), &"spine1".into(), &Value::Null));

    let planned = stdout(&["plan", &file, "--hosts", "tux[2-5]", "--sizes", "8,1M"]);
    for words in
        ["Tree 1 of 2: root spine0, 2 levels", "    leaf0  up 10gbit  hosts tux[2-3]", "8 B", "1 MiB", "HOST RING"]
    {
        assert!(planned.contains(words), "{words}\n{planned}");
    }
}

#[test]
fn plans_for_programs_are_json() {
    let folder = Folder::new("json");
    let file = folder.path("fabric.toml");
    stdout(&["topology", "make", "fat-tree", "--hosts", "32", "--ports", "8", "--rate", "1gbit", "--out", &file]);
    let plan: Value =
        serde_json::from_str(&stdout(&["plan", &file, "--hosts", "h[0-15]", "--trees", "2", "--json"])).unwrap();
    assert_eq!(plan["trees"].as_array().unwrap().len(), 2);
    assert_eq!(plan["trees"][0]["root"], "spine0");
    assert_eq!(plan["fit"], serde_json::json!({"trees": 1, "jobs": 2, "stop": "hosts"}));
    let times = plan["times"].as_array().unwrap();
    assert_eq!((times.len(), &times[5]["best"]), (6, &Value::from("one tree")));
    let seconds = |way: &str| times[5]["seconds"][way].as_f64().unwrap();
    assert!(seconds("one tree") < seconds("host ring") && seconds("host ring") < seconds("host doubling"));
}

// This is the plan that the README shows: nodes that fold eight children, on links of 100 Gbit/s.
#[test]
fn every_plan_names_its_constants_and_where_they_are_from() {
    let folder = Folder::new("constants");
    let file = folder.path("fabric.toml");
    stdout(&["topology", "make", "fat-tree", "--hosts", "32", "--ports", "8", "--rate", "100gbit", "--out", &file]);
    let plan = |more: &[&str]| stdout(&[&["plan", &file, "--hosts", "h[0-31]"], more].concat());
    let by_default = plan(&["--constants", "/dev/null"]);
    assert!(by_default.contains("node_byte_ns 0.16") && by_default.contains("workers 8"), "{by_default}");
    let measured = folder.file(
        "measured.toml",
        "[about]\nmachine = \"a box\"\ndate = \"2026-01-02\"\n[constants]\nnode_byte_ns = { value = 0.3, spread = 0.1 }\n",
    );
    let text = plan(&["--constants", &measured, "--constant", "workers=2"]);
    for words in [
        &format!("Constants: {measured}, measured on a box, 2026-01-02; defaults for servers: hop_us, message_us"),
        "; by hand: workers=2",
        "node_byte_ns 0.3,",
        "8 LANES",
        "As fast as the hosts alone, or faster",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let json = |more: &[&str]| -> Value { serde_json::from_str(&plan(&[&["--json"], more].concat())).unwrap() };
    let value = json(&["--constants", &measured]);
    assert_eq!(value["constants"]["values"]["node_byte_ns"], 0.3);
    assert!(value["constants"]["source"].as_str().unwrap().contains("a box"));
    // With the default constants one worker and one lane are too slow for long vectors, and several
    // lanes are not.
    let value = json(&["--constants", "/dev/null", "--sizes", "16M"]);
    let seconds = |way: &str| value["times"][0]["seconds"][way].as_f64().unwrap();
    assert!(seconds("8 lanes") < seconds("host ring") && seconds("host ring") < seconds("one tree"), "{value:#}");
    // A second rank on each host puts its vector on the same links, unless the host has a node.
    let several = |more: &[&str]| {
        let words = ["--constants", "/dev/null", "--ranks-per-host", "4", "--sizes", "16M"];
        json(&[&words, more].concat())["times"][0]["seconds"]["one tree"].as_f64().unwrap()
    };
    assert!(several(&["--flat"]) > 1.5 * seconds("one tree"), "{}", several(&["--flat"]));
    let level = several(&[]) - seconds("one tree");
    assert!(level > 0.0 && level < 1e-4, "{level}");
    let (status, stderr) = failing(&["plan", &file, "--hosts", "h0", "--constant", "hops=1"]);
    assert!(status == Some(2) && stderr.contains("there is no constant `hops`; there are hop_us"), "{stderr}");
    let (status, stderr) = failing(&["plan", "--hosts", "h0"]);
    assert!(status == Some(2), "{stderr}");
}

/// A calibration that runs, with the processes of its fabric.
struct Calibration {
    trib: Child,
    name: LabName,
    fabric: Vec<ProcessId>,
}

impl Calibration {
    fn begin() -> Self {
        let mut trib = Command::new(env!("CARGO_BIN_EXE_trib"));
        trib.args(["plan", "--calibrate", "--rounds", "100"]).stdin(Stdio::null()).stdout(Stdio::null());
        trib.env("TRIB_LOG", "warn");
        let mut trib = trib.spawn().unwrap();
        let name = LabName::new(&format!("calibrate-{}", trib.id())).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let fabric = loop {
            if let Some(fabric) = Lab::find(&default_base(), &name).unwrap() {
                break fabric;
            }
            assert!(Instant::now() < deadline && trib.try_wait().unwrap().is_none(), "no fabric comes up");
            std::thread::sleep(Duration::from_millis(10));
        };
        let fabric: Vec<_> = fabric.daemon_names().map(|daemon| fabric.process(daemon).unwrap().id()).collect();
        assert_eq!(fabric.len(), 3);
        Self { trib, name, fabric }
    }

    /// Ends it by a signal and tells how it ended.
    fn end(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.trib), signal).unwrap();
        self.trib.wait().unwrap()
    }

    fn is_gone(&self) -> bool {
        !self.fabric.iter().any(|process| process.is_running()) && !default_base().join(self.name.as_str()).exists()
    }
}

impl Drop for Calibration {
    fn drop(&mut self) {
        let _ = self.trib.kill();
        let _ = self.trib.wait();
        let _ = Lab::down(&default_base(), &self.name);
    }
}

#[test]
fn a_calibration_that_a_signal_ends_takes_its_fabric_down() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut calibration = Calibration::begin();
        assert_eq!(calibration.end(signal).code(), Some(128 + signal.as_raw()));
        assert!(calibration.is_gone(), "its fabric is left after {signal:?}");
    }
}

#[test]
fn the_fabric_of_a_calibration_that_was_killed_is_taken_down_by_the_next_up() {
    let mut calibration = Calibration::begin();
    assert_eq!(calibration.end(Signal::KILL).code(), None);
    let other = format!("next-{}", std::process::id());
    stdout(&["fabric", "up", "--leaves", "1", "--name", &other]);
    stdout(&["fabric", "down", "--name", &other]);
    // Another test's `up` may be at it, and then the one above leaves it to that one.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !calibration.is_gone() {
        assert!(Instant::now() < deadline, "its fabric is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_shape_is_made_and_planned() {
    let folder = Folder::new("shapes");
    let file = folder.path("fabric.toml");
    for shape in [
        "fat-tree --hosts 16 --ports 4 --levels 3",
        "dragonfly-plus --groups 3 --leaves 2 --hosts 3",
        "torus --sides 3,3 --hosts 2",
        "hypercube --dimensions 4 --hosts 1",
    ] {
        let words: Vec<&str> = shape.split(' ').collect();
        stdout(&[&["topology", "make"], &words[..], &["--out", &file]].concat());
        assert!(stdout(&["plan", &file, "--hosts", "h[0-15]"]).contains("Tree 1 of"), "{shape}");
    }
}

#[test]
fn mistakes_are_told_with_their_line_and_a_remedy() {
    let folder = Folder::new("mistakes");
    let (file, broken) = (folder.file("topology.conf", SLURM), folder.file("broken.conf", "SwitchName=a Nodes=b[\n"));
    let missing = folder.path("missing");
    assert!(!Path::new(&missing).exists());
    let toml = folder.file("fabric.toml", "[[switch]]\nname = \"s\"\n[[host]]\nname = \"h\"\nswitch = \"s\"\n");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["topology", "show", &missing], 3, "name an existing file"),
        (&["topology", "show", &broken], 1, "broken.conf:1: `b[` has an unpaired bracket"),
        (&["topology", "convert", &toml], 2, "is TOML already: edit it"),
        (
            &["topology", "convert", &file, "--nodes", "spine[0-2]"],
            2,
            "--nodes: `spine2` is neither a switch nor a host",
        ),
        (&["plan", &file, "--nodes", "tux0", "--hosts", "tux1"], 2, "--nodes: `tux0` is no switch; name a switch"),
        (&["plan", &file, "--hosts", "tux[0-8]"], 2, "the fabric has no host `tux8`"),
        (&["plan", &file, "--hosts", "tux[0"], 2, "unpaired bracket"),
        (&["plan", &file, "--hosts", "tux0,tux0"], 2, "host `tux0` is named twice"),
        (&["topology", "make", "torus", "--sides", "3,65", "--hosts", "1"], 2, "a side is 65; choose 1 to 64"),
    ];
    for (arguments, code, words) in cases {
        let (status, stderr) = failing(arguments);
        assert!(status == Some(code) && stderr.contains(words), "{arguments:?}: {status:?} {stderr}");
    }
}
