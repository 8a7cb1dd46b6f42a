//! A job's tree in lines: every node with its ranks below it, which of them are late, and how full
//! the links are.
//!
//! ```text
//! NODE                   STATE              UP                      DOWN
//! root
//! ├─ leaf0                                    31 MB/s  25 % ██    ▕   31 MB/s  25 % ██    ▕
//! │  └─ ranks 0-1 on h[0-1]                   31 MB/s  25 % ██    ▕   31 MB/s  25 % ██    ▕
//! └─ leaf1                                     0 B/s   0 %       ▕    0 B/s   0 %       ▕
//!    ├─ rank 2 on h2
//!    └─ rank 3 on h3     12 s late
//! ```
//! Ranks without anything special share a line, whose figures are those of the fullest link.

use std::collections::{BTreeMap, BTreeSet};

use trib_control::clock::span;
use trib_messages::explanation::{ChildPart, HostedPart, LatePart, NodePart, WayPart};
use trib_topology::hostlist::compress;
use trib_wire::ids::{ChildIndex, NodeId};
use trib_wire::{ChildKind, Directory as _, RankList};

use super::is_told_below;
use super::naming::Naming;
use super::rates::Rates;
use crate::bar;
use crate::commands::units::bytes_per_second;
use crate::view::{Canvas, Line, Tone};

/// The tree of one lane. `parts` are those of the whole job, `lane` those of the lane.
pub(super) fn lines(
    lane: &[&HostedPart],
    parts: &[HostedPart],
    naming: &Naming,
    rates: &Rates<'_>,
    canvas: Canvas,
) -> Vec<Line> {
    let known = lane.iter().map(|hosted| (hosted.part.node, *hosted)).collect();
    let mut growing = Growing { known, parts, naming, rates, rows: Vec::new(), seen: BTreeSet::new() };
    for hosted in lane {
        // If a node does not answer, the nodes below it are roots of what is known.
        if hosted.part.parent.is_none_or(|parent| !growing.known.contains_key(&parent)) {
            growing.node(hosted, Link::None, None, &Stem::default());
        }
    }
    layout(&growing.rows, canvas)
}

/// Whether the legend says how full links are: that is so if the rate of any link is known.
pub(super) fn knows_rates(lane: &[&HostedPart]) -> bool {
    lane.iter().flat_map(|hosted| &hosted.ways).any(|way| way.bits_per_second.is_some())
}

/// A line of the tree before its columns have widths.
struct Row {
    stem: Stem,
    name: String,
    is_node: bool,
    state: Option<(Tone, String)>,
    link: Link,
}

/// The lines in front of a row: for each level above it, whether more rows follow on that level.
#[derive(Clone, Default)]
struct Stem(Vec<bool>);

impl Stem {
    fn below(&self, has_next: bool) -> Stem {
        let mut stem = self.clone();
        stem.0.push(has_next);
        stem
    }

    /// The row's branches on a terminal; for a program, two blanks for each level.
    fn drawn(&self, canvas: Canvas) -> String {
        let Some((last, above)) = self.0.split_last() else { return String::new() };
        if canvas == Canvas::Pipe {
            return "  ".repeat(self.0.len());
        }
        let mut stem: String = above.iter().map(|has_next| if *has_next { "\u{2502}  " } else { "   " }).collect();
        stem += if *last { "\u{251c}\u{2500} " } else { "\u{2514}\u{2500} " };
        stem
    }
}

/// What flows over a link, or over the fullest of several.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Link {
    /// A root has no link above it.
    None,
    Unknown,
    Flows([Flow; 2]),
}

/// What flows in one direction of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Flow {
    bytes_per_second: f64,
    /// The share of the link's rate, if that is known.
    share: Option<f64>,
}

impl Flow {
    fn fuller(self, other: Flow) -> Flow {
        let key = |flow: Flow| flow.share.unwrap_or(flow.bytes_per_second);
        if key(other) > key(self) { other } else { self }
    }
}

