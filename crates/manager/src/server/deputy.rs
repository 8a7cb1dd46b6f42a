//! The connection of a deputy.

use std::sync::Arc;

use trib_control::{Channel, Error};
use trib_messages::reply::Refusal;
use trib_messages::request::ServeRequest;

use super::caller;
use super::node::{converse, listen};
use crate::conversations::deputy::{enter, hear};
use crate::fabric::Fabric;

/// Serves one deputy until its connection ends. Fails if it is none.
pub(crate) fn serve(
    fabric: &Fabric,
    channel: &Arc<Channel>,
    request: &ServeRequest,
) -> Result<Result<(), Error>, Refusal> {
    let (session, messages) = enter(fabric, caller(channel), request)?;
    let each = |message| hear(fabric, request, &session, message);
    let ended = converse((&session, channel), messages, || listen(&session, channel, each));
    fabric.deputies.leave((request.job, request.rank), &session);
    Ok(ended)
}
