//! What a job asks for against what the fabric has.
//!
//! Each limit on its own is here; `memory` is about what they come to.

use trib_topology::{Bound, LimitTable};
use trib_wire::control::job::Limits;
use trib_wire::control::reply::{Refusal, Resource};
use trib_wire::control::request::QuotaAsk;
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::header::HEADER_LEN;

use crate::refuse::too_much;

mod memory;
pub(crate) use self::memory::bytes;

/// What a job's tree stands on.
pub(crate) struct Ground<'a> {
    /// The fabric's defaults and maxima.
    pub table: &'a LimitTable,
    /// The path MTU, bytes.
    pub mtu: u32,
    /// Whether any node is reached over IPv6, whose headers are longer.
    pub ipv6: bool,
    /// The aggregation nodes of the tree.
    pub sites: &'a [Site],
}

/// The job at one aggregation node (process).
pub(crate) struct Site {
    /// The aggregation node's name.
    pub name: String,
    /// Children of each of the job's logical nodes there.
    pub children: Vec<u64>,
    /// Receive buffer of its datagram sockets, bytes.
    pub receive_bytes: u64,
}

/// The job's limits, or what it wants too much of.
pub(crate) fn settle(ask: &QuotaAsk, ground: &Ground<'_>) -> Result<Limits, Refusal> {
    let table = ground.table;
    let payload_bound = payload_bound(ground);
    let piece = |resource, name, ask: Option<u32>, bound| {
        choose(resource, name, ask.map(u64::from), bound, ELEMENT_MAX as u64..=u64::MAX, 8)
    };
    let payload = piece(Resource::Payload, "payload", ask.payload, payload_bound)?;
    let number = |resource, name, ask: Option<u32>, bound, step| {
        choose(resource, name, ask.map(u64::from), bound, step..=u64::MAX, step).map(|value| value as u32)
    };
    let limits = Limits {
        groups: number(Resource::Groups, "groups", ask.groups, table.groups, 1)?,
        window: window(ask.window, payload, ground)?,
        osts: number(Resource::Osts, "osts", ask.osts, table.osts, 1)?,
        payload: payload as u32,
        streams: number(Resource::Streams, "streams", ask.streams, table.streams, 1)?,
        segment: piece(Resource::Segment, "segment", ask.segment, table.segment)? as u32,
        staging: number(Resource::Staging, "staging", ask.staging, table.staging, 1)?,
        flight: number(Resource::Flight, "flight", ask.flight, table.flight, 1)?,
        stream_threshold: choose(
            Resource::StreamThreshold,
            "stream_threshold",
            ask.stream_threshold,
            table.stream_threshold,
            0..=u64::MAX,
            1,
        )?,
        lease_operations: choose(
            Resource::LeaseOperations,
            "lease_operations",
            ask.lease_operations.map(u64::from),
            table.lease_operations,
            0..=u64::MAX,
            1,
        )? as u32,
        heartbeat_ms: number(Resource::Heartbeat, "heartbeat_ms", ask.heartbeat_ms, table.heartbeat_ms, 1)?,
        dead_after_ms: number(Resource::DeadAfter, "dead_after_ms", ask.dead_after_ms, table.dead_after_ms, 1)?,
    };
    check_pairs(&limits)?;
    memory::fit(ask, limits, ground)
}

/// Kernel memory that a datagram with `payload` bytes of vector takes in a receive buffer: the kernel
/// counts the memory block it lies in, not its length.
pub(crate) fn truesize(payload: u64) -> u64 {
    let packet = payload + HEADER_LEN as u64 + IPV4_UDP;
    packet.next_power_of_two().max(SMALLEST)
}

