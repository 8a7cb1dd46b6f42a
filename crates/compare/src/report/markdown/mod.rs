//! The page with the tables: what was required, what was measured, and where the time goes.
//!
//! Sections that compare systems are in `peers`, those about Tributary alone in `ours`.

mod ours;
mod peers;

use std::fmt::Write as _;

use super::Comparison;
use super::plot::Plot;
use crate::cell::human;
use crate::pace::STEADY;
use crate::result::ResultRow;
use crate::targets::Target;

/// The page.
pub(super) fn page(comparison: &Comparison, plots: &[Plot]) -> String {
    let mut page = Page { text: String::new(), rows: &comparison.rows, plots };
    page.head(comparison);
    page.targets(&comparison.targets);
    page.where_time_goes();
    page.sizes();
    page.single_calls();
    page.small();
    page.per_host();
    page.one_host();
    page.ucx();
    page.collectives();
    page.fabrics();
    page.switching();
    page.costs();
    page.children();
    page.jobs();
    page.troubles();
    if let Some(kernels) = &comparison.kernels {
        page.add(&format!("## Kernels against the memory's bandwidth\n\n{}\n", kernels.trim()));
    }
    page.text
}

struct Page<'a> {
    text: String,
    rows: &'a [ResultRow],
    plots: &'a [Plot],
}

impl<'a> Page<'a> {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn head(&mut self, comparison: &Comparison) {
        let Comparison { machine, command, spent, seconds, .. } = comparison;
        let minutes = seconds / 60.0;
        self.add(&format!(
            "# Performance\n\n\
             Written by `{command}` on {}: {}, {} cores, Linux {}; it took {minutes:.1} minutes.\n\
             Hosts and switches are network namespaces of this one machine, with links that are shaped in both directions. Ranks, nodes\n\
             and manager share its cores. Each host and each switch runs on one core (`trib lab up --pin`), except where numbers of\n\
             children or ranks of one host are compared. Vectors are float32 and are summed; every result is compared with the exact one before and after\n\
             the timed operations. Before it began, other work kept the cores {:.0} % busy. There is one rank per host, where nothing else is said. Figures are medians\n\
             over rounds; in each round every system runs once. The targets' ratios between systems are medians of the ratios inside the\n\
             rounds.\n\n\
             A virtual machine shares its cores with other machines. Before and after every launch, fixed work on all cores tells how many\n\
             times longer it takes than on this machine at its best: that is the column *machine* of the targets, and `slowdown` in JSON\n\
             and CSV. Above {STEADY:.2} a launch waits, or is measured again and the steadier attempt is kept, as long as `--patience`\n\
             lasts. The figures themselves decide nothing. This run waited {:.0} s and repeated {} launches.\n\n\
             *Sustained* operations run back to back with no barrier between them, and the slowest rank counts. A *single* call comes\n\
             after a barrier and a pause that refills the links' token buckets. System calls are counted in launches of their own, because\n\
             counting them takes time. A share is one of the host link's rate: 8 x bytes / time / rate. An idle link lets its first 70 KB\n\
             through at once, so single calls and ping-pong below about 1 MB look faster than the link is.\n\n\
             Vectors are in memory of hosts. What was seen of memory of GPUs, and on which device, stands in [gpu.md](gpu.md) (`make test-gpu`).\n\
             Here programs call the library itself: what was measured of applications under MPI stands in [applications.md](applications.md), of MPI's\n\
             calls in [mpi-collectives.md](mpi-collectives.md), and of training in [pytorch.md](pytorch.md).\n\n",
            machine.date,
            machine.processor,
            machine.cores,
            machine.kernel,
            100.0 * machine.busy,
            spent.waited.as_secs_f64(),
            spent.repeated
        ));
    }

    fn targets(&mut self, targets: &[Target]) {
        self.add(
            "## Targets\n\n| what | required | measured | met | machine | shown by |\n| --- | --- | --- | --- | ---: | --- |\n",
        );
        for Target { what, required, measured, met, scenario, slowdown } in targets {
            let met = match met {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "-",
            };
            self.add(&format!(
                "| {what} | {required} | {measured} | {met} | {} | `trib bench compare --only {scenario}` |\n",
                figure(*slowdown, 2)
            ));
        }
        self.add("\n");
    }

