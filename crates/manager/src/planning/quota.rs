//! What a job asks for against what the fabric has.
//!
//! Each limit by itself is here. `memory` is about the memory that they take together.

use trib_messages::job::Limits;
use trib_messages::policy::Recovery;
use trib_messages::quota::QuotaField;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::QuotaAsk;
use trib_topology::{Bound, LimitTable};
use trib_wire::Mode;
use trib_wire::header::{DATAGRAM_MAX, HEADER_LEN};
use trib_wire::mode::SEAL_LEN;

use crate::refuse::too_much;

mod memory;
pub(crate) use self::memory::bytes;

/// The largest number of ranks of a job: its ticket must fit into one control message.
pub(crate) const RANKS_MAX: usize = 1 << 18;

/// Refuses a program with more ranks than a job may have.
pub(crate) fn check_ranks(ranks: u64) -> Result<(), Refusal> {
    if ranks <= RANKS_MAX as u64 {
        return Ok(());
    }
    let text = format!("the program has {ranks} ranks, at most {RANKS_MAX} are possible: use fewer");
    Err(too_much(Resource::Ranks, ranks, RANKS_MAX as u64, text))
}

/// The fabric's limits and the nodes of a job's tree, on which its quota depends.
pub(crate) struct Ground<'a> {
    /// The fabric's defaults and maxima.
    pub table: &'a LimitTable,
    /// The path MTU in bytes.
    pub mtu: u32,
    /// Whether any node is reached over IPv6, whose headers are longer.
    pub ipv6: bool,
    /// Whether the fabric's operator lets tests lose datagrams on purpose.
    pub faults: bool,
    /// What the job has at each aggregation node of its tree.
    pub sites: &'a [Site],
}

/// What the job has at one aggregation node (one process).
pub(crate) struct Site {
    /// The aggregation node's name.
    pub name: String,
    /// The number of children of each of the job's logical nodes there.
    pub children: Vec<u64>,
    /// The same of those for which it is the first backup, so that there is room for them.
    pub reserved: Vec<u64>,
    /// The largest such number of those that may come there.
    pub widest: u64,
    /// The size of the receive buffer of its datagram sockets, in bytes.
    pub receive_bytes: u64,
    /// How many such sockets it has at each address. Jobs are spread over them.
    pub workers: u64,
    /// What other jobs may have under way to it in datagrams, in bytes.
    pub others_bytes: u64,
}

impl Site {
    /// The largest number of children that send there at once, unless two nodes die.
    fn senders(&self) -> u64 {
        self.children.iter().sum::<u64>().max(self.widest)
    }

    /// Whether a job with these limits, which were settled without this site, has room there.
    pub(crate) fn fits(&self, limits: &Limits, table: &LimitTable) -> bool {
        let window = self.receive_bytes / self.step_bytes(limits.payload.into());
        bytes(limits, self) <= table[QuotaField::NodeMemory].maximum && u64::from(limits.window) <= window.max(1)
    }

    /// What a fragment from every child takes in a receive buffer.
    fn step_bytes(&self, payload: u64) -> u64 {
        self.senders().max(1) * truesize(payload)
    }

    /// What a job with these limits may have under way to it in datagrams.
    pub(crate) fn datagram_bytes(&self, limits: &Limits) -> u64 {
        u64::from(limits.window).saturating_mul(self.step_bytes(limits.payload.into()))
    }

    /// What a job has of its receive buffers while the others are quiet.
    fn alone(&self) -> u64 {
        self.receive_bytes
    }

    /// What other jobs leave of its receive buffers. All of the job may come to one of them.
    fn left_bytes(&self) -> u64 {
        let all = self.receive_bytes.saturating_mul(self.workers.max(1));
        self.receive_bytes.min(all.saturating_sub(self.others_bytes))
    }
}

/// Settles the job's limits. The refusal says of what it wants too much.
pub(crate) fn settle(ask: &QuotaAsk, ground: &Ground<'_>) -> Result<Limits, Refusal> {
    let table = ground.table;
    let get = |field: QuotaField| choose(field, ask, table[field]);
    let number = |field: QuotaField| get(field).map(|value| value as u32);
    let mode = mode(ask, table)?;
    let payload = choose(QuotaField::Payload, ask, payload_bound(ground, mode))?;
    let limits = Limits {
        groups: number(QuotaField::Groups)?,
        window: window(ask, payload, ground)?,
        osts: number(QuotaField::Osts)?,
        payload: payload as u32,
        streams: number(QuotaField::Streams)?,
        segment: number(QuotaField::Segment)?,
        staging: number(QuotaField::Staging)?,
        flight: number(QuotaField::Flight)?,
        control_memory: number(QuotaField::ControlMemory)?,
        stream_threshold: get(QuotaField::StreamThreshold)?,
        lease_operations: number(QuotaField::LeaseOperations)?,
        heartbeat_ms: number(QuotaField::HeartbeatMs)?,
        dead_after_ms: number(QuotaField::DeadAfterMs)?,
        recovery: Recovery::from_number(get(QuotaField::Recovery)?).unwrap_or_default(),
        mode,
        faults: ground.faults,
    };
    check_pairs(&limits)?;
    memory::fit(ask, limits, ground)
}

