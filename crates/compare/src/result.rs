//! Rows of the outcome: all rounds of one cell and one system together.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cell::{Cell, Mode};
use crate::counters::Observed;
use crate::line::WorkerRow;
use crate::statistics::{median, spread};
use crate::study::{Measurement, Outcome, Purpose, Study};

/// A worker's row, and what was counted around it.
type Measured = (WorkerRow, Option<Observed>);

/// The figures of one round, microseconds per operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Round {
    /// Its number.
    pub number: u32,
    /// Time of one operation.
    pub latency_us: f64,
    /// Median of the single calls' times.
    pub call_median_us: f64,
    /// 99th percentile of the single calls' times.
    pub call_p99_us: f64,
    /// Processor time.
    pub cpu_us: Option<f64>,
}

/// One row.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ResultRow {
    /// The study.
    pub scenario: String,
    /// The system.
    pub system: String,
    /// The collective.
    pub collective: String,
    /// Bytes of the whole vector, as asked for.
    pub bytes: u64,
    /// How operations followed each other.
    pub mode: Mode,
    /// Order of the ranks.
    pub map: &'static str,
    /// Ranks.
    pub ranks: u32,
    /// Hosts of the fabric.
    pub hosts: u16,
    /// Rate of a host's link, Mbit/s.
    pub rate_mbit: f64,
    /// `ok`, or why there are no figures.
    pub status: String,
    /// Rounds with a figure.
    pub rounds: usize,
    /// Rounds without a figure.
    pub failures: usize,
    /// Time of one operation, microseconds: median over the rounds.
    pub latency_us: Option<f64>,
    /// Vector bits per time of an operation, Mbit/s.
    pub mbit_s: Option<f64>,
    /// The same as a share of the host link's rate.
    pub share_of_link: Option<f64>,
    /// The longest round minus the shortest, as a share of the median.
    pub spread: f64,
    /// How much slower than at its best the machine was meanwhile: median over the rounds.
    pub slowdown: f64,
    /// Median of the single calls' times, microseconds.
    pub call_median_us: Option<f64>,
    /// 99th percentile of the single calls' times, microseconds.
    pub call_p99_us: Option<f64>,
    /// Processor time of all ranks per operation, microseconds; for our systems that of manager and
    /// nodes, too. For ours it is there only where nodes are observed.
    pub cpu_us: Option<f64>,
    /// Context switches of the same processes per operation.
    pub context_switches: Option<f64>,
    /// System calls of the same processes per operation.
    pub system_calls: Option<f64>,
    /// Processor time per vector byte, nanoseconds: `host` and every node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_ns_per_byte: BTreeMap<String, f64>,
    /// Processor time of the whole machine per vector byte, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_ns_per_byte: Option<f64>,
    /// The part of it that the kernel spent on the network outside of any process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softirq_ns_per_byte: Option<f64>,
    /// Share of the time that the busiest core of the machine was at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest_core: Option<f64>,
    /// Bytes on the busiest host link and trunk per vector byte: `host_up`, `host_down`,
    /// `trunk_up`, `trunk_down`; and on the busiest host's loopback: `loopback`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wire_bytes_per_byte: BTreeMap<String, f64>,
    /// Packets on the busiest host link per operation: `host_up`, `host_down`; and on the busiest
    /// host's loopback: `loopback`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub packets: BTreeMap<String, f64>,
    /// How Tributary moved the vector: llt or sat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The rounds of which the medians are taken.
    #[serde(skip)]
    pub each_round: Vec<Round>,
}

impl Round {
    /// The time of a cell of this size, as [`ResultRow::time_us`] takes it.
    pub fn time_us(&self, bytes: u64) -> f64 {
        if bytes <= CALL_BYTES_MAX { self.call_median_us } else { self.latency_us }
    }
}

impl ResultRow {
    /// A row without figures yet.
    pub fn new(study: &Study, system: &str, cell: &Cell) -> ResultRow {
        ResultRow {
            scenario: study.name.to_owned(),
            system: system.to_owned(),
            collective: cell.collective.name().to_owned(),
            bytes: cell.bytes,
            mode: cell.mode,
            map: study.map.name(),
            ranks: study.ranks,
            hosts: study.shape.hosts,
            rate_mbit: f64::from(study.shape.rate_mbit),
            status: "ok".to_owned(),
            rounds: 0,
            failures: 0,
            latency_us: None,
            mbit_s: None,
            share_of_link: None,
            spread: 0.0,
            slowdown: 1.0,
            call_median_us: None,
            call_p99_us: None,
            cpu_us: None,
            context_switches: None,
            system_calls: None,
            cpu_ns_per_byte: BTreeMap::new(),
            machine_ns_per_byte: None,
            softirq_ns_per_byte: None,
            busiest_core: None,
            wire_bytes_per_byte: BTreeMap::new(),
            packets: BTreeMap::new(),
            path: None,
            each_round: Vec::new(),
        }
    }

