//! The memory of a job's buffers at an aggregation node, and which limits are lowered if that is
//! too much.

use trib_messages::job::Limits;
use trib_messages::memory::Reservation;
use trib_messages::quota::QuotaField;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::QuotaAsk;

use super::{Ground, Site};
use crate::refuse::too_much;

/// Lowers limits for which the job did not ask, until its buffers are within the fabric's default
/// at every aggregation node. If what it asked for leaves no room for that, the buffers may take
/// the maximum, and the other limits are lowered only as far as that needs.
pub(super) fn fit(ask: &QuotaAsk, limits: Limits, ground: &Ground<'_>) -> Result<Limits, Refusal> {
    let memory = ground.table[QuotaField::NodeMemory];
    let slots = slots(&limits, memory.default, ground.sites);
    let mut least = None;
    for bound in [memory.default, memory.maximum] {
        for floor in &FLOORS {
            let mut lowered = limits.clone();
            lower_slots(ask, &mut lowered, floor, slots);
            lower_streams(ask, &mut lowered, floor, bound, ground.sites);
            match largest(&lowered, ground.sites) {
                Some((bytes, site)) if bytes > bound => least = Some((bytes, site)),
                _ => return Ok(lowered),
            }
        }
    }
    let (bytes, site) = least.expect("some floor was too high");
    Err(refusal(ask, bytes, memory.maximum, site))
}

/// The bytes that the job reserves at one aggregation node.
pub(crate) fn bytes(limits: &Limits, site: &Site) -> u64 {
    let of = |children: &u64| Reservation::of(limits, *children).bytes(limits);
    site.children.iter().chain(&site.reserved).map(of).fold(0, u64::saturating_add)
}

/// How far limits may be lowered for which the job did not ask.
struct Floor {
    /// The number of groups for which slots stay, if the job does not say how many groups it wants.
    groups: u32,
    staging: u32,
    flight: u32,
}

// The first floor is one that few jobs notice: slots are most of the memory, and hardly any job has
// hundreds of groups. The last one still works: with staging or flight of one, every segment would
// wait for the one before.
const FLOORS: [Floor; 3] = [
    Floor { groups: 64, staging: u32::MAX, flight: u32::MAX },
    Floor { groups: 64, staging: 4, flight: 8 },
    Floor { groups: 1, staging: 2, flight: 2 },
];

fn lower_slots(ask: &QuotaAsk, limits: &mut Limits, floor: &Floor, slots: u32) {
    if ask.osts.is_none() {
        let least = limits.window.saturating_mul(ask.groups.unwrap_or(floor.groups)).min(limits.osts);
        limits.osts = slots.clamp(least, limits.osts);
    }
}

fn lower_streams(ask: &QuotaAsk, limits: &mut Limits, floor: &Floor, bound: u64, sites: &[Site]) {
    let halve = |asked: Option<u32>, limit: u32, least| match asked {
        None if limit > least => (limit / 2).max(least),
        _ => limit,
    };
    while largest(limits, sites).is_some_and(|(bytes, _)| bytes > bound) {
        let staging = halve(ask.staging, limits.staging, floor.staging);
        let flight = halve(ask.flight, limits.flight, floor.flight);
        if (staging, flight) == (limits.staging, limits.flight) {
            break;
        }
        (limits.staging, limits.flight) = (staging, flight);
    }
}

// The number of slots that fit everywhere.
fn slots(limits: &Limits, bound: u64, sites: &[Site]) -> u32 {
    let (none, one) = (Limits { osts: 0, ..limits.clone() }, Limits { osts: 1, ..limits.clone() });
    let fits = |site: &Site| {
        let rest = bytes(&none, site);
        bound.saturating_sub(rest) / (bytes(&one, site) - rest).max(1)
    };
    sites.iter().map(fits).min().map_or(u32::MAX, |slots| u32::try_from(slots).unwrap_or(u32::MAX))
}

fn largest<'a>(limits: &Limits, sites: &'a [Site]) -> Option<(u64, &'a Site)> {
    sites.iter().map(|site| (bytes(limits, site), site)).max_by_key(|(bytes, _)| *bytes)
}

fn refusal(ask: &QuotaAsk, bytes: u64, maximum: u64, site: &Site) -> Refusal {
    let sizes = QuotaField::all().take_while(|field| *field < QuotaField::StreamThreshold);
    let asked = sizes.filter_map(|field| ask.get(field).map(|wish| format!("{} = {wish}", field.name())));
    let asked = match asked.collect::<Vec<_>>() {
        none if none.is_empty() => "even the least quota".to_owned(),
        some => some.join(", "),
    };
    let children: u64 = site.children.iter().chain(&site.reserved).sum();
    let text = format!(
        "{asked} with {children} children takes {bytes} bytes of buffers at node {}, this fabric gives a job at most {maximum}: ask for less, or raise node_memory in the topology file",
        site.name
    );
    Refusal { holder: Some(site.name.clone()), ..too_much(Resource::Memory, bytes, maximum, text) }
}

#[cfg(test)]
mod tests;
