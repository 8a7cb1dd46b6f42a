//! What is required, and what was measured.

use serde::Serialize;

use crate::cell::{Mode, human};
use crate::gain::{Gain, gains, is_ours, is_peer, is_same_cell, mean};
use crate::result::{ResultRow, Round};
use crate::scenario::{one_host, per_host};
use crate::statistics::median;

/// One target.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Target {
    /// What is measured.
    pub what: String,
    /// What is required of it.
    pub required: String,
    /// What was measured, as text.
    pub measured: String,
    /// Whether that is enough; `None`: it was not measured.
    pub met: Option<bool>,
    /// The scenario that shows it.
    pub scenario: String,
    /// How much slower than at its best the machine was while this scenario was measured: the
    /// median over its rows.
    pub slowdown: Option<f64>,
}

/// All targets, with what these rows say about them.
pub fn targets(rows: &[ResultRow]) -> Vec<Target> {
    let rows = Rows(rows);
    let mut all = Vec::new();
    all.push(rows.share("allreduce, 8 hosts, 500 Mbit/s, sustained, from 1 MiB", "allreduce", 0.97, |row| {
        row.bytes >= MIB && row.collective == "allreduce"
    }));
    all.push(rows.share("the same at 16 MiB", "allreduce", 0.98, |row| row.bytes == 16 * MIB));
    all.push(rows.share("allreduce, 8 hosts, 1 Gbit/s, 16 MiB", "gigabit", 0.94, |row| row.bytes == 16 * MIB));
    all.push(rows.wire_time());
    all.push(
        rows.share("allreduce, 16 hosts on 4 leaves, 200 Mbit/s, 4 MiB", "hosts-16", 0.97, |row| row.bytes == 4 * MIB),
    );
    all.push(rows.share("allreduce, 4:1 blocking trunks, ranks interleaved, from 1 MiB", "blocking", 0.97, |row| {
        row.map == "interleaved" && row.bytes >= MIB
    }));
    all.push(rows.wire("the blocking trunk carries the vector once each way", "blocking", "trunk", 1.03, |row| {
        row.map == "interleaved" && row.bytes >= MIB
    }));
    for collective in ["reduce", "bcast", "reduce_scatter", "allgather"] {
        let what = format!("{collective} from 1 MiB, of what its bytes allow");
        all.push(rows.share(&what, "collectives", 0.95, |row| row.collective == collective && row.bytes >= MIB));
    }
    let small: fn(&ResultRow) -> bool = |row| row.bytes <= 256;
    all.push(rows.against_peers(
        "barrier and allreduce up to 256 B: median of the calls",
        0.70,
        ("small", small),
        |round| Some(round.call_median_us),
        "us",
    ));
    all.push(rows.against_peers(
        "the same: 99th percentile",
        1.0,
        ("small", small),
        |round| Some(round.call_p99_us),
        "us",
    ));
    all.push(rows.against_peers(
        "the same: CPU per operation, manager and nodes included",
        1.0,
        ("small", small),
        |round| round.cpu_us,
        "us",
    ));
    all.push(rows.switch_point());
    all.push(rows.wire("bytes on a host's link per vector byte, from 64 KiB", "cost", "host", 1.012, |row| {
        row.bytes >= 64 * KIB
    }));
    all.push(rows.cost("CPU of a leaf with 4 children, ns per vector byte, 16 MiB", "leaf", 3.0));
    all.push(rows.cost("CPU of a host, ns per vector byte, 16 MiB", "host", 0.7));
    all.push(rows.flat());
    for (case, what) in [
        ("two", "two jobs at once, each"),
        ("stopped-third", "two jobs beside a third with a stopped rank, each"),
        ("four-groups-a", "a job beside one that streams on four times the groups, each"),
    ] {
        let prefix = format!("tributary-{case}");
        all.push(rows.share_of(what, "jobs", 0.47, |row| row.system.starts_with(&prefix)));
    }
    all.push(rows.against_peers(
        "4 ranks on each of 4 hosts, barrier and 8 B: median of the calls",
        0.70,
        (per_host::NAME, |row| has_each(row, 4) && row.bytes <= 8),
        |round| Some(round.call_median_us),
        "us",
    ));
    all.push(rows.ranks_on_a_host());
    all.extend(rows.one_host());
    all.push(rows.share("8 x 1 MiB in flight, non-blocking", "flight", 0.97, |row| row.mode == Mode::Flight));
    for target in &mut all {
        let slowdowns: Vec<f64> = rows.of(&target.scenario).map(|row| row.slowdown).collect();
        target.slowdown = (!slowdowns.is_empty()).then(|| median(&slowdowns));
    }
    all
}

