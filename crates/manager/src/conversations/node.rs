//! A node's conversation: the node registers, takes grants, and tells how it is.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use trib_control::Error;
use trib_messages::node::{ManagerMessage, NodeMessage, PORTS_MAX};
use trib_messages::reply::{Refusal, Resource};
use trib_wire::ids::JobId;

use crate::admission::ending::end_unheld;
use crate::fabric::Fabric;
use crate::nodes::session::{Caller, Outcome, Session, Told};
use crate::refuse::{lasting, refuse, since_start, too_much};

/// A node, and what has to be sent to it.
pub(crate) type Registered = (Arc<Session>, Receiver<Box<ManagerMessage>>);

/// Lets a node in that begins with this message. Refuses it if it is not the node that it says.
pub(crate) fn register(fabric: &Fabric, caller: Caller, hello: NodeMessage) -> Result<Registered, Refusal> {
    let NodeMessage::Register { name, stream, further, datagram_buffer_bytes, workers, jobs } = hello else {
        return Err(refuse(Resource::Request, None, "a node's first message is Register"));
    };
    if fabric.topology.node(&name).is_none() {
        let text =
            format!("the topology has no node `{name}`: correct the name, or add the node and restart the manager");
        return Err(since_start(refuse(Resource::Node, Some(&name), text), fabric.started_ms));
    }
    check_certificate(fabric, caller.node.as_deref(), &name)?;
    if stream.port() == 0 || datagram_buffer_bytes == 0 || workers == 0 {
        let text = format!(
            "node `{name}` registers with stream {stream}, {datagram_buffer_bytes} bytes of datagram buffer and {workers} workers: none of them may be 0"
        );
        return Err(too_much(Resource::Request, 0, 0, text));
    }
    if further.len() >= PORTS_MAX || further.iter().any(|other| other.port() == 0 || other.ip().is_unspecified()) {
        let text = format!(
            "node `{name}` registers {} addresses, each to be a single one with a port, at most {PORTS_MAX}",
            further.len() + 1
        );
        return Err(too_much(Resource::Request, further.len() as u64 + 1, PORTS_MAX as u64, text));
    }
    let stream = reachable(stream, caller.address);
    let address = caller.address.ip();
    let time = fabric.time.clone();
    let (session, messages) = Session::new(name, stream, further, (datagram_buffer_bytes, workers), (caller, time));
    check_addresses(fabric, &session, address)?;
    fabric.jobs.are_held(&session.name, &jobs);
    // It is posted before any job can be installed there, so that it is the first message.
    session.post(ManagerMessage::Registered);
    replace(fabric, &session)?;
    Ok((session, messages))
}

// The key of one node does not speak for another.
fn check_certificate(fabric: &Fabric, certified: Option<&str>, name: &str) -> Result<(), Refusal> {
    let text = match certified {
        Some(own) if own == name => return Ok(()),
        Some(own) => format!(
            "the certificate is that of node `{own}`, and the node registers as `{name}`: start it with --name {own}, or give it the \
             credentials of `{name}`"
        ),
        None => format!(
            "the certificate names no node, as those of releases before did: give the host of `{name}` the folder nodes/{name} that `trib \
             credentials DIR --node {name}` makes, and name it in the manager's address (...?credentials=DIR)"
        ),
    };
    Err(since_start(refuse(Resource::Node, Some(name), text), fabric.started_ms))
}

// Where the topology says on which addresses a node is, the manager sends children there and
// nowhere else, and hears the node from there alone: the certificate of a node is of no use on
// another host.
fn check_addresses(fabric: &Fabric, session: &Session, caller: IpAddr) -> Result<(), Refusal> {
    let Some(node) = fabric.topology.node(&session.name) else { return Ok(()) };
    let (caller, wanted) = (caller.to_canonical(), &node.addresses[..]);
    let list = |addresses: Vec<String>| addresses.join(", ");
    let fault = |text, asked: usize, available: usize| {
        let refusal = refuse(Resource::Node, Some(&session.name), text);
        let refusal = Refusal { asked: asked as u64, available: available as u64, ..refusal };
        Err(since_start(refusal, fabric.started_ms))
    };
    let name = &session.name;
    let calls_from = if wanted.is_empty() { node.control.as_slice() } else { wanted };
    if !calls_from.is_empty() && !calls_from.contains(&caller) && node.control != Some(caller) {
        let known = list(calls_from.iter().chain(&node.control).map(IpAddr::to_string).collect());
        let text = format!(
            "node `{name}` calls from {caller}, and the topology says that it is at {known}: run it there, or correct the addresses there; \
             where it reaches the manager from another address than its children, that is its `control`"
        );
        return fault(text, 1, 0);
    }
    let has = |address: &IpAddr| session.stream_at(Some(*address)).is_some();
    let missing: Vec<String> = wanted.iter().filter(|address| !has(address)).map(IpAddr::to_string).collect();
    if wanted.len() > 1 && !missing.is_empty() {
        let there = list(session.streams().map(|stream| stream.to_string()).collect());
        let text = format!(
            "node `{name}` listens at {there}, and the topology says that it is reached at {} too: start it with --listen IP:PORT,IP:PORT for \
             all of its addresses, or correct `addresses` there",
            list(missing)
        );
        return fault(text, wanted.len(), wanted.iter().filter(|address| has(address)).count());
    }
    let is_strange = |stream: &SocketAddr| !wanted.is_empty() && !wanted.contains(&stream.ip().to_canonical());
    match session.streams().find(is_strange) {
        None => Ok(()),
        Some(strange) => {
            let text = format!(
                "node `{name}` listens at {strange}, and the topology says that it is at {}: start it with --listen {}:PORT, or correct the \
                 addresses there",
                list(wanted.iter().map(IpAddr::to_string).collect()),
                wanted[0]
            );
            fault(text, 1, 0)
        }
    }
}

