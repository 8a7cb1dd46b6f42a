//! Sections that compare systems.

use super::{Page, figure, share, short_status, time};
use crate::cell::{Mode, human};
use crate::gain::{gains, is_same_cell};
use crate::result::ResultRow;
use crate::scenario::{one_host, per_host, ucx};
use crate::targets::outside;

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
             operations. Bytes are those on a host's link per vector byte. CPU is that of all ranks and, for Tributary, of manager and nodes. Of a short \
             operation's time\nprocessors are busy with it for CPU over their number at least; the rest is what links, wake-ups and the waits of processes for each \
             other take, and what would remain\nif processors took no time.\n\n\
             | ranks on each | operation | system | microseconds | CPU us | of it on each core | the rest | switches | bytes up | bytes down |\n\
             | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        for row in rows {
            let each = row.ranks / u32::from(row.hosts.max(1));
            let time = figure(row.time_us(), 0);
            let bytes = |way: &str| figure(row.wire_bytes_per_byte.get(way).copied().filter(|_| row.bytes > 256), 3);
            let (up, down) = (bytes("host_up"), bytes("host_down"));
            let cpu = row.cpu_us.filter(|_| row.bytes <= 256);
            let on_each = cpu.map(|cpu| cpu / cores);
            let rest = row.time_us().zip(on_each).map(|(time, on_each)| time - on_each);
            let [cpu, on_each, rest] = [cpu, on_each, rest].map(|value| figure(value, 0));
            let switches = figure(row.context_switches.filter(|_| row.bytes <= 256), 1);
            let (what, system) = (operation(row), &row.system);
            self.add(&format!(
                "| {each} | {what} | {system} | {time} | {cpu} | {on_each} | {rest} | {switches} | {up} | {down} |\n"
            ));
        }
    }

    pub(super) fn ucx(&mut self) {
        let rows: Vec<&ResultRow> = self.of(ucx::NAME).collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## Links over UCX\n\nAllreduce over four hosts on two leaves, 1 Gbit/s: all links go by TCP and UDP, then all by UCX with `UCX_TLS=tcp,self`, \
             which goes through the same kernel.\nMicroseconds per sustained operation, with the spread between rounds:\n\n",
        );
        self.matrix(&rows, time);
        self.add("\n");
    }

    pub(super) fn one_host(&mut self) {
        let rows: Vec<&ResultRow> = self.of(one_host::NAME).collect();
        let mut systems: Vec<&str> = Vec::new();
        let mut cells: Vec<&ResultRow> = Vec::new();
        for row in &rows {
            if !systems.contains(&row.system.as_str()) {
                systems.push(&row.system);
            }
            if !cells.iter().any(|known| is_same_cell(known, row)) {
                cells.push(row);
            }
        }
        if rows.is_empty() {
            return;
        }
        self.add(&format!(
            "## All ranks on one host\n\nThe host has all cores of this machine, and no rank is bound to one. Ranks of the MPIs share its memory, and yield while \
             they wait. `openmpi-sm` prefers the\ncollectives that write into memory which all ranks map; `openmpi-han`, where it is measured, leaves \
             communicators of one host to the others. In Tributary the ranks\nwork over memory that all of them map. UCC is not among the peers, because neither \
             Debian nor PyPI has a package with it that a C program could use. Times are\nmicroseconds, of single calls up to 256 B and of sustained \
             operations else. The gain is the best peer's time over ours.\n\n| ranks | operation | {} | gain |\n| ---: | --- |{}\n",
            systems.join(" | "),
            " ---: |".repeat(systems.len() + 1)
        ));
        let gains = gains(&rows);
        for cell in &cells {
            let one = |system: &&str| {
                let row = rows.iter().find(|row| row.system == *system && is_same_cell(row, cell));
                row.map_or_else(
                    || "-".to_owned(),
                    |row| row.time_us().map_or_else(|| short_status(&row.status), time_text),
                )
            };
            let times: Vec<String> = systems.iter().map(one).collect();
            let gain = gains.iter().find(|gain| is_same_cell(gain.ours, cell)).map(|gain| gain.ratio);
            let (ranks, what, times) = (cell.ranks, operation(cell), times.join(" | "));
            self.add(&format!("| {ranks} | {what} | {times} | {} |\n", figure(gain, 2)));
        }
        self.add(&format!(
            "\nContext switches of all ranks and, for Tributary, of manager and nodes, per operation:\n\n| ranks | operation | {} |\n| ---: | --- |{}\n",
            systems.join(" | "),
            " ---: |".repeat(systems.len())
        ));
        for cell in &cells {
            let one = |system: &&str| {
                let row = rows.iter().find(|row| row.system == *system && is_same_cell(row, cell));
                figure(row.and_then(|row| row.context_switches), 1)
            };
            let switches: Vec<String> = systems.iter().map(one).collect();
            self.add(&format!("| {} | {} | {} |\n", cell.ranks, operation(cell), switches.join(" | ")));
        }
        self.add(
            "\nA vector byte of a rank is read from its vector and written to the board once. Two ranks each read both and write the sum; of more each reads and writes its share of \
             the sum, and reads\nand writes the result: 3 bytes read and 2 written for two ranks, 3 read and 2 and a share written for more.\n",
        );
        self.add(
            "\nWhat left the memory of the ranks, over the host's link or its loopback, at most: bytes per vector byte from 1 KiB, packets per operation \
             below.\n\n| system | share |\n| --- | ---: |\n",
        );
        for system in systems {
            let shares = rows.iter().filter(|row| row.system == system).filter_map(|row| outside(row));
            self.add(&format!("| {system} | {} |\n", figure(shares.reduce(f64::max), 4)));
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
             one host's link once. An allgather need not bring a host its own block, so that its share may be more than 1.\n\n",
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

/// Microseconds with a digit more where they are few.
fn time_text(us: f64) -> String {
    figure(Some(us), if us < 100.0 { 1 } else { 0 })
}

/// A row's collective and, where it has one, its size.
fn operation(row: &ResultRow) -> String {
    if row.bytes == 0 { row.collective.clone() } else { format!("{} {}", row.collective, human(row.bytes)) }
}
