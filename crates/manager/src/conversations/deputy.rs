//! A deputy's conversation: a rank that hosts nodes of its own job tells how they are, as a node
//! does. Nothing is installed there.

use trib_control::Error;
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::ServeRequest;

use super::node::{Registered, note_fault, take_answer};
use crate::fabric::Fabric;
use crate::names::cut;
use crate::nodes::session::{Caller, Session};
use crate::records::past::NAME_MAX;
use crate::refuse::{lasting, refuse};

/// Lets a deputy in. Refuses it if it is none.
pub(crate) fn enter(fabric: &Fabric, caller: Caller, request: &ServeRequest) -> Result<Registered, Refusal> {
    let ServeRequest { job, rank, process, stream, .. } = request;
    let is_one = fabric.jobs.get(*job).is_some_and(|status| status.deputies().contains(trib_wire::Rank(*rank)));
    if !is_one || !fabric.jobs.admits(*job, &request.pass) {
        let text = format!("{job} has no rank {rank} that may host its nodes and that shows its pass");
        return Err(lasting(refuse(Resource::Job, Some(&job.to_string()), text), fabric.started_ms));
    }
    let name = format!("rank {rank} on {}", cut(&process.host, NAME_MAX));
    let (session, messages) = Session::new(name.clone(), *stream, Vec::new(), (0, 1), (caller, fabric.time.clone()));
    session.post(ManagerMessage::Registered);
    fabric.deputies.enter((*job, *rank), &session);
    tracing::info!(job = job.0, name, "a rank hosts nodes of its job");
    Ok((session, messages))
}

/// Takes what a deputy says. Fails if it says what it may not.
pub(crate) fn hear(
    fabric: &Fabric,
    request: &ServeRequest,
    session: &Session,
    message: NodeMessage,
) -> Result<(), Error> {
    match take_answer(session, message) {
        None | Some(NodeMessage::Hosts { .. } | NodeMessage::Left { .. }) => Ok(()),
        Some(NodeMessage::Faulty { job, fault, why }) if job == request.job => {
            if let Some(why) = fabric.jobs.told_by_deputy(job, &session.name, fault.as_ref(), &why) {
                note_fault(fabric, session, job, why);
            }
            Ok(())
        }
        Some(_) => {
            let cause = "a deputy says what only a node says".into();
            Err(Error::Malformed { address: session.name.clone(), cause })
        }
    }
}
