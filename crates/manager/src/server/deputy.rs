//! A deputy's conversation: a rank that hosts nodes of its own job tells how they are, as a node
//! does. Nothing is installed there.

use std::sync::Arc;

use trib_control::{Channel, Error};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::ServeRequest;

use super::node::{converse, note_fault, take_answer};
use crate::fabric::Fabric;
use crate::names::cut;
use crate::nodes::session::Session;
use crate::records::past::NAME_MAX;
use crate::refuse::{lasting, refuse};

/// Serves one deputy until its connection ends. Fails if it is none.
pub(crate) fn serve(
    fabric: &Fabric,
    channel: &Arc<Channel>,
    request: &ServeRequest,
) -> Result<Result<(), Error>, Refusal> {
    let ServeRequest { job, rank, process, stream, .. } = request;
    let is_one = fabric.jobs.get(*job).is_some_and(|status| status.deputies().contains(trib_wire::Rank(*rank)));
    if !is_one || !fabric.jobs.admits(*job, &request.pass) {
        let text = format!("{job} has no rank {rank} that may host its nodes and that shows its pass");
        return Err(lasting(refuse(Resource::Job, Some(&job.to_string()), text), fabric.started_ms));
    }
    let name = format!("rank {rank} on {}", cut(&process.host, NAME_MAX));
    let (session, messages) = Session::new(name.clone(), *stream, Vec::new(), 0, 1, channel.clone());
    session.post(ManagerMessage::Registered);
    fabric.deputies.enter((*job, *rank), &session);
    tracing::info!(job = job.0, name, "a rank hosts nodes of its job");
    let ended = converse(&session, messages, || listen(fabric, request, &session, channel));
    fabric.deputies.leave((*job, *rank), &session);
    Ok(ended)
}

fn listen(fabric: &Fabric, request: &ServeRequest, session: &Session, channel: &Channel) -> Result<(), Error> {
    loop {
        session.listens();
        let message = channel.recv(None);
        session.heard();
        match message.map(|message| take_answer(session, message)) {
            Ok(None | Some(NodeMessage::Hosts { .. } | NodeMessage::Left { .. })) => {}
            Ok(Some(NodeMessage::Faulty { job, fault, why })) if job == request.job => {
                if let Some(why) = fabric.jobs.told_by_deputy(job, &session.name, fault.as_ref(), &why) {
                    note_fault(fabric, session, job, why);
                }
            }
            Ok(Some(_)) => {
                let cause = "a deputy says what only a node says".into();
                return Err(Error::Malformed { address: session.name.clone(), cause });
            }
            Err(Error::Closed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