struct Growing<'a> {
    known: BTreeMap<NodeId, &'a HostedPart>,
    parts: &'a [HostedPart],
    naming: &'a Naming,
    rates: &'a Rates<'a>,
    rows: Vec<Row>,
    seen: BTreeSet<NodeId>,
}

/// The children of a node that share one line.
struct Below {
    children: Vec<ChildIndex>,
    hosts: Vec<String>,
    node: Option<NodeId>,
    state: Option<(Tone, String)>,
    link: Link,
}

impl Growing<'_> {
    fn node(&mut self, hosted: &HostedPart, link: Link, state: Option<(Tone, String)>, stem: &Stem) {
        // Nodes that claim to be below each other would otherwise have no end.
        if !self.seen.insert(hosted.part.node) {
            return;
        }
        let name = self.naming.node(hosted.part.node);
        self.rows.push(Row { stem: stem.clone(), name, is_node: true, state, link });
        let below = self.below(hosted);
        let count = below.len();
        for (at, Below { children, hosts, node, state, link }) in below.into_iter().enumerate() {
            let stem = stem.below(at + 1 < count);
            match node.and_then(|node| self.known.get(&node).copied()) {
                Some(child) => self.node(child, link, state, &stem),
                None => {
                    let name = self.name(&hosted.part, &children, &hosts, node);
                    self.rows.push(Row { stem, name, is_node: false, state, link });
                }
            }
        }
    }

    /// One line for each node and for each host with something special, and one for all other
    /// ranks.
    fn below(&self, hosted: &HostedPart) -> Vec<Below> {
        let HostedPart { part, ways, .. } = hosted;
        let mut below: Vec<Below> = Vec::new();
        let mut calm: Option<usize> = None;
        for way in all_ways(part, ways) {
            let children: Vec<(ChildIndex, &ChildPart)> =
                way.children.iter().filter_map(|at| Some((*at, part.children.get(usize::from(at.0))?))).collect();
            let Some((_, first)) = children.first() else { continue };
            let node = match first.kind {
                ChildKind::Node(node) => Some(node),
                ChildKind::Rank(_) => None,
            };
            let (link, state) = (self.link(part.node, &way, &children), self.state(part, &children));
            let hosts: Vec<String> = way.host.into_iter().collect();
            let one = Below { children: way.children, hosts, node, state, link };
            match calm.filter(|_| node.is_none() && one.state.is_none()) {
                Some(calm) => below[calm].join(one),
                None => {
                    if node.is_none() && one.state.is_none() {
                        calm = Some(below.len());
                    }
                    below.push(one);
                }
            }
        }
        below
    }

    fn link(&self, node: NodeId, way: &WayPart, children: &[(ChildIndex, &ChildPart)]) -> Link {
        let (mut up, mut down) = (0.0, 0.0);
        for (at, _) in children.iter().filter(|(_, child)| child.connected) {
            let Some(rates) = self.rates.link(node, usize::from(at.0)) else { return Link::Unknown };
            (up, down) = (up + rates.up, down + rates.down);
        }
        if children.iter().all(|(_, child)| !child.connected) {
            return Link::Unknown;
        }
        let flow = |bytes_per_second: f64| {
            let share = way.bits_per_second.map(|bits| 8.0 * bytes_per_second / bits.max(1) as f64);
            Flow { bytes_per_second, share }
        };
        Link::Flows([up, down].map(flow))
    }

    /// What a reader has to know of these children: which are late and for how long, which do not
    /// answer, and which do not take their data.
    fn state(&self, part: &NodePart, children: &[(ChildIndex, &ChildPart)]) -> Option<(Tone, String)> {
        let late = |at: ChildIndex| {
            let of = part.groups.iter().flat_map(|group| group.late.iter().map(move |late| (group, late)));
            let of_child = of.filter(|(group, late)| late.child == at && !is_told_below(part, group, late, self.parts));
            let noticed = of_child.filter(|(group, late)| self.rates.is_noticed(part.node, group, late));
            noticed.map(|(_, late)| late).max_by_key(|late| late.waited_ms)
        };
        let lates: Vec<&LatePart> = children.iter().filter_map(|(at, _)| late(*at)).collect();
        let is_node = children.iter().any(|(_, child)| matches!(child.kind, ChildKind::Node(_)));
        if let Some(worst) = lates.iter().max_by_key(|late| late.waited_ms) {
            let who = match lates.len() {
                1 if worst.ranks > 1 => format!("some of {} ", worst.ranks),
                1 if children.len() > 1 || is_node => format!("rank {} ", worst.rank.0),
                1 => String::new(),
                count => format!("{count} ranks "),
            };
            let age = worst.waited_ms.map_or_else(String::new, |ms| format!("{} ", span(ms)));
            return Some((Tone::Alarm, format!("{who}{age}late")));
        }
        let closed = children.iter().filter(|(_, child)| !child.connected).count();
        let does_not_answer =
            |child: &ChildPart| matches!(child.kind, ChildKind::Node(node) if !self.known.contains_key(&node));
        if children.iter().any(|(_, child)| does_not_answer(child)) {
            return Some((Tone::Alarm, "does not answer".to_owned()));
        }
        match closed {
            0 => {}
            _ if closed == children.len() => return Some((Tone::Warning, "not connected".to_owned())),
            _ => return Some((Tone::Warning, format!("{closed} of {} not connected", children.len()))),
        }
        let queued: u64 = children.iter().map(|(_, child)| child.queued_bytes).sum();
        if queued >= QUEUED_NOTICED {
            return Some((Tone::Warning, format!("{} MiB queued", queued >> 20)));
        }
        let apart: Vec<_> = children.iter().filter(|(_, child)| child.apart).map(|(at, _)| *at).collect();
        let who = match apart.len() {
            0 => return None,
            count if count == children.len() => String::new(),
            _ => format!("{}: ", self.name(part, &apart, &[], None)),
        };
        Some((Tone::Warning, format!("{who}no shared memory")))
    }

    fn name(&self, part: &NodePart, children: &[ChildIndex], hosts: &[String], node: Option<NodeId>) -> String {
        let lists = children.iter().filter_map(|at| part.children.get(usize::from(at.0))).map(|child| &child.ranks);
        let ranks =
            RankList::from_ranks(lists.flat_map(|list| list.iter().map(|rank| rank.0)).collect::<BTreeSet<_>>());
        let who = format!("rank{} {ranks}", if ranks.len() == 1 { "" } else { "s" });
        if node.is_some() {
            return format!("a node with {who}");
        }
        let list = compress(hosts.iter().map(String::as_str));
        match hosts.len() {
            0 => who,
            _ if list.chars().count() <= HOSTS_SHOWN => format!("{who} on {list}"),
            count => format!("{who} on {count} hosts"),
        }
    }
}

