//! The connections of this rank to its nodes, one for each lane.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::thread;

use trib_messages::directory::JobDirectory;
use trib_messages::job::{JobTicket, LANES_MAX, LaneTicket};
use trib_messages::policy::Recovery;
use trib_messages::via::Via;
use trib_proto::{LeafConfig, Limits, Nanos};
use trib_transport::tcp::HandshakeError;
use trib_transport::ucx::UcxWorker;
use trib_transport::udp::DatagramSocket;
use trib_waiting::clock::Clock;
use trib_wire::Rank;
use trib_wire::hello::Status;

use super::candidacy::Candidacy;
use super::{Deadline, Joined, Ties};
use crate::engine::{HostTrees, Shared, SignalMask, Sources};
use crate::error::Error;
use crate::lanes::Lanes;
use crate::params::Params;
use crate::way::{Attempt, Connection, Course, Way};

/// Connects this rank to its node on every lane and starts the engine.
pub(super) fn to_nodes(
    params: &Params,
    ticket: &JobTicket,
    candidacy: Option<Candidacy>,
    deadline: Deadline,
) -> Result<Joined, Error> {
    let weights = || ticket.lanes.iter().map(|lane| lane.weight);
    if !(1..=LANES_MAX).contains(&ticket.lanes.len()) || weights().any(|weight| weight == 0) {
        return Err(wrong(ticket, "it has no lanes, too many, or one without weight"));
    }
    let prediction = ticket.prediction.clone();
    if prediction.as_ref().is_some_and(|prediction| !prediction.is_valid(params.size as usize)) {
        return Err(wrong(ticket, "its prediction is none of a job of so many ranks"));
    }
    let names = ticket.nodes.iter().map(|node| (node.node, node.name().to_owned()));
    let directory = JobDirectory::new(names, ticket.processes.clone()).with_calls(params.calls.clone());
    let directory = Arc::new(directory);
    // Others may call this rank as soon as they have their tickets.
    let serving = candidacy.and_then(|candidacy| candidacy.serve(params, ticket));
    let connect = |lane| connect_lane(params, ticket, lane, deadline, directory.clone());
    let sources: Result<Vec<Sources>, Error> = ticket.lanes.iter().map(connect).collect();
    let lanes = Lanes::new(weights(), ticket.stripe_threshold);
    let boards = (HostTrees::of(ticket).map(Arc::new), Params::shares_memory()?);
    let (shared, helper) = Shared::start(lanes, sources?, boards, params.progress.clone())?;
    Ok(Joined { ties: Ties::new(shared, helper, serving), prediction })
}

fn connect_lane(
    params: &Params,
    ticket: &JobTicket,
    lane: &LaneTicket,
    deadline: Deadline,
    directory: Arc<JobDirectory>,
) -> Result<Sources, Error> {
    let attachment = lane.leaves.get(params.rank as usize);
    let attachment = attachment.ok_or_else(|| wrong(ticket, "this rank is not attached in it"))?;
    let above = ticket.nodes.iter().find(|node| node.node == attachment.node);
    let above = above.ok_or_else(|| wrong(ticket, "this rank's node is not in it"))?;
    let limits = Limits::from(&ticket.limits);
    if !limits.are_valid() {
        return Err(wrong(ticket, "its quota is outside what the protocol allows"));
    }
    let primary = above.primary().stream;
    let any: IpAddr = match primary {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut datagrams = DatagramSocket::bind(SocketAddr::new(attachment.address.unwrap_or(any), 0), RECV_BUFFER)
        .map_err(|cause| no_socket(&cause, attachment.address))?;
    if ticket.limits.faults {
        let plan = datagrams.inject_faults();
        plan.map_err(|fault| no_socket(&io::Error::new(io::ErrorKind::InvalidInput, fault), attachment.address))?;
    }
    // Each lane has its own, because a thread that looks at one lane must not take from UCX what
    // another thread waits for on another.
    let ucx = (attachment.via == Via::Ucx).then(open_ucx).transpose()?;
    let way = Way {
        job: ticket.job,
        first: ticket.epoch,
        key: ticket.key.clone(),
        node: above.clone(),
        child: attachment.child,
        local: attachment.address,
        udp_port: datagrams.local_addr().port(),
        mode: ticket.limits.mode,
        shares: Params::shares_memory()?,
        ucx,
        patience: Params::patience()?,
    };
    let (course, connection) = first_call(way, ticket.recovers, deadline)?;
    let config = LeafConfig {
        job: ticket.job,
        epoch: connection.epoch,
        rank: Rank(params.rank),
        world_size: params.size,
        node: attachment.node,
        child: attachment.child,
        limits,
        recovers: ticket.recovers,
        memory: ticket.rank_memory / ticket.lanes.len() as u64,
        strict: ticket.recovers && ticket.limits.recovery == Recovery::Strict,
    };
    Ok(Sources { config, course, connection, datagrams, directory })
}

/// Opens UCX. It may start threads of its own, and signals are for the application's.
fn open_ucx() -> Result<UcxWorker, Error> {
    let _mask = SignalMask::block_all();
    UcxWorker::open().map_err(|cause| Error::Unsupported(cause.to_string()))
}

/// Calls the node until it answers. Where the job goes on when a node dies, one that cannot be
/// reached is looked for at its next candidate.
fn first_call(way: Way, recovers: bool, deadline: Deadline) -> Result<(Course, Connection), Error> {
    let mut clock = Clock::start();
    let mut course = Course::new(way, Nanos(0));
    loop {
        let Attempt { pause, patience, placement } = course.next_call(Nanos(clock.read()));
        let left = deadline.left_for_a_try();
        thread::sleep(pause.min(left));
        let patience = if recovers { left.min(patience) } else { left };
        let cause = match course.way.call(&placement, patience) {
            Ok(connection) => {
                course.on_arrived();
                return Ok((course, connection));
            }
            Err(cause) => cause,
        };
        if !recovers || deadline.left().is_zero() {
            let host = course.host();
            return Err(unreachable_node(&cause, &host.name, host.stream));
        }
        course.on_failed(Nanos(clock.read()), &cause);
    }
}

fn wrong(ticket: &JobTicket, what: &str) -> Error {
    Error::Manager(format!("the manager's ticket for {} makes no sense: {what}", ticket.job))
}

fn no_socket(cause: &std::io::Error, address: Option<IpAddr>) -> Error {
    match address {
        Some(address) if cause.kind() == std::io::ErrorKind::AddrNotAvailable => Error::Manager(format!(
            "the topology says that this host has the address {address} on one of its rails, and it has not: correct \
             `addresses` there, or let TRIB_HOST say this host's name"
        )),
        _ => Error::Memory(format!("cannot make a datagram socket: {cause}")),
    }
}

fn unreachable_node(cause: &HandshakeError, name: &str, address: SocketAddr) -> Error {
    let text = format!("aggregation node {name} at {address}: {cause}");
    match cause {
        HandshakeError::Version { .. } | HandshakeError::Refused(Status::Version) => Error::Version(text),
        HandshakeError::BadKey | HandshakeError::Refused(Status::BadKey | Status::WrongAddress) => Error::Auth(text),
        _ => Error::Node(text),
    }
}

/// The receive buffer that the datagram socket asks for, in bytes: a window of results of several
/// groups at once.
const RECV_BUFFER: usize = 2 << 20;