fn payload_bound(ground: &Ground<'_>) -> Bound {
    let headers = if ground.ipv6 { IPV6_UDP } else { IPV4_UDP };
    let fits = (u64::from(ground.mtu) - headers - HEADER_LEN as u64) / 8 * 8;
    let Bound { default, maximum } = ground.table.payload;
    let mut default = default.min(fits);
    // Small fragments in a window keep a tree busy, large ones that the kernel drops do not: the payload
    // nobody asked for gives way until two fit everywhere.
    while default >= 2 * SMALL_PAYLOAD && room(default, ground).is_some_and(|(window, _)| window < 2) {
        default = default / 2 / 8 * 8;
    }
    Bound { default, maximum: maximum.min(fits) }
}

// The largest window whose fragments from all children fit, and the node with the tightest receive buffer.
fn room<'a>(payload: u64, ground: &Ground<'a>) -> Option<(u64, &'a Site)> {
    let fits = |site: &'a Site| {
        let children: u64 = site.children.iter().sum();
        (site.receive_bytes / (children.max(1) * truesize(payload)), site)
    };
    ground.sites.iter().map(fits).min_by_key(|(window, _)| *window)
}

// Where not even one fragment from every child fits, the window is one: frames that the kernel drops
// come again, only later.
fn window(ask: Option<u32>, payload: u64, ground: &Ground<'_>) -> Result<u32, Refusal> {
    let tightest = room(payload, ground);
    let room = tightest.map_or(u64::MAX, |(window, _)| window.max(1));
    let Bound { default, maximum } = ground.table.window;
    let bound = Bound { default: default.min(room), maximum };
    let window = choose(Resource::Window, "window", ask.map(u64::from), bound, 1..=u64::MAX, 1)?;
    match tightest {
        Some((_, site)) if window > room => {
            let children: u64 = site.children.iter().sum();
            let text = format!(
                "a window of {window} fragments of {payload} bytes from {children} children does not fit the datagram receive buffer of node {} ({} bytes), a window of {room} does: ask for less, or raise net.core.rmem_max there and restart the node",
                site.name, site.receive_bytes
            );
            Err(Refusal { holder: Some(site.name.clone()), ..too_much(Resource::Window, window, room, text) })
        }
        _ => Ok(window as u32),
    }
}

/// What was asked for, or the default; refused beyond the maximum and outside what is allowed.
pub(crate) fn choose(
    resource: Resource,
    name: &str,
    ask: Option<u64>,
    bound: Bound,
    allowed: std::ops::RangeInclusive<u64>,
    step: u64,
) -> Result<u64, Refusal> {
    let Some(asked) = ask else { return Ok(bound.default) };
    let refuse = |text| Err(too_much(resource, asked, bound.maximum, text));
    if asked > bound.maximum {
        return refuse(format!(
            "the job asks for {name} = {asked}, this fabric gives at most {}: ask for less",
            bound.maximum
        ));
    }
    if !allowed.contains(&asked) || asked % step != 0 {
        return refuse(format!(
            "the job asks for {name} = {asked}; it must be a multiple of {step} and at least {}",
            allowed.start()
        ));
    }
    Ok(asked)
}

fn check_pairs(limits: &Limits) -> Result<(), Refusal> {
    let (heartbeat, dead_after) = (u64::from(limits.heartbeat_ms), u64::from(limits.dead_after_ms));
    if dead_after < 3 * heartbeat {
        let text = format!(
            "dead_after_ms = {dead_after} must be at least three times heartbeat_ms = {heartbeat}: raise the one or lower the other"
        );
        return Err(too_much(Resource::DeadAfter, 3 * heartbeat, dead_after, text));
    }
    if limits.osts < limits.window {
        let text = format!(
            "osts = {} leaves no room for one group's window of {}: ask for more osts",
            limits.osts, limits.window
        );
        return Err(too_much(Resource::Osts, u64::from(limits.window), u64::from(limits.osts), text));
    }
    Ok(())
}

const IPV4_UDP: u64 = 28;
const IPV6_UDP: u64 = 48;
/// Below this a smaller payload saves no kernel memory.
const SMALL_PAYLOAD: u64 = 1024;
/// What even a small datagram takes.
const SMALLEST: u64 = 2304;

#[cfg(test)]
mod tests;
