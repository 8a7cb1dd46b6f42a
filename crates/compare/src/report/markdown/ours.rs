//! Sections about Tributary alone: its two paths, what an operation costs, one leaf, several jobs.

use super::{Page, figure, time};
use crate::cell::{Mode, human};
use crate::result::ResultRow;

impl Page<'_> {
    pub(super) fn switching(&mut self) {
        let titles = [
            (
                "switch-point",
                "Datagrams or streams",
                "Tributary chooses the path itself, or is held to one of them; microseconds:",
            ),
            (
                "lock",
                "What the streaming lock costs",
                "One lease that lasts, and a lock for every operation; microseconds:",
            ),
            (
                "lanes",
                "Several lanes",
                "4 hosts with two links of 250 Mbit/s each and one rank on each host. There is one lane, or two along one tree, two over both \
                 links, or two along each link; microseconds:",
            ),
            ("lanes-shared", "Several lanes, two ranks on each host", "The same fabric with 8 ranks; microseconds:"),
        ];
        for (scenario, title, words) in titles {
            let rows: Vec<&ResultRow> = self.of(scenario).collect();
            if !rows.is_empty() {
                self.add(&format!("## {title}\n\n{words}\n\n"));
                self.matrix(&rows, time);
                self.add("\n");
                match scenario {
                    "lock" => self.pictures(&["lock-cost"]),
                    "switch-point" => self.pictures(&["switch-point"]),
                    _ => {}
                }
            }
        }
    }

    pub(super) fn costs(&mut self) {
        let rows: Vec<&ResultRow> = self.of("cost").collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## What an operation costs\n\nThese figures do not depend on the machine's noise. Wire bytes count every segment's headers, on the busiest host \
             link; context switches and system calls are those of all ranks and, for Tributary, of manager and nodes.\n\n\
             | operation | system | bytes up / S | bytes down / S | packets up | packets down | context switches | system calls |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for row in rows {
            let what = if row.bytes == 0 {
                row.collective.clone()
            } else {
                format!("{} {}", row.collective, human(row.bytes))
            };
            let wire = |way| figure(row.wire_bytes_per_byte.get(way).copied(), 4);
            let packets = |way| figure(row.packets.get(way).copied(), 1);
            self.add(&format!(
                "| {what} | {} | {} | {} | {} | {} | {} | {} |\n",
                row.system,
                wire("host_up"),
                wire("host_down"),
                packets("host_up"),
                packets("host_down"),
                figure(row.context_switches, 1),
                figure(row.system_calls, 1)
            ));
        }
        self.add("\n");
    }

    pub(super) fn children(&mut self) {
        let rows: Vec<&ResultRow> = self.of("children").collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## Hosts on one leaf\n\nThe links have 100 Mbit/s, and all vectors are streamed. A byte moved is one that is received from a child or sent to it: the trunk above a job's only leaf\ncarries nothing.\n\n\
             | children | leaf: CPU ns per vector byte | leaf: per byte moved | host: CPU ns per vector byte | share of the link |\n\
             | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for row in rows {
            let leaf = row.cpu_ns_per_byte.get("leaf0").copied();
            let moved = leaf.map(|cost| cost / crate::targets::moved(row.hosts));
            let host = row.cpu_ns_per_byte.get("host").copied();
            let (leaf, moved, host) = (figure(leaf, 2), figure(moved, 3), figure(host, 2));
            self.add(&format!("| {} | {leaf} | {moved} | {host} | {} |\n", row.hosts, figure(row.share_of_link, 3)));
        }
        self.add("\n");
        self.pictures(&["hosts-per-switch"]);
    }

    pub(super) fn jobs(&mut self) {
        let rows: Vec<&ResultRow> =
            self.of("flight").chain(self.of("jobs")).filter(|row| row.latency_us.is_some()).collect();
        if rows.is_empty() {
            return;
        }
        self.add(
            "## Several operations and several jobs at once\n\n`flight` is eight non-blocking allreduces at once. The others are two jobs \
             that begin together, and of each the median call counts. In `greedy` one of them\nwaits for each result before it sends again and the other always has eight operations in flight.\n\n| job | operations | share of the link | spread |\n| --- | --- | ---: | ---: |\n",
        );
        for row in rows {
            let name = if row.scenario == "flight" { format!("{} (flight)", row.system) } else { row.system.clone() };
            let many = if row.mode == Mode::Flight { "8 x " } else { "" };
            let (size, spread) = (human(row.bytes), 100.0 * row.spread);
            self.add(&format!("| {name} | {many}{size} | {} | {spread:.0} % |\n", figure(row.share_of_link, 3)));
        }
        self.add("\n");
    }
}