impl Below {
    /// Joins both into one line.
    fn join(&mut self, other: Below) {
        self.children.extend(other.children);
        self.hosts.extend(other.hosts);
        self.link = match (self.link, other.link) {
            (Link::Flows([up, down]), Link::Flows([other_up, other_down])) => {
                Link::Flows([up.fuller(other_up), down.fuller(other_down)])
            }
            _ => Link::Unknown,
        };
    }
}

/// The ways to all children. If no way is known, each child is taken to have one of its own.
fn all_ways(part: &NodePart, ways: &[WayPart]) -> Vec<WayPart> {
    if !ways.is_empty() {
        return ways.to_vec();
    }
    let alone = |at: usize| WayPart { children: vec![ChildIndex(at as u16)], host: None, bits_per_second: None };
    (0..part.children.len()).map(alone).collect()
}

/// Gives columns their widths. On a terminal bars take the width that is left.
fn layout(rows: &[Row], canvas: Canvas) -> Vec<Line> {
    let labels: Vec<(String, &str)> = rows.iter().map(|row| (row.stem.drawn(canvas), row.name.as_str())).collect();
    let widest = |widths: &mut dyn Iterator<Item = usize>, head: &str| widths.max().unwrap_or(0).max(head.len());
    let mut label = widest(&mut labels.iter().map(|(stem, name)| length(stem) + length(name)), NODE);
    let states = rows.iter().filter_map(|row| row.state.as_ref()).map(|(_, state)| length(state));
    let state = widest(&mut states.into_iter(), STATE);
    let has_shares =
        rows.iter().any(|row| matches!(row.link, Link::Flows(flows) if flows.iter().any(|flow| flow.share.is_some())));
    let flow = if has_shares { FLOW_WITH_SHARE } else { FLOW };
    let mut cells = 0;
    if let Canvas::Terminal { columns } = canvas {
        let taken = label + state + 2 * flow + 3 * GAP.len();
        let left = columns.saturating_sub(taken) / 2;
        // There is a blank before the bar, and its end mark behind it.
        cells = if has_shares && left >= CELLS_LEAST + 2 { (left - 2).min(CELLS_MOST) } else { 0 };
        label = label.saturating_sub(taken.saturating_sub(columns)).max(NODE.len());
    }
    let wide = if cells > 0 { flow + cells + 2 } else { flow };
    let head = format!("{NODE:label$}{GAP}{STATE:state$}{GAP}{UP:>flow$}{}{GAP}{DOWN:>flow$}", " ".repeat(wide - flow));
    let mut lines = vec![Line::new(Tone::Faint, head.trim_end())];
    for (row, (stem, name)) in rows.iter().zip(&labels) {
        let name = Line::new(Tone::Faint, stem.as_str())
            .and(if row.is_node { Tone::Strong } else { Tone::Plain }, *name)
            .cut(label);
        let padding = " ".repeat(label - name.width());
        // A root has no link above it, and no node waits for it.
        if row.link == Link::None {
            lines.push(name);
            continue;
        }
        let (tone, text) = row.state.as_ref().map_or((Tone::Plain, ""), |(tone, text)| (*tone, text.as_str()));
        let mut line = name.and(Tone::Plain, padding + GAP).and(tone, text);
        line = line.and(Tone::Plain, " ".repeat(state - length(text)));
        for way in 0..2 {
            line = line.and(Tone::Plain, GAP);
            line = match row.link {
                Link::None => line,
                Link::Unknown => line.and(Tone::Faint, format!("{:>flow$}{}", "-", " ".repeat(wide - flow))),
                Link::Flows(flows) => drawn(line, flows[way], has_shares, cells),
            };
        }
        lines.push(line);
    }
    lines
}