    /// Processor time per vector byte, process by process, compared with what the link leaves.
    fn where_time_goes(&mut self) {
        let Some(row) =
            self.of("cost").filter(|row| row.system == "tributary" && row.bytes > 0).max_by_key(|row| row.bytes)
        else {
            return;
        };
        let wire_ns = 8e3 / row.rate_mbit;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        let hosts = row.cpu_ns_per_byte.get("host").copied().unwrap_or(0.0) * f64::from(row.ranks);
        let nodes: f64 = row.cpu_ns_per_byte.iter().filter(|(name, _)| *name != "host").map(|(_, ns)| ns).sum();
        let mut text = format!(
            "## Where the time goes\n\n\
             An allreduce of {} keeps each link busy for {wire_ns:.1} ns per vector byte; in that time {cores:.0} cores have {:.1} ns of\n\
             processor time. Of that the {} hosts use {hosts:.1} ns and the nodes {nodes:.1} ns, including the copies of the kernel's sockets.",
            human(row.bytes),
            wire_ns * cores,
            row.ranks
        );
        if let (Some(machine), Some(softirq)) = (row.machine_ns_per_byte, row.softirq_ns_per_byte) {
            let _ = write!(
                text,
                " The whole\nmachine uses {machine:.1} ns, {:.0} % of what there is; {softirq:.1} ns of it are the kernel's packet work outside of \
                 processes.",
                100.0 * machine / (wire_ns * cores)
            );
        }
        if let Some(faster) = self.of("gigabit").filter(|row| row.system == "tributary").max_by_key(|row| row.bytes)
            && let (Some(latency_us), Some(machine)) = (faster.latency_us, faster.machine_ns_per_byte)
        {
            let had = 1e3 * latency_us / faster.bytes as f64 * cores;
            let _ = write!(
                text,
                "\nAt {:.0} Mbit/s the cores had {had:.1} ns in the time that a vector byte took, and used {machine:.1} ns. The cores\n\
                 have unequal work: one has the spine, the manager, a leaf and its hosts, the other a leaf and its hosts. The busiest core\n\
                 worked {:.0} % of the time.",
                faster.rate_mbit,
                100.0 * faster.busiest_core.unwrap_or(0.0)
            );
        }
        text.push_str("\n\n| process | CPU ns per vector byte |\n| --- | ---: |\n");
        for (name, cost) in &row.cpu_ns_per_byte {
            let name = if name == "host" { "each host" } else { name };
            let _ = writeln!(text, "| {name} | {cost:.2} |");
        }
        text.push('\n');
        text.push_str(WHAT_LIMITS);
        self.add(&text);
    }

    fn troubles(&mut self) {
        let mut told: Vec<(String, String)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.status != "ok") {
            let who = format!("| {} | {} |", row.scenario, row.system);
            if !told.iter().any(|(known, status)| *known == who && *status == row.status) {
                told.push((who, row.status.clone()));
            }
        }
        if !told.is_empty() {
            self.add("## What gave no figure\n\n| scenario | system | why |\n| --- | --- | --- |\n");
            let lines: Vec<String> =
                told.iter().map(|(who, status)| format!("{who} {} |\n", status.replace('|', "/"))).collect();
            self.add(&lines.concat());
            self.add("\n");
        }
    }

    fn of(&self, scenario: &str) -> impl Iterator<Item = &'a ResultRow> + use<'a> {
        let scenario = scenario.to_owned();
        self.rows.iter().filter(move |row| row.scenario == scenario)
    }

    fn pictures(&mut self, names: &[&str]) {
        for plot in self.plots.iter().filter(|plot| names.contains(&plot.name)) {
            let (title, name) = (&plot.title, plot.name);
            let _ = writeln!(self.text, "![{title}](performance/{name}.svg)\n");
        }
    }

    /// One line per size, one column per system.
    fn matrix(&mut self, rows: &[&ResultRow], cell: impl Fn(&ResultRow) -> Option<String>) {
        let mut systems: Vec<&str> = Vec::new();
        for row in rows {
            if !systems.contains(&row.system.as_str()) {
                systems.push(&row.system);
            }
        }
        let mut sizes: Vec<u64> = rows.iter().map(|row| row.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let _ = writeln!(self.text, "| vector | {} |\n|---:|{}", systems.join(" | "), "---:|".repeat(systems.len()));
        for size in sizes {
            let one = |system: &&str| {
                let row = rows.iter().find(|row| row.bytes == size && row.system == *system)?;
                cell(row).or_else(|| Some(short_status(&row.status)))
            };
            let cells: Vec<String> =
                systems.iter().map(|system| one(system).unwrap_or_else(|| "-".to_owned())).collect();
            let _ = writeln!(self.text, "| {} | {} |", human(size), cells.join(" | "));
        }
    }
}