// A second process under a name that is taken is refused, unless the first does not answer any
// more: then its host most likely went down without closing the connection. Its certificate has
// proven that the second is that node.
fn replace(fabric: &Fabric, session: &Arc<Session>) -> Result<(), Refusal> {
    // What the process before had is gone with it. That is said before there can be a job at this
    // one, and not when the connection of the other ends.
    if fabric.registry.known(&session.name).is_some_and(|other| other.is_lost()) {
        fabric.tenancy.lost(&session.name);
    }
    let Err(other) = fabric.registry.enter(session, None) else { return Ok(()) };
    let alive = other.query().is_some_and(|counters| fabric.time.receive(&counters, PING).is_ok());
    if !alive {
        fabric.tenancy.lost(&session.name);
        if fabric.registry.enter(session, Some(&other)).is_ok() {
            other.lose();
            return Ok(());
        }
    }
    let text = format!(
        "node `{}` is already connected, with streams at {}: stop that one, or give this one its own name",
        session.name, other.stream
    );
    Err(lasting(refuse(Resource::Node, Some(&session.name), text), other.since_ms))
}

fn reachable(stream: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match stream.ip().is_unspecified() {
        true => SocketAddr::new(peer.ip(), stream.port()),
        false => stream,
    }
}

/// Takes what a node says. Fails if it says what it may not.
pub(crate) fn hear(fabric: &Fabric, session: &Session, message: NodeMessage) -> Result<(), Error> {
    let Some(message) = take_answer(session, message) else { return Ok(()) };
    let (job, node, outcome) = match message {
        NodeMessage::Installed { job, node } => (job, node, Outcome::Installed),
        NodeMessage::Rejected { job, node, refusal } => (job, node, Outcome::Rejected(refusal)),
        NodeMessage::Hosts { jobs } => {
            // A job ended while the node was away, and a backup that no rank has called would keep
            // it for ever.
            for job in fabric.jobs.over(&session.name, &jobs) {
                session.post(ManagerMessage::End { job });
            }
            end_unheld(fabric, fabric.jobs.hosted(&session.name, &jobs));
            return Ok(());
        }
        NodeMessage::Faulty { job, fault, why } => {
            match fabric.jobs.told(job, &session.name, fault.as_ref(), &why) {
                Some(why) => note_fault(fabric, session, job, why),
                None => tracing::debug!(node = session.name, job = job.0, "a fault of a job that is not there"),
            }
            return Ok(());
        }
        NodeMessage::Renewed { certificate_ends } => {
            session.renewed(certificate_ends);
            return Ok(());
        }
        NodeMessage::Left { job } => {
            end_unheld(fabric, fabric.jobs.left(&session.name, job));
            fabric.tenancy.left(&session.name, job);
            return Ok(());
        }
        _ => {
            let cause = "it registered twice".into();
            return Err(Error::Malformed { address: session.name.clone(), cause });
        }
    };
    if !session.answer(job, node, outcome) {
        tracing::debug!(node = session.name, job = job.0, "answer about a job nobody waits for");
    }
    Ok(())
}

/// The node's connection has ended. Jobs that are at a process in its stead lose nothing by that.
pub(crate) fn leave(fabric: &Fabric, session: &Session) {
    session.lose();
    if fabric.registry.is_latest(session) {
        fabric.tenancy.lost(&session.name);
    }
}

/// Hands an answer to those that wait for it. Any other message is returned.
pub(super) fn take_answer(session: &Session, message: NodeMessage) -> Option<NodeMessage> {
    match message {
        NodeMessage::Alive => {}
        NodeMessage::Counters(counters) => session.counted(&counters),
        NodeMessage::Activity(jobs) => session.active(&jobs),
        NodeMessage::Explained { job, group, parts, traffic, epochs } => {
            session.explained(job, group, &Told { parts, traffic, epochs });
        }
        other => return Some(other),
    }
    None
}

/// A job, or a group of it, cannot go on.
pub(super) fn note_fault(fabric: &Fabric, session: &Session, job: JobId, why: String) {
    tracing::warn!(node = session.name, job = job.0, why, "job cannot go on");
    if !fabric.jobs.fault(job, why.clone()) {
        fabric.past.fault(job, &why);
    }
}

const PING: Duration = Duration::from_secs(1);
