//! The plots of a comparison, as far as its rows allow.

use super::plot::Plot;
use crate::cell::Mode;
use crate::gain::{is_peer, is_same_cell};
use crate::result::ResultRow;
use crate::targets::moved;

/// Points of one series.
type Points = Vec<(f64, f64)>;

/// The plots that have points.
pub(super) fn draw(rows: &[ResultRow]) -> Vec<Plot> {
    let all = [
        bandwidth(rows),
        latency(rows),
        share_of_pingpong(rows),
        speed_up(rows),
        host_count(rows),
        children(rows),
        lock(rows),
        switch_point(rows),
    ];
    all.into_iter()
        .map(|mut plot| {
            plot.series.retain(|(_, points)| !points.is_empty());
            plot
        })
        .filter(|plot| !plot.series.is_empty())
        .collect()
}

fn bandwidth(rows: &[ResultRow]) -> Plot {
    let series = by_system(&sustained(rows, "allreduce"), size, |row| row.mbit_s);
    by_size("bandwidth", "Allreduce, 8 hosts, links of 500 Mbit/s", "Mbit/s of vector", true, series)
}

fn latency(rows: &[ResultRow]) -> Plot {
    let series = by_system(&sustained(rows, "allreduce"), size, |row| row.latency_us);
    by_size("latency", "Allreduce, 8 hosts, links of 500 Mbit/s", "us per operation", true, series)
}

fn share_of_pingpong(rows: &[ResultRow]) -> Plot {
    let rows = sustained(rows, "allreduce");
    let yardstick = |row: &ResultRow| {
        rows.iter().find(|other| other.system == "pingpong" && is_same_cell(other, row)).and_then(|other| other.mbit_s)
    };
    let others: Vec<&ResultRow> = rows.iter().copied().filter(|row| row.system != "pingpong").collect();
    let series = by_system(&others, size, |row| Some(row.mbit_s? / yardstick(row)?));
    by_size("share-of-pingpong", "Allreduce bandwidth over ping-pong's, 8 hosts", "share of ping-pong", false, series)
}

fn speed_up(rows: &[ResultRow]) -> Plot {
    let rows = sustained(rows, "allreduce");
    let best = |row: &ResultRow| {
        let peers = rows.iter().filter(|other| is_peer(other) && is_same_cell(other, row));
        peers.filter_map(|peer| peer.latency_us).min_by(f64::total_cmp)
    };
    let ours: Vec<&ResultRow> = rows.iter().copied().filter(|row| row.system.starts_with("tributary")).collect();
    let series = by_system(&ours, size, |row| Some(best(row)? / row.latency_us?));
    by_size("speed-up", "Allreduce: the best peer's time over ours, 8 hosts", "speed-up", false, series)
}

fn host_count(rows: &[ResultRow]) -> Plot {
    let meant: Vec<&ResultRow> = rows
        .iter()
        .filter(|row| matches!(row.scenario.as_str(), "host-count" | "hosts-16") && row.bytes == 4 << 20)
        .filter(|row| matches!(row.system.as_str(), "tributary" | "openmpi-ring"))
        .collect();
    let series = by_system(&meant, |row| f64::from(row.hosts), |row| row.share_of_link);
    let title = "Allreduce of 4 MiB by hosts, links of 200 Mbit/s".to_owned();
    Plot {
        name: "host-count",
        title,
        x_label: "hosts",
        y_label: "share of the link",
        y_log: false,
        x_bytes: false,
        series,
    }
}

fn children(rows: &[ResultRow]) -> Plot {
    let meant: Vec<&ResultRow> = rows.iter().filter(|row| row.scenario == "children").collect();
    let leaf = |row: &ResultRow| row.cpu_ns_per_byte.get("leaf0").copied();
    let hosts = |row: &&ResultRow| f64::from(row.hosts);
    let line = |of: &dyn Fn(&ResultRow) -> Option<f64>| -> Points {
        meant.iter().filter_map(|row| Some((hosts(row), of(row)?))).collect()
    };
    let series = vec![
        ("leaf, byte moved".to_owned(), line(&|row| Some(leaf(row)? / moved(row.hosts)))),
        ("host, vector byte".to_owned(), line(&|row| row.cpu_ns_per_byte.get("host").copied())),
    ];
    let title = "Processor time by hosts on one leaf".to_owned();
    let name = "hosts-per-switch";
    Plot { name, title, x_label: "hosts per switch", y_label: "CPU ns per byte", y_log: false, x_bytes: false, series }
}

fn lock(rows: &[ResultRow]) -> Plot {
    let mut series = by_system(&sustained(rows, "lock"), size, |row| row.latency_us);
    for (name, _) in &mut series {
        *name = if name == "tributary" { "one lease" } else { "a lock per operation" }.to_owned();
    }
    by_size("lock-cost", "Allreduce with a lock for each operation, and with a lease", "us per operation", true, series)
}

fn switch_point(rows: &[ResultRow]) -> Plot {
    let mut series = by_system(&sustained(rows, "switch-point"), size, |row| row.latency_us);
    for (name, _) in &mut series {
        *name = match name.as_str() {
            "tributary-llt" => "datagrams only",
            "tributary-sat" => "streams only",
            _ => "as it chooses",
        }
        .to_owned();
    }
    by_size("switch-point", "Allreduce over either path, 8 hosts", "us per operation", true, series)
}

fn sustained<'a>(rows: &'a [ResultRow], scenario: &str) -> Vec<&'a ResultRow> {
    rows.iter().filter(|row| row.scenario == scenario && row.mode == Mode::Sustained && row.bytes > 0).collect()
}

fn size(row: &ResultRow) -> f64 {
    row.bytes as f64
}

fn by_size(name: &'static str, title: &str, y_label: &'static str, y_log: bool, series: Vec<(String, Points)>) -> Plot {
    Plot { name, title: title.to_owned(), x_label: "bytes", y_label, y_log, x_bytes: true, series }
}

/// One series per system, in the order of their first rows.
fn by_system(
    rows: &[&ResultRow],
    x: impl Fn(&ResultRow) -> f64,
    y: impl Fn(&ResultRow) -> Option<f64>,
) -> Vec<(String, Points)> {
    let mut series: Vec<(String, Points)> = Vec::new();
    for row in rows {
        let Some(y) = y(row).filter(|y| y.is_finite() && *y > 0.0) else { continue };
        let point = (x(row), y);
        match series.iter_mut().find(|(name, _)| *name == row.system) {
            Some((_, points)) => points.push(point),
            None => series.push((row.system.clone(), vec![point])),
        }
    }
    for (_, points) in &mut series {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    series
}

#[cfg(test)]
mod tests {
    use trib_wire::Collective::Allreduce;

    use super::*;
    use crate::cell::Cell;
    use crate::result::tests::study;

    #[test]
    fn plots_are_drawn_of_what_there_is() {
        assert!(draw(&[]).is_empty());
        let mut rows = Vec::new();
        for (system, latency) in [("tributary", 17_000.0), ("gloo", 34_000.0), ("pingpong", 16_900.0)] {
            let cell = Cell::sustained(Allreduce, 1 << 20);
            let mut row = ResultRow::new(&study(&[cell]), system, &cell);
            row.scenario = "allreduce".to_owned();
            row.set_latencies(&[latency]);
            rows.push(row);
        }
        let plots = draw(&rows);
        let names: Vec<&str> = plots.iter().map(|plot| plot.name).collect();
        assert_eq!(names, ["bandwidth", "latency", "share-of-pingpong", "speed-up"]);
        assert_eq!(plots[3].series, [("tributary".to_owned(), vec![(1_048_576.0, 2.0)])]);
    }
}