/// The kernel memory in bytes that a datagram with `payload` bytes of vector takes in a receive
/// buffer. The kernel counts the memory block in which a datagram lies, not its length.
pub(crate) fn truesize(payload: u64) -> u64 {
    let packet = payload + HEADER_LEN as u64 + IPV4_UDP;
    packet.next_power_of_two().max(SMALLEST)
}

fn payload_bound(ground: &Ground<'_>, mode: Mode) -> Bound {
    let headers = if ground.ipv6 { IPV6_UDP } else { IPV4_UDP };
    let seal = if mode.seals() { SEAL_LEN as u64 } else { 0 };
    let longest = u64::from(ground.mtu).min(u64::from(DATAGRAM_MAX) + HEADER_LEN as u64 + headers);
    let fits = (longest - headers - HEADER_LEN as u64 - seal) / 8 * 8;
    let Bound { default, maximum } = ground.table[QuotaField::Payload];
    let mut default = default.min(fits);
    // Small fragments in a window keep a tree busy, and large ones that the kernel drops do not. So
    // if the job did not ask for a payload, it is lowered until two fragments of each child fit
    // everywhere.
    while default >= 2 * SMALL_PAYLOAD && room(default, ground, Site::alone).is_some_and(|(window, _)| window < 2) {
        default = default / 2 / 8 * 8;
    }
    Bound { default, maximum: maximum.min(fits) }
}

// The largest window whose fragments from all children fit into so many bytes at each node, and the
// tightest node.
fn room<'a>(payload: u64, ground: &Ground<'a>, bytes: fn(&Site) -> u64) -> Option<(u64, &'a Site)> {
    let fits = |site: &'a Site| (bytes(site) / site.step_bytes(payload), site);
    ground.sites.iter().map(fits).min_by_key(|(window, _)| *window)
}

// If not even one fragment from every child fits, the window is one: frames that the kernel drops
// come again, only later. So a job that asks for a window gets what fits while the others are
// quiet, and one that does not gets what they leave.
fn window(ask: &QuotaAsk, payload: u64, ground: &Ground<'_>) -> Result<u32, Refusal> {
    let tightest = room(payload, ground, Site::alone);
    let left = room(payload, ground, Site::left_bytes).map_or(u64::MAX, |(window, _)| window.max(1));
    let room = tightest.map_or(u64::MAX, |(window, _)| window.max(1));
    let Bound { default, maximum } = ground.table[QuotaField::Window];
    let bound = Bound { default: default.min(left), maximum };
    let window = choose(QuotaField::Window, ask, bound)?;
    match tightest {
        Some((_, site)) if window > room => {
            let children = site.senders();
            let text = format!(
                "a window of {window} fragments of {payload} bytes from {children} children does not fit the datagram receive buffer of node {} ({} bytes), a window of {room} does: ask for less, or raise net.core.rmem_max there and restart the node",
                site.name, site.receive_bytes
            );
            Err(Refusal { holder: Some(site.name.clone()), ..too_much(Resource::Window, window, room, text) })
        }
        _ => Ok(window as u32),
    }
}

/// The mode of the job's data path. The fabric's default, or its tenant's, is the least.
fn mode(ask: &QuotaAsk, table: &LimitTable) -> Result<Mode, Refusal> {
    let (field, row) = (QuotaField::DataPath, QuotaField::DataPath.row());
    let (chosen, least) = (choose(field, ask, table[field])?, table[field].default);
    if chosen < least {
        let text = format!(
            "the job asks for data_path = {}, here no job gets less than {}: ask for that or more, or leave it out",
            row.written(chosen),
            row.written(least)
        );
        return Err(too_much(Resource::DataPath, chosen, least, text));
    }
    Ok(u8::try_from(chosen).ok().and_then(Mode::from_code).unwrap_or_default())
}

/// What was asked for, or else the default. It is refused beyond the maximum, and outside the
/// field's range.
pub(crate) fn choose(field: QuotaField, ask: &QuotaAsk, bound: Bound) -> Result<u64, Refusal> {
    let Some(asked) = ask.get(field) else { return Ok(bound.default) };
    let (name, row) = (field.name(), field.row());
    let refuse = |text| Err(too_much(field.into(), asked, bound.maximum, text));
    if let Err(cause) = field.check(asked) {
        return refuse(format!("the job asks for {cause}"));
    }
    if asked > bound.maximum {
        return refuse(format!(
            "the job asks for {name} = {}, this fabric gives at most {}: ask for less",
            row.written(asked),
            row.amount(bound.maximum)
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
/// The payload in bytes below which a smaller one saves no kernel memory.
const SMALL_PAYLOAD: u64 = 1024;
/// The kernel memory in bytes that even a small datagram takes.
const SMALLEST: u64 = 2304;

#[cfg(test)]
mod tests;
