//! The way to the parent: a logical node connects to it as any child does.

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use trib_messages::job::NodeGrant;
use trib_transport::edge_keys;
use trib_transport::tcp::{Identity, connect_from};
use trib_wire::Placement;

use crate::job::PARENT;
use crate::worker::{Command, WorkerHandle};

/// Opens the stream to the parent, if there is one. A thread of its own waits for the parent's
/// process, which may hear of the job later than this one. The thread ends when the stream is open
/// or has failed.
pub(super) fn call(grant: &NodeGrant, local: Option<IpAddr>, worker: WorkerHandle) {
    let Some(parent) = grant.parent.clone() else { return };
    let key = (grant.job, grant.node);
    let keys = edge_keys(&grant.key, grant.job, grant.epoch, parent.node, parent.child);
    let identity = Identity {
        job: grant.job,
        epoch: grant.epoch,
        node: parent.node,
        child: parent.child,
        channel: 0,
        udp_port: worker.udp_port,
        placement: Placement::FIRST,
    };
    let stream = parent.candidates[0];
    let reply = worker.mailbox.clone();
    let calling = move || {
        worker.mailbox.post(match connect_from(local, stream, &identity, &keys.hello, PATIENCE) {
            Ok(open) => Command::LinkUp { key, link: PARENT, socket: open.socket, datagrams: open.datagrams },
            Err(error) => Command::ParentFailed { key, error },
        });
    };
    if let Err(error) = thread::Builder::new().name("calls-parent".into()).spawn(calling) {
        reply.post(Command::ParentFailed { key, error: error.into() });
    }
}

/// How long the parent may take to know the job: grants reach the nodes of a tree one after the
/// other.
const PATIENCE: Duration = Duration::from_secs(10);
