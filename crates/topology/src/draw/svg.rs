//! A fabric as a picture. Switches with nodes are filled, servers with nodes are small boxes at
//! their switch, and several parallel links are one thick line with their number. Pointing at a
//! part shows its name and rate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::layout::{Item, Layout, half_width, layout};
use crate::graph::{Graph, LinkRate};

/// The SVG text.
pub fn svg(graph: &Graph) -> String {
    let layout = layout(graph);
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escaped(graph.name())
    );
    links(&mut text, graph, &layout);
    for item in &layout.items {
        boxed(&mut text, graph, item);
    }
    text.push_str("</svg>\n");
    text
}

// Links with the same ends and rate are one line; so are those of hosts that stand in one box.
fn links(text: &mut String, graph: &Graph, layout: &Layout) {
    let mut lines: BTreeMap<(usize, usize, LinkRate), usize> = BTreeMap::new();
    for link in graph.links() {
        let [first, second] = link.ends.map(|end| layout.item_of[end]);
        *lines.entry((first.min(second), first.max(second), link.rate)).or_default() += 1;
    }
    text.push_str("<g fill=\"none\" stroke=\"#777777\">\n");
    for ((first, second, rate), count) in lines {
        let (a, b) = (&layout.items[first], &layout.items[second]);
        let thickness = 1.0 + (count as f64).log2().min(4.0) * 0.7;
        // Within a row a straight line would run through the items between.
        let is_row = layout.has_rows && (a.y - b.y).abs() < 1.0;
        let bend = if is_row { ((a.x - b.x).abs() * 0.12).clamp(25.0, 90.0) } else { 0.0 };
        let title = format!("{} to {}: {count} x {rate}", escaped(&a.label), escaped(&b.label));
        let (x, y) = ((a.x + b.x) / 2.0, (a.y + b.y) / 2.0 + bend * 2.0);
        put(
            text,
            format_args!(
                "<path d=\"M{:.1} {:.1}Q{x:.1} {y:.1} {:.1} {:.1}\" stroke-width=\"{thickness:.1}\"><title>{title}</title></path>\n",
                a.x, a.y, b.x, b.y
            ),
        );
    }
    text.push_str("</g>\n");
}

fn boxed(text: &mut String, graph: &Graph, item: &Item) {
    let vertex = item.vertices[0];
    let (half, label) = (half_width(item), escaped(&item.label));
    let nodes = graph.nodes_at(vertex).iter().map(|node| &graph.nodes()[*node]);
    let (inside, servers): (Vec<_>, Vec<_>) = nodes.partition(|node| node.nic.is_none());
    let (fill, round, what) = match (graph.is_host(vertex), inside.is_empty()) {
        (true, _) => (HOST, 9, "host"),
        (false, false) => (NODE, 3, "switch with a node"),
        (false, true) => (PLAIN, 3, "switch"),
    };
    put(
        text,
        format_args!(
            "<g><title>{what} {label}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"22\" rx=\"{round}\" \
             fill=\"{fill}\" stroke=\"#333333\"/><text x=\"{:.1}\" y=\"{:.1}\">{label}</text></g>\n",
            item.x - half,
            item.y - 11.0,
            half * 2.0,
            item.x,
            item.y + 4.0
        ),
    );
    for (i, server) in servers.iter().enumerate() {
        let (x, y) = (item.x - half + 12.0 * i as f64, item.y - 23.0);
        let rate = server.nic.map(|nic| nic.to_string()).unwrap_or_default();
        put(
            text,
            format_args!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"9\" height=\"9\" fill=\"{NODE}\" stroke=\"#333333\">\
                 <title>server {} {rate}</title></rect>\n",
                escaped(&server.name)
            ),
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to memory cannot fail");
}

const NODE: &str = "#e69f00";
const PLAIN: &str = "#dddddd";
const HOST: &str = "#ffffff";
