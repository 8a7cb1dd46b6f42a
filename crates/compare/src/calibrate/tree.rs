//! Ranks below one node, on loopback: processor time of both, and how long a short operation takes.

use std::cell::Cell;
use std::process::Command;
use std::time::{Duration, Instant};

use trib_lab::{Lab, LabLaunch, LabName, Lifetime, Local, Topology};

use super::{Calibration, Figure};
use crate::counters::cpu;
use crate::launch::{Launch, Silence};
use crate::line::{Line, WorkerRow};
use crate::system::TOKEN_ENV;

/// Measures.
pub(super) fn measure(calibration: &Calibration<'_>) -> Result<Vec<Figure>, String> {
    let words = |error: trib_lab::LabError| error.to_string();
    let name = LabName::new(&format!("calibrate-{}", std::process::id())).map_err(words)?;
    let launch = LabLaunch {
        base: calibration.base,
        name: &name,
        topology: &Topology::Local(Local { leaves: 1, workers: 1, backups: 0, shared_host: false }),
        program: calibration.program,
        limit: Duration::from_secs(30),
        lifetime: Lifetime::Owned,
    };
    let lab = Lab::up(&launch).map_err(words)?;
    // With one leaf the root takes no part.
    let daemons = lab.daemons();
    let node = daemons.iter().find(|(name, _)| name == "leaf0").map(|(_, pid)| *pid);
    let node = node.ok_or("the node of the calibration has ended")?;
    let jobs = Jobs { calibration, lab: &lab, node, started: Cell::new(0) };
    let (mut node_byte, mut host_byte, mut message, mut hop) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..calibration.rounds {
        let long = jobs.run(CHILDREN, calibration.bytes, LONG)?;
        node_byte.push(long.node_ns / long.node_bytes(CHILDREN));
        host_byte.push(long.row.cpu_ns / f64::from(CHILDREN) / (long.row.bytes * long.row.iterations) as f64);
        let short = jobs.run(CHILDREN, 8, SHORT)?;
        let messages = f64::from(2 * CHILDREN) * short.row.operations as f64;
        let each = short.node_ns / messages / 1e3;
        message.push(each);
        let pair = jobs.run(2, 8, SHORT)?;
        // Up and down, and what the node does for two children both ways.
        hop.push(((pair.row.latencies_us.median - 4.0 * each) / 2.0).max(0.0));
    }
    let long = format!("allreduce of {} bytes, {CHILDREN} ranks below one node, loopback: ", calibration.bytes);
    let short = "allreduce of 8 bytes, loopback: ";
    Ok(vec![
        Figure { name: "hop_us", values: hop, how: format!("{short}half of the median with 2 ranks") },
        Figure {
            name: "message_us",
            values: message,
            how: format!("{short}the node's processor time for each of {} messages", 2 * CHILDREN),
        },
        Figure {
            name: "node_byte_ns",
            values: node_byte,
            how: format!("{long}the node's processor time for each byte received or sent"),
        },
        Figure {
            name: "host_byte_ns",
            values: host_byte,
            how: format!("{long}a rank's processor time for each byte of the vector"),
        },
    ])
}

struct Jobs<'a> {
    calibration: &'a Calibration<'a>,
    lab: &'a Lab,
    node: u32,
    started: Cell<u32>,
}

/// What a job took.
struct Taken {
    row: WorkerRow,
    /// Processor time of the node.
    node_ns: f64,
}

impl Taken {
    /// What the node received and sent.
    fn node_bytes(&self, ranks: u32) -> f64 {
        2.0 * f64::from(ranks) * (self.row.bytes * self.row.operations) as f64
    }
}

impl Jobs<'_> {
    /// So many allreduces of so many bytes.
    fn run(&self, ranks: u32, bytes: u64, operations: u32) -> Result<Taken, String> {
        // All ranks of a job meet under one name, and no two jobs do.
        let number = self.started.get();
        self.started.set(number + 1);
        let token = format!("calibrate-{}-{number}", std::process::id());
        let command = |rank: u32| {
            let mut command = Command::new(self.calibration.program);
            command
                .args(["bench", "worker", "--gate", "--cells"])
                .arg(format!("allreduce:{bytes}:sustained:{operations}"))
                .env("TRIB_MANAGER", self.lab.manager())
                .env("TRIB_RANK", rank.to_string())
                .env("TRIB_SIZE", ranks.to_string())
                .env("TRIB_RENDEZVOUS", &token)
                .env(TOKEN_ENV, &token)
                .env_remove("TRIB_QUOTA");
            command
        };
        let cannot = |error: std::io::Error| format!("cannot run {}: {error}", self.calibration.program.display());
        let mut launch = Launch::start((0..ranks).map(command).collect(), &token).map_err(cannot)?;
        let (mut readings, mut row, mut heard) = (Vec::new(), None, Instant::now());
        while row.is_none() {
            self.calibration.check_interrupted()?;
            match launch.next(LOOK_AGAIN) {
                Ok(Line::Gate { .. }) => {
                    heard = Instant::now();
                    readings.push(cpu::used(self.node).cpu_ns);
                    launch.open_gate().map_err(cannot)?;
                }
                Ok(Line::Row(measured)) => row = Some(measured),
                Ok(Line::Unsupported { unsupported }) => return Err(unsupported),
                Err(Silence::Timeout) if heard.elapsed() < PATIENCE => {}
                Err(Silence::Timeout) => return Err(format!("a job of {ranks} ranks said nothing for a minute")),
                Err(Silence::Ended(words)) => return Err(format!("a job of {ranks} ranks ended: {words}")),
            }
        }
        launch.wait(PATIENCE);
        match (row, &readings[..]) {
            (Some(row), [before, after, ..]) if row.wrong == 0 => {
                Ok(Taken { row, node_ns: after.saturating_sub(*before) as f64 })
            }
            _ => Err(format!("a job of {ranks} ranks gave a wrong result")),
        }
    }
}

/// Enough for what a node does for each child to show beside what it does once.
const CHILDREN: u32 = 4;
const LONG: u32 = 12;
const SHORT: u32 = 2000;
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time that a signal waits.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
