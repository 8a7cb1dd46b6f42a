//! Taking the own place in the tree: the connection to the node above.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use trib_proto::{LeafConfig, Limits};
use trib_transport::edge_keys;
use trib_transport::tcp::handshake::Identity;
use trib_transport::tcp::{HandshakeError, connect};
use trib_transport::udp::DatagramSocket;
use trib_wire::Rank;
use trib_wire::control::job::JobTicket;
use trib_wire::hello::Status;

use super::Deadline;
use crate::context::{Context, Ties};
use crate::engine::{Shared, Sources};
use crate::error::Error;
use crate::params::Params;

/// Connects this rank to its node and starts the engine.
pub(super) fn take(params: &Params, ticket: &JobTicket, deadline: Deadline) -> Result<Context, Error> {
    let wrong = |what: &str| Error::Manager(format!("the manager's ticket for {} makes no sense: {what}", ticket.job));
    let place = ticket.leaves.get(params.rank as usize).ok_or_else(|| wrong("this rank has no place in it"))?;
    let above = ticket.nodes.iter().find(|node| node.node == place.node);
    let above = above.ok_or_else(|| wrong("this rank's node is not in it"))?;
    let limits = Limits::from(&ticket.limits);
    if !limits.are_valid() {
        return Err(wrong("its quota is outside what the protocol allows"));
    }
    let keys = edge_keys(&ticket.key, ticket.job, ticket.epoch, place.node, place.child);
    let any: IpAddr = match above.stream {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let datagrams = DatagramSocket::bind(SocketAddr::new(any, 0), RECV_BUFFER)
        .map_err(|cause| Error::Memory(format!("cannot make a datagram socket: {cause}")))?;
    let identity = Identity {
        job: ticket.job,
        epoch: ticket.epoch,
        node: place.node,
        child: place.child,
        channel: 0,
        udp_port: datagrams.local_addr().port(),
    };
    let connected = connect(above.stream, &identity, &keys.hello, deadline.left_for_a_try())
        .map_err(|cause| unreachable_node(&cause, &above.name, above.stream))?;
    let config = LeafConfig {
        job: ticket.job,
        epoch: ticket.epoch,
        rank: Rank(params.rank),
        world_size: params.size,
        node: place.node,
        child: place.child,
        limits,
    };
    let sources = Sources { stream: connected.socket, datagrams, node: connected.datagrams, keys };
    let (shared, helper) = Shared::start(config, sources, params.progress.clone())?;
    Ok(Context::new(shared, params.rank, params.size, Ties { helper, manager: None }))
}

fn unreachable_node(cause: &HandshakeError, name: &str, address: SocketAddr) -> Error {
    let text = format!("aggregation node {name} at {address}: {cause}");
    match cause {
        HandshakeError::Version { .. } | HandshakeError::Refused(Status::Version) => Error::Version(text),
        HandshakeError::BadKey | HandshakeError::Refused(Status::BadKey | Status::WrongAddress) => Error::Auth(text),
        _ => Error::Node(text),
    }
}

/// Wanted for the datagram socket: a window of results of several groups at once.
const RECV_BUFFER: usize = 2 << 20;
