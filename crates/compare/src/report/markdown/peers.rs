//! Sections that compare systems.

use super::{Page, figure, share, time};
use crate::cell::{Mode, human};
use crate::result::ResultRow;
use crate::scenario::per_host;

impl Page<'_> {
    pub(super) fn sizes(&mut self) {
        let rows: Vec<&ResultRow> = self.of("allreduce").filter(|row| row.mode == Mode::Sustained).collect();
        if rows.is_empty() {
            return;
        }
        self.add("## Allreduce, 8 hosts on two leaves, 500 Mbit/s, sustained\n\nMbit/s of vector:\n\n");
        self.matrix(&rows, |row| {
            row.mbit_s.map(|rate| if rate < 10.0 { format!("{rate:.2}") } else { format!("{rate:.0}") })
        });
        self.add("\nMicroseconds per operation, with the spread between rounds:\n\n");
        self.matrix(&rows, time);
        self.add("\n");
        self.pictures(&["bandwidth", "latency", "share-of-pingpong", "speed-up"]);
    }

    pub(super) fn single_calls(&mut self) {
        let rows: Vec<&ResultRow> = self.of("allreduce").filter(|row| row.mode == Mode::Single).collect();
        if !rows.is_empty() {
            self.add("## Single allreduces after idle\n\nMicroseconds of the median call's slowest rank:\n\n");
            self.matrix(&rows, time);
            self.add("\n");
        }
    }

    pub(super) fn small(&mut self) {
        let rows: Vec<&ResultRow> = self.of("small").collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## Barrier and short allreduces\n\nOperations are sustained; the times are those of single calls, microseconds. CPU is that of all ranks and, for \
             Tributary, of manager and nodes.\n\n| operation | system | median | 99 % | CPU us per operation | context switches | system calls |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for row in rows {
            let what = operation(row);
            let (median, p99) = (figure(row.call_median_us, 0), figure(row.call_p99_us, 0));
            let (cpu, switches, calls) =
                (figure(row.cpu_us, 0), figure(row.context_switches, 1), figure(row.system_calls, 1));
            self.add(&format!("| {what} | {} | {median} | {p99} | {cpu} | {switches} | {calls} |\n", row.system));
        }
        self.add("\n");
    }

    pub(super) fn per_host(&mut self) {
        let rows: Vec<&ResultRow> = self.of(per_host::NAME).collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## Several ranks on each host\n\nFour hosts on two leaves, 200 Mbit/s; neighbours in rank are on different hosts. Ranks of a host share its memory \
             in the MPIs, and in Tributary they hang below a node in one of them. Times are those of single calls up to 256 B, else of sustained \
             operations. Bytes are those on a host's link per vector byte.\n\n\
             | ranks on each | operation | system | microseconds | bytes up | bytes down |\n| ---: | --- | --- | ---: | ---: | ---: |\n",
        );
        for row in rows {
            let each = row.ranks / u32::from(row.hosts.max(1));
            let time = figure(if row.bytes <= 256 { row.call_median_us } else { row.latency_us }, 0);
            let bytes = |way: &str| figure(row.wire_bytes_per_byte.get(way).copied().filter(|_| row.bytes > 256), 3);
            let (up, down) = (bytes("host_up"), bytes("host_down"));
            self.add(&format!("| {each} | {} | {} | {time} | {up} | {down} |\n", operation(row), row.system));
        }
        self.add("\n");
    }

    pub(super) fn collectives(&mut self) {
        let rows: Vec<&ResultRow> = self.of("collectives").collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## Reduce, bcast, reduce-scatter, allgather\n\nThe figures are shares of the link that count the whole vector: each of these collectives moves it over \
             one host's link once.\n\n",
        );
        let mut names: Vec<&str> = rows.iter().map(|row| row.collective.as_str()).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let own: Vec<&ResultRow> = rows.iter().copied().filter(|row| row.collective == name).collect();
            self.add(&format!("{name}:\n\n"));
            self.matrix(&own, share);
            self.add("\n");
        }
    }

    pub(super) fn fabrics(&mut self) {
        let titles = [
            ("gigabit", "8 hosts, 1 Gbit/s"),
            ("hosts-16", "16 hosts on four leaves, 200 Mbit/s"),
            ("blocking", "8 hosts, 500 Mbit/s, 4:1 blocking trunks"),
        ];
        for (scenario, title) in titles {
            for map in ["by leaf", "interleaved"] {
                let rows: Vec<&ResultRow> = self.of(scenario).filter(|row| row.map == map).collect();
                if rows.is_empty() {
                    continue;
                }
                let order = if scenario == "blocking" { format!(", ranks {map}") } else { String::new() };
                self.add(&format!("## Allreduce, {title}{order}\n\nShare of the link:\n\n"));
                self.matrix(&rows, share);
                self.add("\n");
                let trunk = rows
                    .iter()
                    .filter(|row| row.wire_bytes_per_byte.contains_key("trunk_up") && scenario == "blocking");
                let lines: Vec<String> = trunk
                    .map(|row| {
                        let of = |way| row.wire_bytes_per_byte.get(way).copied().unwrap_or(0.0);
                        let (up, down) = (of("trunk_up"), of("trunk_down"));
                        format!("| {} | {} | {up:.3} | {down:.3} |\n", human(row.bytes), row.system)
                    })
                    .collect();
                if !lines.is_empty() {
                    self.add("Bytes on the busiest trunk per vector byte:\n\n| vector | system | up | down |\n| ---: | --- | ---: | ---: |\n");
                    self.add(&lines.concat());
                    self.add("\n");
                }
            }
        }
        self.pictures(&["host-count"]);
    }
}

/// A row's collective and, where it has one, its size.
fn operation(row: &ResultRow) -> String {
    if row.bytes == 0 { row.collective.clone() } else { format!("{} {}", row.collective, human(row.bytes)) }
}
