//! A fabric in lines: one for each switch, from the top level down, with the things to which it is
//! connected.
//!
//! ```text
//! level 2
//!   spine0  node  down leaf[0-1] 2 x 100gbit
//! level 1
//!   leaf0   node  hosts h[0-3] 100gbit  up spine0 2 x 100gbit
//! ```

use std::collections::BTreeMap;

use crate::graph::{Graph, LinkRate};
use crate::hostlist::compress;

/// Where a link leads. The variants are in the order of printing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Hosts,
    Down,
    Across,
    Up,
}

/// The lines.
pub fn text(graph: &Graph) -> String {
    let mut levels: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for switch in graph.switches() {
        levels.entry(graph.vertices()[switch].level).or_default().push(switch);
    }
    let mut text = String::new();
    for (level, switches) in levels.iter().rev() {
        text.push_str(&format!("level {level}\n"));
        let name = |switch: &usize| graph.vertices()[*switch].name.as_str();
        let width = switches.iter().map(|switch| name(switch).chars().count()).max().unwrap_or(0);
        for switch in switches {
            let line = format!("  {:width$}  {}  {}", name(switch), nodes(graph, *switch), connections(graph, *switch));
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

fn nodes(graph: &Graph, switch: usize) -> String {
    let nodes = graph.nodes_at(switch).iter().map(|node| &graph.nodes()[*node]);
    let words = nodes.map(|node| node.nic.map_or("node".to_owned(), |nic| format!("server {} {nic}", node.name)));
    let words: Vec<String> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

fn connections(graph: &Graph, switch: usize) -> String {
    let mut parallel: BTreeMap<(Way, LinkRate, usize), u32> = BTreeMap::new();
    for link in graph.links_at(switch).iter().map(|link| &graph.links()[*link]) {
        let other = link.other(switch);
        *parallel.entry((way(graph, switch, other), link.rate, other)).or_default() += 1;
    }
    let mut bundles: BTreeMap<(Way, LinkRate, u32), Vec<&str>> = BTreeMap::new();
    for ((way, rate, other), count) in parallel {
        bundles.entry((way, rate, count)).or_default().push(&graph.vertices()[other].name);
    }
    let texts = bundles.into_iter().map(|((way, rate, count), names)| {
        let way = match way {
            Way::Hosts => "hosts",
            Way::Down => "down",
            Way::Across => "across",
            Way::Up => "up",
        };
        let times = if count > 1 { format!("{count} x ") } else { String::new() };
        format!("{way} {} {times}{rate}", compress(names))
    });
    texts.collect::<Vec<_>>().join("  ")
}

fn way(graph: &Graph, from: usize, to: usize) -> Way {
    let level = |vertex: usize| graph.vertices()[vertex].level;
    match level(to).cmp(&level(from)) {
        _ if graph.is_host(to) => Way::Hosts,
        std::cmp::Ordering::Less => Way::Down,
        std::cmp::Ordering::Equal => Way::Across,
        std::cmp::Ordering::Greater => Way::Up,
    }
}
