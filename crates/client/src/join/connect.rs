//! The connections of this rank to its nodes, one for each lane.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use trib_messages::directory::JobDirectory;
use trib_messages::job::{JobTicket, LANES_MAX, LaneTicket};
use trib_proto::{LeafConfig, Limits};
use trib_transport::edge_keys;
use trib_transport::tcp::handshake::Identity;
use trib_transport::tcp::{HandshakeError, connect_from};
use trib_transport::udp::DatagramSocket;
use trib_wire::hello::Status;
use trib_wire::{Placement, Rank};

use super::{Deadline, Joined, Ties};
use crate::engine::{Shared, Sources};
use crate::error::Error;
use crate::lanes::Lanes;
use crate::params::Params;

/// Connects this rank to its node on every lane and starts the engine.
pub(super) fn to_nodes(params: &Params, ticket: &JobTicket, deadline: Deadline) -> Result<Joined, Error> {
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
    let connect = |lane| connect_lane(params, ticket, lane, deadline, directory.clone());
    let sources: Result<Vec<Sources>, Error> = ticket.lanes.iter().map(connect).collect();
    let lanes = Lanes::new(weights(), ticket.stripe_threshold);
    let (shared, helper) = Shared::start(lanes, sources?, params.progress.clone())?;
    Ok(Joined { ties: Ties::new(shared, helper), prediction })
}

fn connect_lane(
    params: &Params,
    ticket: &JobTicket,
    lane: &LaneTicket,
    deadline: Deadline,
    directory: Arc<JobDirectory>,
) -> Result<Sources, Error> {
    let attachment = lane.leaves.get(params.rank as usize);
    let attachment = attachment.ok_or_else(|| wrong(ticket, "this rank has no place in it"))?;
    let above = ticket.nodes.iter().find(|node| node.node == attachment.node);
    let above = above.ok_or_else(|| wrong(ticket, "this rank's node is not in it"))?.primary();
    let limits = Limits::from(&ticket.limits);
    if !limits.are_valid() {
        return Err(wrong(ticket, "its quota is outside what the protocol allows"));
    }
    let keys = edge_keys(&ticket.key, ticket.job, ticket.epoch, attachment.node, attachment.child);
    let any: IpAddr = match above.stream {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let datagrams = DatagramSocket::bind(SocketAddr::new(attachment.address.unwrap_or(any), 0), RECV_BUFFER)
        .map_err(|cause| no_socket(&cause, attachment.address))?;
    let identity = Identity {
        job: ticket.job,
        epoch: ticket.epoch,
        node: attachment.node,
        child: attachment.child,
        channel: 0,
        udp_port: datagrams.local_addr().port(),
        placement: Placement::FIRST,
    };
    let connected = connect_from(attachment.address, above.stream, &identity, &keys.hello, deadline.left_for_a_try())
        .map_err(|cause| unreachable_node(&cause, &above.name, above.stream))?;
    let config = LeafConfig {
        job: ticket.job,
        epoch: ticket.epoch,
        rank: Rank(params.rank),
        world_size: params.size,
        node: attachment.node,
        child: attachment.child,
        limits,
        recovers: false,
    };
    Ok(Sources { config, stream: connected.socket, datagrams, node: connected.datagrams, keys, directory })
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
