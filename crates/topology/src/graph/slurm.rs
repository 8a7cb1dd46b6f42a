//! Reads Slurm's `topology.conf` for the plugin topology/tree.
//!
//! ```text
//! # two racks
//! SwitchName=leaf0 Nodes=tux[0-15] LinkSpeed=100
//! SwitchName=leaf1 Nodes=tux[16-31] \
//!            LinkSpeed=100
//! SwitchName=spine Switches=leaf[0-1]
//! ```
//! Keys are case-insensitive, a `#` starts a comment, and a backslash at the end of a line joins
//! the next line. A switch may be below several others. Slurm leaves the unit of `LinkSpeed` open.
//! Here it is the rate of the links from the switch to the things that it names, in Gbit/s if it is
//! a bare number, or with its unit (`LinkSpeed=56gbit`).

use std::collections::BTreeMap;

use super::builder::Builder;
use super::error::{Complaint, at, whole};
use super::{Graph, GraphFault, LINKS_MAX, LinkRate};
use crate::hostlist;

/// One SwitchName line.
struct Entry {
    line: usize,
    name: String,
    switches: Vec<String>,
    nodes: Vec<String>,
    rate: LinkRate,
}

/// Reads a file. Every switch gets an aggregation node, because the file cannot tell which have
/// one.
pub(super) fn read(text: &str, name: &str, rate: LinkRate) -> Result<Graph, Complaint> {
    let (mut entries, mut named) = (Vec::new(), 0);
    for (line, text) in joined(text) {
        let Some(entry) = entry(line, &text, rate).map_err(at(line))? else { continue };
        // A short line may name many things, and each name is a link.
        named += entry.switches.len() + entry.nodes.len();
        if named > LINKS_MAX {
            return Err(at(line)(GraphFault::TooManyLinks));
        }
        entries.push(entry);
    }
    let heights = heights(&entries)?;
    let mut builder = Builder::new(name);
    for (entry, height) in entries.iter().zip(heights) {
        let switch = builder.switch(&entry.name, None, true).map_err(at(entry.line))?;
        builder.set_level(switch, height).map_err(at(entry.line))?;
    }
    for entry in &entries {
        connect(&mut builder, entry).map_err(at(entry.line))?;
    }
    builder.finish().map_err(whole)
}

fn connect(builder: &mut Builder, entry: &Entry) -> Result<(), GraphFault> {
    let switch = builder.find(&entry.name)?;
    for lower in &entry.switches {
        builder.link([builder.find(lower)?, switch], entry.rate, 1)?;
    }
    for host in &entry.nodes {
        // A host on several switches has a NIC on each.
        let host = match builder.find(host) {
            Ok(known) => known,
            Err(_) => builder.host(host)?,
        };
        builder.link([host, switch], entry.rate, 1)?;
    }
    Ok(())
}

// The lines without comments, each with its number. Joined lines have the number of the first.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim_end();
        let (line, more) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, start)) => start.push_str(line),
            None => lines.push((at + 1, line.to_owned())),
        }
        goes_on = more;
    }
    lines
}

fn entry(line: usize, text: &str, default: LinkRate) -> Result<Option<Entry>, GraphFault> {
    let mut entry = Entry { line, name: String::new(), switches: Vec::new(), nodes: Vec::new(), rate: default };
    let mut seen: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            GraphFault::Syntax(format!("`{word}` is not of the form Key=Value, without blanks in it"))
        })?;
        let key = key.to_ascii_lowercase();
        if seen.contains(&key) {
            return Err(GraphFault::Syntax(format!("`{word}`: the line has this field already")));
        }
        let value = value.trim_matches('"');
        match key.as_str() {
            "switchname" if value.contains(['[', ']', ',']) => {
                return Err(GraphFault::Syntax(format!("`{word}`: SwitchName takes one name")));
            }
            "switchname" => entry.name = value.into(),
            "switches" => entry.switches = hostlist::expand(value)?,
            "nodes" => entry.nodes = hostlist::expand(value)?,
            "linkspeed" => entry.rate = speed(value)?,
            _ => return Err(GraphFault::UnknownField(word.into())),
        }
        seen.push(key);
    }
    match seen.iter().any(|key| key == "switchname") {
        true => Ok(Some(entry)),
        false if seen.is_empty() => Ok(None),
        false => Err(GraphFault::Syntax("the line has no SwitchName=".into())),
    }
}

fn speed(value: &str) -> Result<LinkRate, GraphFault> {
    let is_bare = value.bytes().all(|byte| byte.is_ascii_digit());
    let text = if is_bare { format!("{value}gbit") } else { value.to_owned() };
    text.parse().map_err(|cause| GraphFault::Rate { text: value.into(), cause })
}

// The level of each switch: one above the highest below it. It goes in rounds instead of recursion,
// because files come from anywhere. A round settles every switch below which all are settled.
fn heights(entries: &[Entry]) -> Result<Vec<u32>, Complaint> {
    let index: BTreeMap<&str, usize> = entries.iter().enumerate().map(|(i, entry)| (entry.name.as_str(), i)).collect();
    let mut above = vec![Vec::new(); entries.len()];
    let mut waiting = vec![0usize; entries.len()];
    for (i, entry) in entries.iter().enumerate() {
        for lower in &entry.switches {
            let lower =
                *index.get(lower.as_str()).ok_or_else(|| GraphFault::Unknown(lower.clone())).map_err(at(entry.line))?;
            above[lower].push(i);
            waiting[i] += 1;
        }
    }
    let mut heights = vec![1u32; entries.len()];
    let mut ready: Vec<usize> = (0..entries.len()).filter(|i| waiting[*i] == 0).collect();
    while let Some(i) = ready.pop() {
        for upper in &above[i] {
            heights[*upper] = heights[*upper].max(heights[i] + 1);
            waiting[*upper] -= 1;
            if waiting[*upper] == 0 {
                ready.push(*upper);
            }
        }
    }
    match entries.iter().zip(&waiting).find(|(_, waiting)| **waiting > 0) {
        Some((entry, _)) => Err(at(entry.line)(GraphFault::Cycle(entry.name.clone()))),
        None => Ok(heights),
    }
}
