//! The whole comparison: scenario after scenario, each on the fabric that it needs.

use std::time::Instant;

use crate::machine::Machine;
use crate::network::Network;
use crate::pace::Pace;
use crate::report::Comparison;
use crate::result::rows;
use crate::scenario::{Scenario, Wishes, wanted};
use crate::study::Shape;
use crate::system::Programs;
use crate::targets::targets;
use crate::testbed::{Limits, Testbed};

/// Makes a fabric of a shape; it is taken down when it is dropped.
pub type Up<'a> = dyn FnMut(Shape) -> Result<Box<dyn Network>, String> + 'a;

/// Measures what is wished for. It fails only if the wishes make no sense or a fabric cannot be
/// made; whatever a system does becomes a row.
pub fn compare(
    wishes: &Wishes,
    programs: &Programs,
    limits: Limits,
    up: &mut Up<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Comparison, String> {
    let start = Instant::now();
    let mut comparison = Comparison { machine: Machine::here(), ..Comparison::default() };
    if comparison.machine.busy > 0.1 {
        let busy = 100.0 * comparison.machine.busy;
        progress(&format!(
            "something else keeps this machine {busy:.0} % busy: times will be too long, those of peers that spin most"
        ));
    }
    let mut pace = Pace::new(limits.patience);
    let mut fabric: Option<(Shape, Box<dyn Network>)> = None;
    let scenarios = wanted(wishes)?;
    for (at, scenario) in scenarios.iter().enumerate() {
        pace.allot(scenarios.len() - at);
        let shape = scenario.shape();
        let network = match fabric.take() {
            Some((same, network)) if same == shape => network,
            other => {
                // The old fabric goes before the new one comes, because each needs the whole
                // machine.
                drop(other);
                progress(&format!(
                    "fabric: {} hosts, {} per leaf, {} Mbit/s{}",
                    shape.hosts,
                    shape.leaf_ports,
                    shape.rate_mbit,
                    if shape.ucx { ", over UCX" } else { "" }
                ));
                up(shape)?
            }
        };
        let testbed = Testbed { network: &*network, programs, limits };
        match scenario {
            Scenario::Study(study) => {
                let measurements = study.run(testbed, &mut pace, progress);
                comparison.rows.extend(rows(study, &measurements));
            }
            Scenario::Sharing(sharing) => {
                comparison.rows.extend(sharing.run(testbed, &mut pace, progress));
            }
        }
        fabric = Some((shape, network));
    }
    comparison.targets = targets(&comparison.rows);
    comparison.spent = pace.spent;
    comparison.seconds = start.elapsed().as_secs_f64();
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::network::{LinkBytes, MpiJob};
    use crate::system::System;

    /// No network at all: programs run where the test runs.
    struct Here;

    impl Network for Here {
        fn hosts(&self) -> u16 {
            2
        }
        fn leaf_ports(&self) -> u16 {
            1
        }
        fn rate_mbit(&self) -> f64 {
            100.0
        }
        fn manager(&self) -> String {
            String::new()
        }
        fn command(&self, _: &str, program: &Path) -> Command {
            Command::new(program)
        }
        fn mpirun(&self, _: &MpiJob) -> Result<Command, String> {
            Err("no MPI here".to_owned())
        }
        fn counters(&self) -> Vec<LinkBytes> {
            Vec::new()
        }
        fn daemons(&self) -> Vec<(String, u32)> {
            Vec::new()
        }
    }

    #[test]
    fn a_peer_that_hangs_or_fails_is_reported_and_others_go_on() {
        let row = |bytes: u64| {
            format!(
                r#"{{"collective":"allreduce","bytes":{bytes},"asked_bytes":{bytes},"mode":"sustained","iterations":1,"operations":2,"seconds":0.001,"latencies_us":{{"median":1,"p99":1,"min":1,"max":1}},"cpu_ns":1,"context_switches":1,"wrong":0}}"#
            )
        };
        let peers = [
            format!("good=echo '{}'; :", row(1024)),
            "hangs=sleep 100; :".to_owned(),
            "fails=echo no luck >&2; false".to_owned(),
        ];
        let wishes = Wishes {
            quick: true,
            only: vec!["switch-point".to_owned()],
            systems: ["good", "hangs", "fails"].map(str::to_owned).into(),
            sizes: vec![1024],
            rounds: Some(1),
            peers: peers.iter().map(|text| System::other(text).unwrap()).collect(),
            shape: Some(Shape {
                hosts: 2,
                leaf_ports: 1,
                rate_mbit: 100,
                rails: 1,
                uplink: None,
                pinned: false,
                ucx: false,
            }),
            ranks_per_host: None,
            budget: Some(Duration::from_millis(1)),
        };
        let limits =
            Limits { start: Duration::from_millis(300), cell: Duration::from_millis(200), patience: Duration::ZERO };
        let mut fabrics = 0;
        let mut up = |_: Shape| -> Result<Box<dyn Network>, String> {
            fabrics += 1;
            Ok(Box::new(Here))
        };
        let programs = Programs::beside(Path::new("/nonexistent/trib"));
        let comparison = compare(&wishes, &programs, limits, &mut up, &mut |_| ()).unwrap();
        let status = |name: &str| {
            comparison.rows.iter().find(|row| row.system == name).map(|row| row.status.clone()).unwrap_or_default()
        };
        assert_eq!((comparison.rows.len(), fabrics), (3, 1));
        assert_eq!(status("good"), "ok");
        assert!(status("hangs").starts_with("timeout"), "{}", status("hangs"));
        assert_eq!(status("fails"), "failed: no luck");
    }
}