    /// This row's figure divided by another's: the median of the ratios inside the rounds that both
    /// have. A machine that is slower for some minutes is so for both rows, but not for all rounds
    /// alike.
    pub fn over(&self, other: &ResultRow, figure: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
        let ratio = |own: &Round| {
            let same = other.each_round.iter().find(|round| round.number == own.number)?;
            Some(figure(own)? / figure(same)?)
        };
        let ratios: Vec<f64> = self.each_round.iter().filter_map(ratio).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    /// The time by which systems are compared: a single call's for short vectors and barriers, else
    /// that of an operation among others that follow each other.
    pub fn time_us(&self) -> Option<f64> {
        if self.bytes <= CALL_BYTES_MAX { self.call_median_us } else { self.latency_us }
    }

    /// Sets the time and what follows from it; `latencies` has one entry per round, microseconds.
    pub fn set_latencies(&mut self, latencies: &[f64]) {
        self.rounds = latencies.len();
        if latencies.is_empty() {
            return;
        }
        let latency = median(latencies);
        self.latency_us = Some(latency);
        self.spread = spread(latencies);
        if self.bytes > 0 && self.collective != "barrier" {
            let rate = 8.0 * (self.bytes * self.mode.in_flight()) as f64 / latency;
            self.mbit_s = Some(rate);
            // Ranks of one host use no link.
            self.share_of_link = (self.hosts > 1).then(|| rate / self.rate_mbit);
        }
    }
}

/// The rows of a study, in the order of its parts and cells.
pub fn rows(study: &Study, measurements: &[Measurement]) -> Vec<ResultRow> {
    let mut rows: Vec<ResultRow> = Vec::new();
    for part in &study.parts {
        for cell in part.cells.iter().filter(|cell| part.system.has(cell)) {
            let (own, counted): (Vec<&Measurement>, Vec<&Measurement>) = measurements
                .iter()
                .filter(|one| one.system == part.system.name && one.cell == *cell)
                .partition(|one| one.purpose == Purpose::Times);
            if !own.is_empty() {
                let outcomes: Vec<&Outcome> = own.iter().map(|one| &one.outcome).collect();
                let mut row = row(study, &part.system.name, cell, &outcomes);
                row.slowdown = median(&own.iter().map(|one| one.slowdown).collect::<Vec<_>>());
                row.each_round = own.iter().filter_map(|one| round(&part.system.name, one)).collect();
                row.system_calls = counted.iter().find_map(|one| system_calls(&part.system.name, &one.outcome));
                rows.push(row);
            }
        }
    }
    rows
}

fn row(study: &Study, system: &str, cell: &Cell, outcomes: &[&Outcome]) -> ResultRow {
    let mut row = ResultRow::new(study, system, cell);
    let good: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Row(good) => Some(&**good),
            _ => None,
        })
        .collect();
    row.failures = outcomes.len() - good.len();
    if let Some(why) = outcomes.iter().find_map(|outcome| status(outcome)) {
        row.status =
            if good.is_empty() { why } else { format!("ok ({} of {} rounds: {why})", row.failures, outcomes.len()) };
    }
    row.set_latencies(&good.iter().map(|(worker, _)| worker.latency_us()).collect::<Vec<_>>());
    let over = |of: &dyn Fn(&Measured) -> Option<f64>| {
        let values: Vec<f64> = good.iter().filter_map(|one| of(one)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    let bytes = (cell.bytes * cell.mode.in_flight()) as f64;
    row.call_median_us = over(&|(worker, _)| Some(worker.latencies_us.median));
    row.call_p99_us = over(&|(worker, _)| Some(worker.latencies_us.p99));
    row.path = good.iter().find_map(|(worker, _)| worker.path.clone());
    row.cpu_us = over(&|measured| cpu_us(system, measured));
    row.context_switches = over(&|(worker, seen)| {
        let nodes = match seen {
            Some(seen) if is_ours(system) => seen.node_switches / worker.operations as f64,
            None if is_ours(system) => return None,
            _ => 0.0,
        };
        Some(worker.context_switches / worker.iterations as f64 + nodes)
    });
    count_packets(&mut row, &good);
    row.busiest_core = over(&|(_, seen)| seen.as_ref()?.busiest_core);
    if bytes > 0.0 {
        let host = over(&|(worker, _)| Some(worker.cpu_ns / worker.iterations as f64 / bytes / f64::from(study.ranks)));
        row.cpu_ns_per_byte.extend(host.map(|cost| ("host".to_owned(), cost)));
        observe(&mut row, &good, bytes, is_ours(system));
        let per_byte = |worker: &WorkerRow, ns: f64| ns / worker.operations as f64 / bytes;
        row.machine_ns_per_byte = over(&|(worker, seen)| Some(per_byte(worker, seen.as_ref()?.machine_ns)));
        row.softirq_ns_per_byte = over(&|(worker, seen)| Some(per_byte(worker, seen.as_ref()?.softirq_ns)));
    }
    row
}

/// System calls per operation, in a launch in which they were counted.
fn system_calls(system: &str, outcome: &Outcome) -> Option<f64> {
    let Outcome::Row(measured) = outcome else { return None };
    let (worker, seen) = &**measured;
    let seen = seen.as_ref()?;
    let nodes = if is_ours(system) { seen.node_calls? } else { 0.0 };
    Some((seen.rank_calls? + nodes) / worker.operations as f64)
}

fn round(system: &str, one: &Measurement) -> Option<Round> {
    let Outcome::Row(measured) = &one.outcome else { return None };
    let (worker, _) = &**measured;
    Some(Round {
        number: one.round,
        latency_us: worker.latency_us(),
        call_median_us: worker.latencies_us.median,
        call_p99_us: worker.latencies_us.p99,
        cpu_us: cpu_us(system, measured),
    })
}

/// Processor time per operation. Ranks count their own over the timed operations. Nodes are read at
/// the gates, between which there is one operation more.
fn cpu_us(system: &str, (worker, seen): &Measured) -> Option<f64> {
    let nodes = match seen {
        Some(seen) => daemons(system, seen) / worker.operations as f64,
        // Without the nodes, half of our cost would look like all of it.
        None if is_ours(system) => return None,
        None => 0.0,
    };
    Some((worker.cpu_ns / worker.iterations as f64 + nodes) / 1e3)
}

/// Packets per operation, counted at the gates.
fn count_packets(row: &mut ResultRow, good: &[&Measured]) {
    add(&mut row.packets, "host_up", each(good, &|seen| Some(seen.packets_up), 1.0));
    add(&mut row.packets, "host_down", each(good, &|seen| Some(seen.packets_down), 1.0));
    add(&mut row.packets, "loopback", each(good, &|seen| seen.loopback_packets, 1.0));
}

/// What was counted at the gates, per vector byte.
fn observe(row: &mut ResultRow, good: &[&Measured], bytes: f64, ours: bool) {
    add(&mut row.wire_bytes_per_byte, "host_up", each(good, &|seen| Some(seen.link_up), bytes));
    add(&mut row.wire_bytes_per_byte, "host_down", each(good, &|seen| Some(seen.link_down), bytes));
    add(&mut row.wire_bytes_per_byte, "trunk_up", each(good, &|seen| Some(seen.trunk_up), bytes));
    add(&mut row.wire_bytes_per_byte, "trunk_down", each(good, &|seen| Some(seen.trunk_down), bytes));
    add(&mut row.wire_bytes_per_byte, "loopback", each(good, &|seen| seen.loopback, bytes));
    let names: Vec<String> = good
        .iter()
        .filter_map(|(_, seen)| seen.as_ref())
        .take(1)
        .flat_map(|seen| seen.cpu_ns.iter().map(|(name, _)| name.clone()))
        .collect();
    for name in names.into_iter().filter(|_| ours) {
        let of = |seen: &Observed| seen.cpu_ns.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, ns)| *ns);
        add(&mut row.cpu_ns_per_byte, &name, each(good, &|seen| Some(of(seen)), bytes));
    }
}