struct Rows<'a>(&'a [ResultRow]);

impl Rows<'_> {
    fn of(&self, scenario: &str) -> impl Iterator<Item = &ResultRow> {
        self.0.iter().filter(move |row| row.scenario == scenario && row.latency_us.is_some())
    }

    /// The least share of the link that Tributary's sustained rows reach.
    fn share(&self, what: &str, scenario: &str, least: f64, is_meant: impl Fn(&ResultRow) -> bool) -> Target {
        self.share_of(what, scenario, least, |row| {
            row.system == "tributary" && row.mode != Mode::Single && is_meant(row)
        })
    }

    fn share_of(&self, what: &str, scenario: &str, least: f64, is_meant: impl Fn(&ResultRow) -> bool) -> Target {
        let meant: Vec<&ResultRow> = self.of(scenario).filter(|row| is_meant(row)).collect();
        let worst =
            meant.iter().min_by(|a, b| a.share_of_link.unwrap_or(0.0).total_cmp(&b.share_of_link.unwrap_or(0.0)));
        let measured = worst.map(|row| {
            let share = row.share_of_link.unwrap_or(0.0);
            let at = if meant.len() > 1 { format!(" ({})", name(row)) } else { String::new() };
            // If a core is always at work, it is the limit then, not the link.
            let core =
                row.busiest_core.map_or_else(String::new, |busy| format!(", busiest core {:.0} % busy", 100.0 * busy));
            (format!("{share:.3}{at}{core}"), share >= least)
        });
        target(what, &format!(">= {least:.2} of the link"), scenario, measured)
    }

    fn wire_time(&self) -> Target {
        let row = self.of("allreduce").find(|row| is_ours(row) && row.bytes == 64 * KIB && row.mode == Mode::Sustained);
        let measured = row.and_then(|row| {
            let (latency, wire) = (row.latency_us?, 8.0 * row.bytes as f64 / row.rate_mbit);
            Some((format!("{:.3} ms over {:.3} ms", (latency - wire) / 1e3, wire / 1e3), latency <= wire + 400.0))
        });
        target("allreduce of 64 KiB: time over the wire's", "<= 0.4 ms", "allreduce", measured)
    }

    /// Wire bytes per vector byte, in the worse direction.
    fn wire(&self, what: &str, scenario: &str, link: &str, most: f64, is_meant: impl Fn(&ResultRow) -> bool) -> Target {
        let worst = self
            .of(scenario)
            .filter(|row| is_ours(row) && is_meant(row))
            .filter_map(|row| {
                let of = |way: &str| row.wire_bytes_per_byte.get(&format!("{link}_{way}")).copied();
                Some((of("up")?, of("down")?, row))
            })
            .max_by(|a, b| a.0.max(a.1).total_cmp(&b.0.max(b.1)));
        let measured = worst.map(|(up, down, row)| {
            let is_once = up.max(down) <= most && up.min(down) >= 0.99;
            (format!("{up:.4} up, {down:.4} down ({})", name(row)), is_once)
        });
        target(what, &format!("<= {most} each way"), scenario, measured)
    }

    /// A figure of ours divided by the best peer's, in the worst of the cells; the best peer is the
    /// one with the smallest median.
    fn against_peers(
        &self,
        what: &str,
        most: f64,
        (scenario, is_meant): (&str, impl Fn(&ResultRow) -> bool),
        figure: impl Fn(&Round) -> Option<f64> + Copy,
        unit: &str,
    ) -> Target {
        let ours = self.of(scenario).filter(|row| is_ours(row) && is_meant(row));
        let worst = ours
            .filter_map(|row| {
                let middle = |row: &ResultRow| {
                    let values: Vec<f64> = row.each_round.iter().filter_map(figure).collect();
                    (!values.is_empty()).then(|| median(&values))
                };
                let own = middle(row)?;
                let peers = self.of(scenario).filter(|other| is_peer(other) && is_same_cell(other, row));
                let (peer, best) =
                    peers.filter_map(|peer| Some((peer, middle(peer)?))).min_by(|a, b| a.1.total_cmp(&b.1))?;
                Some((row.over(peer, figure)?, own, best, peer, row))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let measured = worst.map(|(ratio, own, best, peer, row)| {
            let at = name(row);
            (format!("{ratio:.2}: {own:.0} {unit} against {best:.0} {unit} of {} ({at})", peer.system), ratio <= most)
        });
        target(what, &format!("<= {most:.2} of the best peer's"), scenario, measured)
    }

    fn switch_point(&self) -> Target {
        let held_to =
            |path: &str, bytes: u64| self.of("switch-point").find(|row| row.system == path && row.bytes == bytes);
        let worst = self
            .of("switch-point")
            .filter(|row| is_ours(row))
            .filter_map(|row| {
                let (llt, sat) = (held_to("tributary-llt", row.bytes)?, held_to("tributary-sat", row.bytes)?);
                let better = if llt.latency_us? <= sat.latency_us? { llt } else { sat };
                Some((row.over(better, |round| Some(round.latency_us))?, row))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let measured = worst.map(|(ratio, row)| (format!("{ratio:.2} ({})", name(row)), ratio <= 1.15));
        target("time over the better path's, every power of two", "<= 1.15", "switch-point", measured)
    }

    /// The highest cost among the processes whose names begin with `process`.
    fn cost(&self, what: &str, process: &str, most: f64) -> Target {
        let row = self.of("cost").filter(|row| is_ours(row)).max_by_key(|row| row.bytes);
        let worst = row.and_then(|row| {
            let costs = row.cpu_ns_per_byte.iter().filter(|(name, _)| name.starts_with(process));
            costs.map(|(_, cost)| *cost).max_by(f64::total_cmp)
        });
        target(what, &format!("<= {most}"), "cost", worst.map(|cost| (format!("{cost:.2}"), cost <= most)))
    }

    /// Long vectors with four ranks on each host, over the same with one.
    fn ranks_on_a_host(&self) -> Target {
        let ours = || self.of(per_host::NAME).filter(|row| is_ours(row) && row.bytes >= 4 * MIB);
        let worst = ours()
            .filter(|row| has_each(row, 4))
            .filter_map(|row| {
                let one = ours().find(|one| has_each(one, 1) && one.bytes == row.bytes)?;
                Some((row.latency_us? / one.latency_us?, row))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let measured = worst.map(|(ratio, row)| (format!("{ratio:.3} ({})", name(row)), ratio <= 1.10));
        target("4 ranks on each of 4 hosts, from 4 MiB: time over that of one", "<= 1.10", per_host::NAME, measured)
    }

    /// Ranks that share one host: what they gain, and that they share its memory.
    fn one_host(&self) -> [Target; 4] {
        let all: Vec<&ResultRow> = self.0.iter().filter(|row| row.scenario == one_host::NAME).collect();
        let each = gains(&all);
        let told = |Gain { ours, peer, ratio }: &Gain<'_>| {
            let (own, best) = (ours.time_us().unwrap_or(f64::NAN), peer.time_us().unwrap_or(f64::NAN));
            format!(
                "{ratio:.2}: {own:.1} us against {best:.1} us of {} ({}, {} ranks)",
                peer.system,
                name(ours),
                ours.ranks
            )
        };
        let worst = each.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)).map(|gain| (told(gain), gain.ratio >= 0.95));
        let of_all = mean(&each).map(|mean| (format!("{mean:.2}"), mean >= 1.0));
        let is_middle = |gain: &&Gain<'_>| (64 * KIB..=4 * MIB).contains(&gain.ours.bytes);
        let middle: Vec<Gain<'_>> = each.iter().filter(is_middle).copied().collect();
        let of_middle = mean(&middle).map(|mean| (format!("{mean:.2}"), mean >= 1.3));
        let shares = all.iter().filter(|row| is_ours(row)).filter_map(|row| Some((outside(row)?, *row)));
        let most = shares.max_by(|a, b| a.0.total_cmp(&b.0));
        let most = most.map(|(share, row)| (format!("{share:.4} ({}, {} ranks)", name(row), row.ranks), share <= 0.05));
        [
            target(
                "all ranks on one host, every cell: the best peer's time over ours",
                ">= 0.95",
                one_host::NAME,
                worst,
            ),
            target("the same, geometric mean", ">= 1.00", one_host::NAME, of_all),
            target("the same from 64 KiB to 4 MiB, geometric mean", ">= 1.30", one_host::NAME, of_middle),
            target("the same: what leaves the memory, per byte or operation", "<= 0.05", one_host::NAME, most),
        ]
    }

    /// A leaf's cost per byte moved with few and with many children.
    fn flat(&self) -> Target {
        let mut costs: Vec<(u16, f64)> = self
            .of("children")
            .filter_map(|row| {
                let leaf = row.cpu_ns_per_byte.get("leaf0")?;
                Some((row.hosts, leaf / moved(row.hosts)))
            })
            .collect();
        costs.sort_by_key(|(children, _)| *children);
        let measured = (costs.len() > 1).then(|| {
            let each: Vec<String> = costs.iter().map(|(children, cost)| format!("{children}: {cost:.2}")).collect();
            // The cost is flat if a byte costs no more with the most children than with the fewest,
            // with a tenth for noise.
            (format!("{} ns", each.join(", ")), costs[costs.len() - 1].1 <= costs[0].1 * 1.1)
        });
        target("CPU of a leaf per byte moved, by children", "flat from 2 to 32", "children", measured)
    }
}

/// Vector bytes that the only leaf of a job moves per byte of vector, from each child and to each
/// child. It is the root of the job's tree, so its trunk carries nothing (as the trunk's counters
/// show).
pub(crate) fn moved(children: u16) -> f64 {
    2.0 * f64::from(children)
}

/// What crossed the busiest host's link or loopback, whichever carried more: bytes per vector byte,
/// or packets per operation where vectors are so short that what ranks tell the manager counts. An
/// operation that has to leave the memory takes one or more.
pub(crate) fn outside(row: &ResultRow) -> Option<f64> {
    let counts = if row.bytes < KIB { &row.packets } else { &row.wire_bytes_per_byte };
    let of = |way: &str| counts.get(way).copied();
    Some(of("host_up")?.max(of("host_down")?).max(of("loopback")?))
}

/// Whether the row is of so many ranks on each host.
fn has_each(row: &ResultRow, each: u32) -> bool {
    row.ranks == each * u32::from(row.hosts)
}

/// What distinguishes a row from others of its scenario.
fn name(row: &ResultRow) -> String {
    if row.bytes == 0 { row.collective.clone() } else { format!("{}, {}", row.collective, human(row.bytes)) }
}

fn target(what: &str, required: &str, scenario: &str, measured: Option<(String, bool)>) -> Target {
    let met = measured.as_ref().map(|(_, met)| *met);
    let measured = measured.map_or_else(|| "not measured".to_owned(), |(text, _)| text);
    Target {
        what: what.to_owned(),
        required: required.to_owned(),
        measured,
        met,
        scenario: scenario.to_owned(),
        slowdown: None,
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use trib_wire::Collective::{Allreduce, Barrier};

    use super::*;
    use crate::cell::Cell;
    use crate::result::tests::study;

    fn row(scenario: &str, system: &str, cell: Cell, latency_us: f64) -> ResultRow {
        let mut row = ResultRow::new(&study(&[cell]), system, &cell);
        row.scenario = scenario.to_owned();
        row.set_latencies(&[latency_us]);
        row.each_round =
            vec![Round { number: 0, latency_us, call_median_us: latency_us, call_p99_us: latency_us, cpu_us: None }];
        row
    }

    fn find(targets: &[Target], text: &str) -> Target {
        targets.iter().find(|target| target.what.contains(text)).unwrap().clone()
    }

    #[test]
    fn the_worst_size_decides() {
        let wire = 8.0 * MIB as f64 / 500.0;
        let mut rows = vec![row("allreduce", "tributary", Cell::sustained(Allreduce, MIB), wire / 0.98)];
        assert_eq!(find(&targets(&rows), "from 1 MiB").met, Some(true));
        rows.push(row("allreduce", "tributary", Cell::sustained(Allreduce, 16 * MIB), 16.0 * wire / 0.96));
        rows[1].slowdown = 1.5;
        let all = targets(&rows);
        assert_eq!(find(&all, "from 1 MiB").slowdown, Some(1.25));
        assert_eq!(find(&all, "1 Gbit/s").slowdown, None);
        assert_eq!((find(&all, "from 1 MiB").met, find(&all, "at 16 MiB").met), (Some(false), Some(false)));
        assert!(find(&all, "from 1 MiB").measured.contains("16 MiB"));
        assert_eq!(find(&all, "1 Gbit/s").met, None);
        rows[1].busiest_core = Some(0.994);
        assert!(find(&targets(&rows), "at 16 MiB").measured.ends_with("busiest core 99 % busy"));
    }

    #[test]
    fn the_best_peer_counts() {
        let cell = Cell::sustained(Barrier, 0);
        let mut rows = vec![
            row("small", "tributary", cell, 130.0),
            row("small", "gloo", cell, 4000.0),
            row("small", "openmpi", cell, 200.0),
            row("small", "tributary-mpi", cell, 100.0),
        ];
        let target = find(&targets(&rows), "median of the calls");
        assert_eq!(target.met, Some(true));
        assert!(target.measured.starts_with("0.65: 130 us against 200 us of openmpi"), "{}", target.measured);
        rows[0].each_round[0].call_median_us = 150.0;
        assert_eq!(find(&targets(&rows), "median of the calls").met, Some(false));
    }

    #[test]
    fn ranks_of_a_host_are_compared_with_as_many_of_a_peer_and_with_one() {
        let row = |system: &str, each: u32, cell: Cell, latency_us: f64| {
            let mut row = row(per_host::NAME, system, cell, latency_us);
            row.ranks = each * u32::from(row.hosts);
            row
        };
        let (short, long) = (Cell::sustained(Allreduce, 8), Cell::sustained(Allreduce, 4 * MIB));
        let mut rows = vec![
            row("tributary", 1, short, 150.0),
            row("mpich", 1, short, 100.0),
            row("tributary", 4, short, 300.0),
            row("mpich", 4, short, 600.0),
            row("tributary", 1, long, 170_000.0),
            row("tributary", 4, long, 175_000.0),
            row("mpich", 4, long, 90_000.0),
        ];
        let all = targets(&rows);
        let (short, long) = (find(&all, "barrier and 8 B"), find(&all, "from 4 MiB: time over"));
        assert!(short.measured.starts_with("0.50: 300 us against 600 us of mpich"), "{}", short.measured);
        assert_eq!((short.met, long.met, long.measured.as_str()), (Some(true), Some(true), "1.029 (allreduce, 4 MiB)"));
        rows[5].latency_us = Some(200_000.0);
        assert_eq!(find(&targets(&rows), "from 4 MiB: time over").met, Some(false));
        rows.remove(4);
        assert_eq!(find(&targets(&rows), "from 4 MiB: time over").met, None, "without one rank there is no ratio");
    }

    #[test]
    fn ranks_of_one_host_are_judged_by_every_cell_and_by_the_mean() {
        let row = |system: &str, bytes: u64, latency_us: f64| {
            let mut row = row(one_host::NAME, system, Cell::sustained(Allreduce, bytes), latency_us);
            row.call_median_us = row.latency_us;
            for way in ["host_up", "host_down", "loopback"] {
                row.packets.insert(way.to_owned(), 0.001);
                row.wire_bytes_per_byte.insert(way.to_owned(), 0.002);
            }
            row
        };
        let mut rows = vec![
            row("tributary", 8, 10.0),
            row("mpich", 8, 9.0),
            row("openmpi-sm", 8, 12.0),
            row("tributary", 64 * KIB, 50.0),
            row("mpich", 64 * KIB, 80.0),
        ];
        let verdicts = |rows: &[ResultRow]| {
            let all = targets(rows);
            let of_one = all.iter().filter(|target| target.scenario == one_host::NAME);
            of_one.map(|target| (target.measured.clone(), target.met)).collect::<Vec<_>>()
        };
        let expected = [
            ("0.90: 10.0 us against 9.0 us of mpich (allreduce, 8 B, 8 ranks)", Some(false)),
            ("1.20", Some(true)),
            ("1.60", Some(true)),
            ("0.0020 (allreduce, 64 KiB, 8 ranks)", Some(true)),
        ];
        assert_eq!(verdicts(&rows), expected.map(|(text, met)| (text.to_owned(), met)));
        rows[3].wire_bytes_per_byte.insert("loopback".to_owned(), 1.0);
        assert_eq!(verdicts(&rows)[3].1, Some(false), "who meets over the loopback shares no memory");
        rows[3].latency_us = None;
        rows[3].each_round.clear();
        assert_eq!(
            verdicts(&rows)[1],
            ("0.00".to_owned(), Some(false)),
            "a cell without a figure is none that is left out"
        );
    }

    #[test]
    fn costs_and_bytes_have_limits() {
        let cell = Cell::sustained(Allreduce, 16 * MIB);
        let mut one = row("cost", "tributary", cell, 270_000.0);
        one.cpu_ns_per_byte = [("leaf0", 2.5), ("leaf1", 3.2), ("host", 0.6)].map(|(n, v)| (n.to_owned(), v)).into();
        one.wire_bytes_per_byte = [("host_up", 1.009), ("host_down", 1.011)].map(|(n, v)| (n.to_owned(), v)).into();
        let all = targets(&[one]);
        assert_eq!(find(&all, "leaf with 4").met, Some(false));
        assert_eq!(find(&all, "CPU of a host").met, Some(true));
        assert_eq!(find(&all, "bytes on a host's link").met, Some(true));
    }

    #[test]
    fn a_leaf_is_flat_by_bytes_moved() {
        let children = |hosts: u16, ns: f64| {
            let mut one = row("children", "tributary", Cell::sustained(Allreduce, MIB), 1.0);
            one.hosts = hosts;
            one.cpu_ns_per_byte.insert("leaf0".to_owned(), ns);
            one
        };
        let rows = [children(2, 3.0), children(32, 33.0)];
        assert_eq!(find(&targets(&rows), "per byte moved").met, Some(true));
        let rows = [children(2, 3.0), children(32, 66.0)];
        assert_eq!(find(&targets(&rows), "per byte moved").met, Some(false));
    }
}
