//! The way to the parent: a logical node connects to it as any child does.

use std::thread;
use std::time::Duration;

use trib_messages::job::NodeGrant;
use trib_transport::edge_keys;
use trib_transport::tcp::{Identity, connect_from};
use trib_wire::Placement;

use crate::job::PARENT;
use crate::worker::{Command, WorkerHandle};

/// Opens the stream to the parent where it is in a placement, if there is a parent. A thread of its
/// own waits for the parent's process, which may hear of the job later than this one. The thread
/// ends when the stream is open or has failed.
pub(super) fn call(grant: &NodeGrant, placement: &Placement, worker: WorkerHandle) {
    let Some(parent) = grant.parent.clone() else { return };
    let (key, epoch) = ((grant.job, grant.node), placement.epoch(grant.epoch));
    let keys = edge_keys(&grant.key, grant.job, epoch, parent.node, parent.child);
    let (local, target) = (Some(worker.ip).filter(|ip| !ip.is_unspecified()), parent.hosted(placement));
    let patience = if *placement == Placement::FIRST { PATIENCE } else { PATIENCE_LATER };
    let identity = Identity {
        job: grant.job,
        epoch,
        node: parent.node,
        child: parent.child,
        channel: 0,
        udp_port: worker.udp_port,
        placement: placement.clone(),
    };
    let reply = worker.mailbox.clone();
    let calling = move || {
        worker.mailbox.post(match connect_from(local, target, &identity, &keys.hello, patience) {
            Ok(open) => Command::LinkUp { key, epoch, link: PARENT, socket: open.socket, datagrams: open.datagrams },
            Err(error) => Command::ParentFailed { key, epoch, error },
        });
    };
    if let Err(error) = thread::Builder::new().name("calls-parent".into()).spawn(calling) {
        reply.post(Command::ParentFailed { key, epoch, error: error.into() });
    }
}

/// How long the parent may take to know the job: grants reach the nodes of a tree one after the
/// other.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take in a later epoch, when every candidate has long had its grant.
const PATIENCE_LATER: Duration = Duration::from_millis(1000);