/// A count of every round per operation, divided by `per`.
fn each(good: &[&Measured], of: &dyn Fn(&Observed) -> Option<f64>, per: f64) -> Vec<f64> {
    let one = |(worker, seen): &&Measured| Some(of(seen.as_ref()?)? / worker.operations as f64 / per);
    good.iter().filter_map(one).collect()
}

/// Adds the median, if there is anything.
fn add(map: &mut BTreeMap<String, f64>, name: &str, values: Vec<f64>) {
    if !values.is_empty() {
        map.insert(name.to_owned(), median(&values));
    }
}

fn daemons(system: &str, seen: &Observed) -> f64 {
    if is_ours(system) { seen.cpu_ns.iter().map(|(_, ns)| ns).sum() } else { 0.0 }
}

/// Whether manager and nodes worked for this system.
fn is_ours(system: &str) -> bool {
    system.starts_with("tributary")
}

fn status(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Row(_) => None,
        Outcome::Unsupported(what) => Some(format!("unsupported: {what}")),
        Outcome::Failed(why) if why.starts_with("not installed") => Some(why.clone()),
        Outcome::Failed(why) => Some(format!("failed: {why}")),
        Outcome::Timeout(limit) => Some(format!("timeout after {} s", limit.as_secs())),
    }
}

/// The longest vector whose calls are compared one by one.
const CALL_BYTES_MAX: u64 = 256;

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use trib_wire::Collective;

    use super::*;
    use crate::line::tests::row as worker_row;
    use crate::network::Map;
    use crate::study::{Part, Shape};
    use crate::system::System;

    /// A study of one cell and two systems.
    pub(crate) fn study(cells: &[Cell]) -> Study {
        let part = |system| Part { system, cells: cells.to_vec(), rounds: 3 };
        Study {
            name: "test",
            shape: Shape { hosts: 8, leaf_ports: 4, rate_mbit: 500, rails: 1, uplink: None, pinned: true, ucx: false },
            ranks: 8,
            map: Map::ByLeaf,
            parts: vec![part(System::tributary()), part(System::gloo())],
            observes: false,
            counts_calls: false,
            budget: Duration::from_millis(100),
            min_iterations: 2,
        }
    }

    fn measured(system: &str, cell: Cell, outcome: Outcome) -> Measurement {
        Measurement { system: system.to_owned(), cell, round: 0, purpose: Purpose::Times, outcome, slowdown: 1.0 }
    }

    #[test]
    fn ratios_are_taken_inside_rounds() {
        let cell = Cell::sustained(Collective::Allreduce, 1 << 20);
        let one = |system: &str, round: u32, us: f64| {
            let outcome = Outcome::Row(Box::new((worker_row("allreduce", 1 << 20, us), None)));
            Measurement { round, ..measured(system, cell, outcome) }
        };
        // The machine is twice as slow in the second round, and three times as slow in a round that
        // only one of the systems has.
        let measurements = [
            one("tributary", 0, 10.0),
            one("gloo", 0, 20.0),
            one("tributary", 1, 22.0),
            one("gloo", 1, 40.0),
            one("tributary", 2, 30.0),
        ];
        let rows = rows(&study(&[cell]), &measurements);
        let ratio = rows[0].over(&rows[1], |round| Some(round.latency_us)).unwrap();
        assert!((ratio - 0.525).abs() < 1e-9, "{ratio}");
        assert_eq!(rows[0].over(&rows[1], |_| None), None);
    }

    #[test]
    fn rounds_become_a_median_and_failures_stay() {
        let cell = Cell::sustained(Collective::Allreduce, 1 << 20);
        let one = |us| Outcome::Row(Box::new((worker_row("allreduce", 1 << 20, us), None)));
        let timeout = Outcome::Timeout(Duration::from_secs(9));
        let measurements = [
            measured("tributary", cell, one(16_900.0)),
            measured("tributary", cell, one(17_000.0)),
            measured("tributary", cell, timeout.clone()),
            measured("gloo", cell, timeout),
        ];
        let rows = rows(&study(&[cell]), &measurements);
        assert_eq!(rows.len(), 2);
        let ours = &rows[0];
        assert_eq!((ours.rounds, ours.failures), (2, 1));
        assert_eq!(ours.status, "ok (1 of 3 rounds: timeout after 9 s)");
        assert!((ours.latency_us.unwrap() - 16_950.0).abs() < 1e-6);
        let share = ours.share_of_link.unwrap();
        assert!((share - 8.0 * f64::from(1 << 20) / 16_950.0 / 500.0).abs() < 1e-9);
        assert_eq!((rows[1].status.as_str(), rows[1].latency_us), ("timeout after 9 s", None));
    }

    #[test]
    fn what_was_counted_is_per_operation_and_byte() {
        let cell = Cell::sustained(Collective::Allreduce, 1000);
        let seen = Observed {
            link_up: 11_110.0,
            loopback: Some(5_500.0),
            packets_up: 44.0,
            cpu_ns: vec![("leaf0".to_owned(), 22_000.0)],
            node_switches: 11.0,
            node_calls: Some(22.0),
            rank_calls: Some(33.0),
            ..Default::default()
        };
        let outcome = |us| Outcome::Row(Box::new((worker_row("allreduce", 1000, us), Some(seen.clone()))));
        let timed = measured("tributary", cell, outcome(10.0));
        let counted = Measurement { purpose: Purpose::Calls, ..measured("tributary", cell, outcome(99.0)) };
        let rows = rows(&study(&[cell]), &[timed, counted]);
        assert_eq!((rows[0].latency_us, rows[0].each_round.len()), (Some(10.0), 1), "who is counted is not timed");
        assert!((rows[0].wire_bytes_per_byte["host_up"] - 1.01).abs() < 1e-9);
        assert!((rows[0].wire_bytes_per_byte["loopback"] - 0.5).abs() < 1e-9);
        assert!((rows[0].packets["host_up"] - 4.0).abs() < 1e-9);
        assert_eq!(rows[0].packets.get("loopback"), None, "what was not counted is not zero");
        assert!((rows[0].cpu_ns_per_byte["leaf0"] - 2.0).abs() < 1e-9);
        assert_eq!((rows[0].context_switches, rows[0].system_calls), (Some(3.0), Some(5.0)));
    }
}
