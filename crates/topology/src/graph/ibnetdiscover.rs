//! Reads what `ibnetdiscover` of infiniband-diags prints: the fabric as a subnet's own tools see
//! it.
//!
//! ```text
//! switchguid=0x2c90200(2c90200)
//! Switch  36 "S-0000000002c90200"    # "leaf0" base port 0 lid 2 lmc 0
//! [1]     "H-0000000000100000"[1](100001)    # "tux0 mlx5_0" lid 4 4xEDR
//! [36]    "S-0000000002c90300"[1]            # "spine" lid 3 4xEDR
//!
//! caguid=0x100000
//! Ca      1 "H-0000000000100000"    # "tux0 mlx5_0"
//! [1](100001)    "S-0000000002c90200"[1]    # lid 4 lmc 0 "leaf0" lid 2 4xEDR
//! ```
//! The dump has each link once for each of its ends; it is counted once. Names come from the node
//! descriptions if these tell things apart. A host's name goes without that of its adapter, so that
//! the adapters of one host are its rails; the same adapter twice is that of two hosts. A managed
//! switch's (`MF0;leaf0:MSB7800/U1`) goes without what surrounds it. Otherwise the identifier in
//! quotes is the name. Routers, and the aggregation engines that Quantum switches show as adapters,
//! take no part.
//!
//! A dump is in the order of discovery, which depends on where that began. Here things are in the
//! order of their names, so that the same fabric gives the same graph, and with it the same trees.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::builder::Builder;
use super::error::{Complaint, at, whole};
use super::{Graph, GraphFault, LinkRate};
use crate::hostlist::natural_key;

/// A port: the identifier of its device, and its number there.
type Port<'a> = (&'a str, u32);

struct Device<'a> {
    line: usize,
    id: &'a str,
    description: &'a str,
    is_switch: bool,
}

#[derive(Default)]
struct Dump<'a> {
    devices: Vec<Device<'a>>,
    /// The cables by the lesser of their two ports, each with the line that told it.
    cables: BTreeMap<(Port<'a>, Port<'a>), (usize, LinkRate)>,
}

/// Reads a dump. Every switch gets an aggregation node, because the dump cannot tell which have
/// one.
pub(super) fn read(text: &str, name: &str) -> Result<Graph, Complaint> {
    let dump = scan(text)?;
    let names = names(&dump.devices);
    let mut builder = Builder::new(name);
    let mut vertices: HashMap<&str, usize> = HashMap::new();
    let mut devices: Vec<(&Device<'_>, String)> = dump.devices.iter().zip(names).collect();
    devices.sort_by_cached_key(|(device, name)| (natural_key(name), device.id));
    for (device, name) in &devices {
        let vertex = match (device.is_switch, builder.find(name)) {
            // This is a second adapter of the same host.
            (false, Ok(known)) => known,
            (false, Err(_)) => builder.host(name).map_err(at(device.line))?,
            (true, _) => builder.switch(name, None, true).map_err(at(device.line))?,
        };
        vertices.insert(device.id, vertex);
    }
    for ((from, to), (line, rate)) in &dump.cables {
        // A port may lead to a device that takes no part, or beyond the hops that were discovered.
        if let (Some(from), Some(to)) = (vertices.get(from.0), vertices.get(to.0)) {
            builder.link([*from, *to], *rate, 1).map_err(at(*line))?;
        }
    }
    builder.finish().map_err(whole)
}

fn scan(text: &str) -> Result<Dump<'_>, Complaint> {
    let mut dump = Dump::default();
    let mut current = None;
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text.trim())) {
        let word = text.split_whitespace().next().unwrap_or("");
        match word {
            "Switch" | "Ca" | "Rt" => {
                let device = device(line, text, word == "Switch").map_err(at(line))?;
                current = Some(device.id);
                if word != "Rt" && device.description != AGGREGATION_ENGINE {
                    dump.devices.push(device);
                }
            }
            _ if text.starts_with('[') => {
                let owner = current.ok_or_else(|| syntax("a port stands before any Switch or Ca")).map_err(at(line))?;
                let (number, peer, rate) = port(text).map_err(at(line))?;
                let (here, there) = ((owner, number), peer);
                dump.cables.insert((here.min(there), here.max(there)), (line, rate));
            }
            "" | "Chassis" | "Non-Chassis" => {}
            _ if text.starts_with('#') || word.contains('=') => {}
            _ => return Err(at(line)(syntax(format!("`{}` starts no line of ibnetdiscover's", shortened(word))))),
        }
    }
    Ok(dump)
}

// `Switch 36 "S-..." # "description" ...`
fn device(line: usize, text: &str, is_switch: bool) -> Result<Device<'_>, GraphFault> {
    let mut quoted = text.split('"').skip(1).step_by(2);
    let id = quoted.next().filter(|id| !id.is_empty()).ok_or_else(|| syntax("there is no identifier in quotes"))?;
    let description = text.split_once('#').and_then(|(_, comment)| between_quotes(comment)).unwrap_or("");
    Ok(Device { line, id, description, is_switch })
}