fn drawn(line: Line, Flow { bytes_per_second: rate, share }: Flow, has_shares: bool, cells: usize) -> Line {
    let mut text = format!("{:>FLOW$}", bytes_per_second(rate));
    if has_shares {
        text += &match share {
            Some(share) if share > 0.0 && share < 0.005 => "  <1 %".to_owned(),
            Some(share) => format!(" {:>3.0} %", 100.0 * share),
            None => "     -".to_owned(),
        };
    }
    let tone = if share.is_some_and(|share| share >= FULL) { Tone::Warning } else { Tone::Plain };
    let line = line.and(tone, text);
    match share {
        _ if cells == 0 => line,
        Some(share) => {
            line.and(Tone::Plain, " ").and(tone, bar::bar(share, cells)).and(Tone::Faint, bar::END.to_string())
        }
        None => line.and(Tone::Plain, " ".repeat(cells + 2)),
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

const NODE: &str = "NODE, RANKS";
const STATE: &str = "STATE";
const UP: &str = "UP";
const DOWN: &str = "DOWN";
const GAP: &str = "  ";
/// The width of `999 MB/s`; the next has ` 100 %` besides.
const FLOW: usize = 8;
const FLOW_WITH_SHARE: usize = 14;
const CELLS_LEAST: usize = 4;
const CELLS_MOST: usize = 20;
/// Of a longer list of hosts only the number is told.
const HOSTS_SHOWN: usize = 24;
/// When this many bytes wait for a child, it is told that the child takes too little.
const QUEUED_NOTICED: u64 = 1 << 20;
/// A link with this share in use has little left.
const FULL: f64 = 0.9;

#[cfg(test)]
mod tests;
