//! Joining over the caller's own exchange.
//!
//! An error of a rank, in its arguments or its environment, goes into its first record: see
//! `agreement`.

use std::time::Duration;

use trib_messages::job::JobTicket;
use trib_messages::request::{JobRequest, Request};
use trib_wire::ranks::WORLD_MAX;

use super::{Deadline, Joined, connect, manager};
use crate::agreement::{Agreement, CONTENT_MAX};
use crate::error::Error;
use crate::params::{HOST_MAX, OutOfBand, Params};

/// Joins the job.
pub(super) fn join(params: &Params, oob: Box<dyn OutOfBand>) -> Result<Joined, Error> {
    let mut agreement = Agreement::new(oob, params.rank, params.size, WORLD_MAX);
    let limit = params.time_limit();
    let wait = params.queue_limit();
    let deadline = Deadline::after(limit.clone().unwrap_or_default());
    let own = params.check().and(limit).and(wait.clone()).and_then(|_| {
        // Only rank 0 needs these settings, but they are checked here so that an error in them
        // names rank 0.
        if params.rank == 0 {
            manager::url(params).and(params.quota())?;
        }
        params.host_name().map(introduction)
    });
    let wait = wait.unwrap_or_default();

    let mut held = None;
    let introductions = agreement.gather(own.as_ref().map(String::as_bytes).map_err(Clone::clone))?;
    let granted = introductions.and_then(introduced).and_then(|(hosts, pids)| {
        let (name, user) = (manager::program_name(), manager::user_name());
        let request = JobRequest { hosts, pids, ask: params.quota()?, name, user, wait_ms: manager::wait_ms(wait) };
        let (hold, ticket) = manager::ask(params, &Request::RequestJob(request), deadline, wait)?;
        held = Some(hold);
        serde_json::to_vec(&ticket).map_err(|cause| Error::broken(&format!("a ticket cannot be written: {cause}")))
    });
    let joined = share(params, &mut agreement, own, granted, deadline, wait);
    match (joined, held) {
        (Ok(mut joined), Some(hold)) => {
            joined.ties.hold(hold);
            Ok(joined)
        }
        (Err(error), Some(hold)) => {
            hold.give_up(error.to_string());
            Err(error)
        }
        (joined, None) => joined,
    }
}

/// Brings rank 0's ticket to all ranks, and then the verdict on whether each of them could connect.
fn share(
    params: &Params,
    agreement: &mut Agreement,
    own: Result<String, Error>,
    granted: Result<Vec<u8>, Error>,
    deadline: Deadline,
    wait: Duration,
) -> Result<Joined, Error> {
    let ticket = agreement.bcast(granted)??;
    let deadline = deadline.after_waiting(wait);
    // The first exchange may have lost this rank's objection, so the rank raises it once more.
    let taken = own.and_then(|_| read(&ticket)).and_then(|ticket| connect::to_nodes(params, &ticket, deadline));
    let outcome = taken.as_ref().map(|_| &[][..]).map_err(Clone::clone);
    let verdict = agreement.gather(outcome)?.map(|_| Vec::new());
    agreement.bcast(verdict)??;
    taken
}

fn read(ticket: &[u8]) -> Result<JobTicket, Error> {
    serde_json::from_slice(ticket)
        .map_err(|cause| Error::Manager(format!("the ticket that rank 0 passed on cannot be read: {cause}")))
}

/// What a rank tells about itself: its process id and its host's name.
fn introduction(host: String) -> String {
    format!("{} {host}", std::process::id())
}

/// The hosts and process ids of all ranks, by rank.
fn introduced(values: Vec<Vec<u8>>) -> Result<(Vec<String>, Vec<u32>), Error> {
    let unreadable =
        || Error::OutOfBand("the out-of-band gather brought what is no process number and host name".into());
    let (mut hosts, mut pids) = (Vec::new(), Vec::new());
    for value in values {
        let text = String::from_utf8(value).map_err(|_| unreadable())?;
        let (pid, host) = text.split_once(' ').ok_or_else(unreadable)?;
        pids.push(pid.parse().map_err(|_| unreadable())?);
        hosts.push(host.to_owned());
    }
    Ok((hosts, pids))
}

const _: () = assert!(HOST_MAX + "4294967295 ".len() <= CONTENT_MAX);
