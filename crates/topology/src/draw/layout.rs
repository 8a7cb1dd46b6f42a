//! Where the parts of a fabric stand in a picture.
//!
//! With several levels each level is a row (`rows`). Otherwise switches attract and repel one
//! another (`springs`). Nothing in it is random, so a fabric always looks the same.

mod rows;
mod springs;

use std::collections::BTreeMap;

use crate::graph::Graph;
use crate::hostlist::compress;

/// An item of the picture, at its position.
pub(super) struct Item {
    /// The position of its centre, in pixels.
    pub(super) x: f64,
    pub(super) y: f64,
    /// The text in it.
    pub(super) label: String,
    /// The vertices that it stands for: one switch, or one or more hosts with the same links.
    pub(super) vertices: Vec<usize>,
}

/// The picture's measures and items; `item_of` gives the item of each vertex.
pub(super) struct Layout {
    /// Whether items of one level stand in a row.
    pub(super) has_rows: bool,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<Item>,
    pub(super) item_of: Vec<usize>,
}

/// If there are more hosts, those with the same links are drawn as one box.
const SINGLE_HOSTS_MAX: usize = 48;
const MARGIN: f64 = 40.0;

pub(super) fn layout(graph: &Graph) -> Layout {
    let has_rows = graph.switches().any(|switch| graph.vertices()[switch].level > 1);
    let mut items = items(graph, has_rows && graph.hosts().count() <= SINGLE_HOSTS_MAX);
    let mut item_of = vec![0; graph.vertices().len()];
    for (at, item) in items.iter().enumerate() {
        item.vertices.iter().for_each(|vertex| item_of[*vertex] = at);
    }
    if has_rows {
        rows::lay(graph, &mut items, &item_of)
    } else {
        springs::lay(graph, &mut items, &item_of)
    }
    let most = |value: fn(&Item) -> f64| items.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
    // The leftmost and the highest item stand at the margin.
    let (left, top) = (MARGIN + most(|item| half_width(item) - item.x), MARGIN + most(|item| -item.y));
    let (width, height) = (left + most(|item| item.x + half_width(item)) + MARGIN, top + most(|item| item.y) + MARGIN);
    for item in &mut items {
        (item.x, item.y) = (item.x + left, item.y + top);
    }
    Layout { has_rows, width, height, items, item_of }
}

/// Half of a box's width.
pub(super) fn half_width(item: &Item) -> f64 {
    3.5 * item.label.chars().count() as f64 + 8.0
}

// Switches in the graph's order, then hosts: each on its own, or one box for those with the same
// links.
fn items(graph: &Graph, single_hosts: bool) -> Vec<Item> {
    let item = |label: String, vertices: Vec<usize>| Item { x: 0.0, y: 0.0, label, vertices };
    let name = |vertex: usize| graph.vertices()[vertex].name.as_str();
    let mut items: Vec<Item> = graph.switches().map(|switch| item(name(switch).to_owned(), vec![switch])).collect();
    if single_hosts {
        items.extend(graph.hosts().map(|host| item(name(host).to_owned(), vec![host])));
        return items;
    }
    let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for host in graph.hosts() {
        let mut switches: Vec<usize> =
            graph.links_at(host).iter().map(|link| graph.links()[*link].other(host)).collect();
        switches.sort_unstable();
        groups.entry(switches).or_default().push(host);
    }
    items.extend(groups.into_values().map(|hosts| {
        let list = compress(hosts.iter().map(|host| name(*host)));
        let label = if list.chars().count() <= 20 { list } else { format!("{} hosts", hosts.len()) };
        item(label, hosts)
    }));
    items
}

fn neighbours(graph: &Graph, item: &Item) -> impl Iterator<Item = usize> {
    let vertex = item.vertices[0];
    graph.links_at(vertex).iter().map(move |link| graph.links()[*link].other(vertex))
}
