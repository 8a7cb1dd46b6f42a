//! The connection of a node.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use trib_control::{Channel, Error, Sparing};
use trib_messages::node::{ManagerMessage, NodeMessage};

use super::caller;
use crate::conversations::node::{hear, leave, register};
use crate::fabric::Fabric;
use crate::nodes::session::Session;

/// Serves one node until its connection ends.
pub(crate) fn serve(fabric: &Fabric, log: &Sparing, channel: Arc<Channel>) -> Result<(), Error> {
    let hello = channel.recv(Some(REGISTER))?;
    let (session, messages) = match register(fabric, caller(&channel), hello) {
        Ok(registered) => registered,
        Err(refusal) => {
            if log.may("node not let in", Instant::now()) {
                tracing::warn!(peer = %channel.peer().address, %refusal, "node not let in");
            }
            fabric.ledger.refuse(&refusal);
            channel.send(&ManagerMessage::Refused(refusal))?;
            channel.finish(LAST_WORD);
            return Ok(());
        }
    };
    tracing::info!(node = session.name, stream = %session.stream, "node connected");
    let each = |message| hear(fabric, &session, message);
    let ended = converse((&session, &channel), messages, || listen(&session, &channel, each));
    leave(fabric, &session);
    tracing::warn!(node = session.name, "node disconnected");
    ended
}

/// Writes to the session and listens to it, until its connection ends.
pub(super) fn converse(
    (session, channel): (&Session, &Channel),
    messages: Receiver<Box<ManagerMessage>>,
    listen: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let writer = thread::Builder::new().name(format!("to {}", session.name)).stack_size(STACK);
        let ended = match writer.spawn_scoped(scope, || write(session, channel, messages)) {
            Ok(_) => listen(),
            Err(cause) => Err(Error::Socket { what: "start a thread".into(), cause }),
        };
        session.lose();
        ended
    })
}

/// Hands on what comes, until the connection ends or says what it may not.
pub(super) fn listen(
    session: &Session,
    channel: &Channel,
    mut hear: impl FnMut(NodeMessage) -> Result<(), Error>,
) -> Result<(), Error> {
    loop {
        session.listens();
        let message = channel.recv(None);
        session.heard();
        match message {
            Ok(message) => hear(message)?,
            Err(Error::Closed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn write(session: &Session, channel: &Channel, messages: Receiver<Box<ManagerMessage>>) {
    while !session.is_lost() {
        match messages.recv_timeout(GLANCE) {
            Ok(message) if channel.send(&*message).is_err() => session.lose(),
            _ => {}
        }
    }
}

const REGISTER: Duration = Duration::from_secs(10);
const LAST_WORD: Duration = Duration::from_secs(1);
/// How soon a writer with nothing to send notices that its node is gone.
const GLANCE: Duration = Duration::from_millis(500);
const STACK: usize = 512 << 10;
