//! Asking the manager for a job.

use std::time::Duration;

use trib_control::{Channel, ManagerUrl};
use trib_messages::hello::Role;
use trib_messages::job::JobTicket;
use trib_messages::reply::{Refusal, Reply, Resource};
use trib_messages::request::Request;

use super::{Deadline, Hold};
use crate::error::Error;
use crate::params::Params;

/// Sends `request` and returns the ticket. The job may `wait` for it beyond the deadline. If this
/// is rank 0, the job lives as long as the hold.
pub(super) fn ask(
    params: &Params,
    request: &Request,
    deadline: Deadline,
    wait: Duration,
) -> Result<(Hold, JobTicket), Error> {
    let channel = Channel::connect(&url(params)?, Role::User, deadline.left_for_a_try())?;
    match channel.ask::<_, Reply>(request, deadline.plus(wait).left_for_a_try())? {
        Reply::Granted(ticket) if ranks_of(&ticket) == params.size as usize => {
            Ok((Hold::new(channel, ticket.job), ticket))
        }
        Reply::Granted(ticket) => {
            let got = ranks_of(&ticket);
            Err(Error::Manager(format!(
                "the manager granted a job of {got} ranks where {} were asked for",
                params.size
            )))
        }
        Reply::Refused(refusal) => Err(refused(&refusal)),
        other => Err(Error::Manager(format!("the manager answered a request for a job with {other:?}"))),
    }
}

/// The address of the manager.
pub(super) fn url(params: &Params) -> Result<ManagerUrl, Error> {
    match &params.manager {
        Some(text) => Ok(text.parse()?),
        None => Ok(ManagerUrl::from_env()?),
    }
}

/// The field of a request that says how long it may wait, in milliseconds; `None` if it may not.
pub(super) fn wait_ms(wait: Duration) -> Option<u32> {
    u32::try_from(wait.as_millis()).ok().filter(|ms| *ms > 0)
}

/// The field of a request that says how long its ranks have, in milliseconds.
pub(super) fn patience_ms(deadline: Deadline) -> u32 {
    u32::try_from(deadline.whole.as_millis()).unwrap_or(u32::MAX).min(PATIENCE_MAX)
}

fn ranks_of(ticket: &JobTicket) -> usize {
    ticket.lanes.iter().map(|lane| lane.leaves.len()).min().unwrap_or(0)
}

/// The caller's error for a refusal.
pub(super) fn refused(refusal: &Refusal) -> Error {
    let text = format!("the manager refused the job: {refusal}");
    match refusal.resource {
        Resource::Role => Error::Auth(text),
        Resource::Host | Resource::Node | Resource::Rendezvous | Resource::Job | Resource::Request => {
            Error::Manager(text)
        }
        _ => Error::Quota(text),
    }
}

/// The program's name, for messages.
pub(super) fn program_name() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(std::path::Path::file_name);
    name.map_or_else(|| "unknown".into(), |name| name.to_string_lossy().into_owned())
}

/// The user who runs the program, for messages.
pub(super) fn user_name() -> String {
    // SAFETY: the call asks the kernel for a number.
    let number = || format!("uid {}", unsafe { libc::getuid() });
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(number)
}

/// The largest patience that the manager takes, in milliseconds.
const PATIENCE_MAX: u32 = 3_600_000;
