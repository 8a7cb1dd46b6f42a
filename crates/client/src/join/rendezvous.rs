//! Joining without an exchange of the caller's: the ranks meet at the manager.

use std::sync::Arc;

use trib_messages::request::{AttachRequest, Request};
use trib_wire::RankList;

use super::candidacy::Candidacy;
use super::{Deadline, Joined, connect, manager, numa};
use crate::engine::Shared;
use crate::error::Error;
use crate::group::Group;
use crate::params::Params;

/// Joins the job.
pub(super) fn join(params: &Params) -> Result<Joined, Error> {
    let deadline = Deadline::after(params.time_limit()?);
    let wait = params.queue_limit()?;
    let rendezvous = params.meeting_name()?;
    let candidacy = Candidacy::open(params);
    let request = Request::Attach(AttachRequest {
        rendezvous,
        rank: params.rank,
        size: params.size,
        host: params.host_name()?,
        pid: std::process::id(),
        deputy: candidacy.as_ref().map(Candidacy::address),
        domain: numa::domain()?,
        ask: params.quota()?,
        name: manager::program_name(),
        user: manager::user_name(),
        wait_ms: manager::wait_ms(wait),
        patience_ms: Some(manager::patience_ms(deadline)),
    });
    let (hold, ticket) = manager::ask(params, &request, deadline, wait)?;
    let deadline = deadline.after_waiting(wait);
    let joined = connect::to_nodes(params, &ticket, candidacy, deadline).and_then(|joined| {
        await_all(&joined.ties.shared, params, deadline)?;
        Ok(joined)
    });
    match joined {
        Ok(mut joined) if params.rank == 0 => {
            joined.ties.hold(hold);
            Ok(joined)
        }
        Err(error) if params.rank == 0 => {
            hold.give_up(error.to_string());
            Err(error)
        }
        joined => joined,
    }
}

/// Waits until all ranks are connected: only then does a group of all ranks become ready.
fn await_all(shared: &Arc<Shared>, params: &Params, deadline: Deadline) -> Result<(), Error> {
    let members = RankList::world(params.size);
    let (group, request) = Group::start_meeting(shared, params.rank, members, TAG)?;
    request.wait(Some(deadline.left_for_a_try())).map_err(|error| match error {
        Error::Timeout(_) => {
            let ms = deadline.whole.as_millis();
            Error::Timeout(format!("not all {} ranks were connected to their nodes within {ms} ms", params.size))
        }
        other => other,
    })?;
    group.free()
}

/// The tag that tells this group from those of the caller with all ranks.
const TAG: u64 = u64::MAX;