// `[1](guid) "H-..."[2](guid) # ... 4xEDR`, with `[ext 3]` after a number on chassis.
fn port(text: &str) -> Result<(u32, Port<'_>, LinkRate), GraphFault> {
    let missing = || syntax("a port line is `[PORT] \"PEER\"[PORT] # \"DESCRIPTION\" lid N WIDTHxSPEED`");
    let (here, rest) = text.split_once('"').ok_or_else(missing)?;
    let (peer, rest) = rest.split_once('"').filter(|(peer, _)| !peer.is_empty()).ok_or_else(missing)?;
    let (there, comment) = rest.split_once('#').ok_or_else(missing)?;
    let number = |text: &str| -> Option<u32> {
        text.trim_start().strip_prefix('[')?.split_once(']').and_then(|(number, _)| number.parse().ok())
    };
    let (here, there) = (number(here).ok_or_else(missing)?, number(there).ok_or_else(missing)?);
    let after = comment.rsplit('"').next().unwrap_or(comment);
    let rate = after.split_whitespace().rev().find_map(width_and_speed).ok_or_else(missing)??;
    Ok((here, (peer, there), rate))
}

// The rate of a `4xEDR`, or why it is unknown. `None` for a word of another form.
fn width_and_speed(word: &str) -> Option<Result<LinkRate, GraphFault>> {
    let (width, speed) = word.split_once('x')?;
    let width = width.parse::<u64>().ok().filter(|width| [1, 2, 4, 8, 12].contains(width))?;
    let lane = LANES.iter().find(|(name, _)| *name == speed);
    Some(match lane.and_then(|(_, mbit)| LinkRate::bits(width * mbit * 1_000_000)) {
        Some(rate) => Ok(rate),
        None => Err(GraphFault::Rate {
            text: word.into(),
            cause: "the speed is one of SDR DDR QDR FDR10 FDR EDR HDR NDR XDR",
        }),
    })
}

/// The data rate of one InfiniBand lane without the line code's share, in Mbit/s.
const LANES: [(&str, u64); 9] = [
    ("SDR", 2000),
    ("DDR", 4000),
    ("QDR", 8000),
    ("FDR10", 10_000),
    ("FDR", 13_636),
    ("EDR", 25_000),
    ("HDR", 50_000),
    ("NDR", 100_000),
    ("XDR", 200_000),
];

// The name that a switch's own aggregation hardware gives itself.
const AGGREGATION_ENGINE: &str = "Mellanox Technologies Aggregation Node";

// A name for each device. Adapters of one host share one; anything else that would share one gets
// its identifier.
fn names(devices: &[Device<'_>]) -> Vec<String> {
    let wanted: Vec<(String, bool)> = devices.iter().map(wanted).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut host_names: HashMap<&str, bool> = HashMap::new();
    let mut descriptions = HashSet::new();
    for (device, (name, is_rail)) in devices.iter().zip(&wanted) {
        *seen.entry(name).or_default() += 1;
        *host_names.entry(name).or_insert(true) &= is_rail & descriptions.insert(device.description);
    }
    let name = |(device, (name, _)): (&Device<'_>, &(String, bool))| {
        let is_shared = seen[name.as_str()] > 1 && !host_names[name.as_str()];
        if name.is_empty() || is_shared { plain(device.id) } else { name.clone() }
    };
    devices.iter().zip(&wanted).map(name).collect()
}

// The name in a description, and whether it is a host's that was followed by the adapter's.
fn wanted(device: &Device<'_>) -> (String, bool) {
    let text = device.description.trim();
    if device.is_switch {
        let managed = text.strip_prefix("MF0;").and_then(|rest| rest.split_once(':'));
        let name = match managed {
            // Chips of one chassis differ in what follows the model.
            Some((name, model)) => match model.split_once('/') {
                Some((_, unit)) if unit != "U1" => format!("{name}-{unit}"),
                _ => name.to_owned(),
            },
            None => text.to_owned(),
        };
        return (plain(&name), false);
    }
    match text.rsplit_once(char::is_whitespace) {
        Some((host, adapter)) if is_adapter(adapter) => (plain(host), true),
        _ => (plain(text), false),
    }
}

fn is_adapter(word: &str) -> bool {
    let stem = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    stem.len() < word.len() && ["HCA-", "mlx", "hfi", "qib", "mthca", "bnxt_re", "ib"].contains(&stem)
}

fn plain(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join("-").replace([',', '[', ']', '/'], "-")
}

fn between_quotes(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('"')?;
    rest.split_once('"').map(|(inside, _)| inside)
}

fn syntax(text: impl Into<String>) -> GraphFault {
    GraphFault::Syntax(text.into())
}

fn shortened(word: &str) -> String {
    word.chars().take(40).collect()
}