fn time(row: &ResultRow) -> Option<String> {
    row.latency_us.map(|us| format!("{us:.0} ±{:.0} %", 50.0 * row.spread))
}

fn share(row: &ResultRow) -> Option<String> {
    row.share_of_link.map(|share| format!("{share:.3}"))
}

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// The first word: ok, timeout, failed, unsupported.
fn short_status(status: &str) -> String {
    status.split([':', ' ']).next().unwrap_or_default().to_owned()
}

/// What profiles say, in addition to the figures that the comparison takes itself.
const WHAT_LIMITS: &str = "\
The rest of this section was measured once, on a virtual machine of two cores. `perf record` shows that a leaf at 16 MiB spends a
third of its time on sending, a quarter on receiving, a fifth on going to sleep and being woken, and 7 % on the fold. Of the time for
sending, two fifths are the copy into the socket; the rest is the packet's way through bridge and token bucket to the receiver, for
which the sender pays. Of the time for receiving, three fifths are the copy out of the socket. A host sends and receives a vector byte
once and folds nothing. With vectors of 16 MiB every byte comes from and goes to memory rather than a cache. The host sleeps until up
to 192 KiB of results are there; when every packet woke it, it took 0.9 ns. In comparison, iperf3 between two hosts of the same
fabric, in both directions at once and from one buffer that stays in the cache, costs a host 0.47 ns per byte sent and received.

- *Long vectors* are limited by the link. Of what is missing to 1.000, Ethernet, IP and TCP headers take 0.0074, and our own headers
  and the acknowledgements of the other direction 0.002 to 0.004; the rest is the way of the last segment up and down the tree.
- *Short operations* are limited by processor time: eight ranks and three nodes share the cores, and a process that waits yields
  instead of sleeping while that pays. An operation consists of twenty datagrams and, on two cores, of four waits until the process
  to which a datagram goes has its turn. On this fabric, a tree of programs that do nothing but receive, count and send, without
  headers, keys or memory of what was sent, takes 49 to 57 us. Work that is added to each of its datagrams lengthens the turns of all
  processes, and the operation by about twenty times as much. A rank spends some 3500 instructions on a datagram, a seventh of them on
  its tag.
- *Several jobs* share a link in proportion to their bytes in flight. A job that always has operations waiting gets more than one
  that waits for each result before it sends again, because the link never idles for the former and its queue delays the latter.

";

#[cfg(test)]
mod tests {
    use trib_wire::Collective::{Allreduce, Barrier};

    use super::*;
    use crate::cell::Cell;
    use crate::machine::Machine;
    use crate::result::tests::study;
    use crate::targets::targets;

    #[test]
    fn the_page_shows_figures_targets_and_troubles() {
        let mut rows = Vec::new();
        for (scenario, cell, latency) in [
            ("allreduce", Cell::sustained(Allreduce, 1 << 20), Some(17_000.0)),
            ("allreduce", Cell::sustained(Allreduce, 4 << 20), None),
            ("small", Cell::sustained(Barrier, 0), Some(150.0)),
            ("cost", Cell::sustained(Allreduce, 16 << 20), Some(270_000.0)),
            ("one-host", Cell::sustained(Barrier, 0), Some(1.25)),
            ("one-host", Cell::sustained(Allreduce, 1 << 20), Some(500.0)),
        ] {
            let mut row = ResultRow::new(&study(&[cell]), "tributary", &cell);
            row.scenario = scenario.to_owned();
            row.set_latencies(&latency.into_iter().collect::<Vec<_>>());
            if latency.is_none() {
                row.status = "timeout after 9 s".to_owned();
            }
            row.call_median_us = latency;
            row.cpu_ns_per_byte.insert("leaf0".to_owned(), 2.5);
            rows.push(row);
        }
        let machine = Machine { processor: "a processor".to_owned(), cores: 2, ..Machine::default() };
        let targets = targets(&rows);
        let comparison =
            Comparison { rows, targets, machine, kernels: Some("a table".to_owned()), ..Comparison::default() };
        let page = page(&comparison, &super::super::plots::draw(&comparison.rows));
        for text in [
            "a processor, 2 cores",
            "## Targets",
            "| 1 MiB | 493 |",
            "| 4 MiB | timeout |",
            "| allreduce | tributary | timeout after 9 s |",
            "| leaf0 | 2.50 |",
            "| ranks | operation | tributary | gain |",
            "| 8 | barrier | 1.2 | - |",
            "| 8 | allreduce 1 MiB | 500 | - |",
            "(performance/bandwidth.svg)",
            "a table",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
    }
}
