//! A user's conversation: jobs, rendezvous, status.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trib_control::{Channel, Error};
use trib_messages::job::JobTicket;
use trib_messages::jobs::JobEnd;
use trib_messages::reply::{Refusal, Reply, Resource};
use trib_messages::request::{Account, AttachRequest, JobRequest, Request};
use trib_wire::ids::JobId;

use super::{Shared, deputy};
use crate::admission::admit;
use crate::admission::ending::end;
use crate::answers::explain::{explain, explain_program};
use crate::answers::status;
use crate::answers::survey::survey;
use crate::fabric::Fabric;
use crate::programs::rendezvous::Meeting;
use crate::records::past::end_of;
use crate::refuse::{lasting, refuse, too_much};

/// Serves one user until its connection ends. The jobs that it still holds are left in `held`. The
/// connection is `engaged` while it holds one or waits for an answer.
pub(super) fn serve(
    shared: &Shared,
    channel: &Arc<Channel>,
    engaged: &AtomicBool,
    held: &mut Vec<JobId>,
) -> Result<(), Error> {
    let fabric = &*shared.fabric;
    let sight = &fabric.tenancy.sight(channel.peer().tenant());
    loop {
        engaged.store(!held.is_empty(), Ordering::Relaxed);
        // A connection that holds a job may be silent for days. One that holds none has no reason
        // to stay.
        let patience = held.is_empty().then_some(IDLE);
        let request = channel.recv(patience);
        engaged.store(true, Ordering::Relaxed);
        if request.is_ok() {
            thread::sleep(shared.pace.wait(channel.peer().address.ip(), Instant::now()));
        }
        let reply = match request {
            Ok(Request::RequestJob(request)) => job(fabric, channel, &request, held),
            Ok(Request::Attach(rank)) => match attach(fabric, channel, rank, held) {
                Some(reply) => reply,
                None => return Ok(()),
            },
            Ok(Request::Serve(request)) => match deputy::serve(fabric, channel, &request) {
                Ok(ended) => return ended,
                // No program goes without anything for it: most often its job has just ended.
                Err(refusal) => {
                    channel.send(&Reply::Refused(refusal))?;
                    continue;
                }
            },
            Ok(Request::EndJob { job, why }) => end_held(fabric, job, why, held),
            Ok(Request::Fallback { job, why }) => note(fabric, job, &why, held),
            Ok(Request::Account { rendezvous, account }) => {
                take_account(fabric, &meeting(channel, &rendezvous), &account)
            }
            Ok(Request::Status) => Reply::Status(status::report(fabric, sight)),
            Ok(Request::Explain { job, group }) => explain(fabric, job, group, sight).unwrap_or_else(Reply::Refused),
            Ok(Request::ExplainProgram { name, group }) => {
                explain_program(fabric, &name, group, sight).unwrap_or_else(Reply::Refused)
            }
            Ok(Request::Jobs) => Reply::Jobs(survey(fabric, sight)),
            Err(Error::Closed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Reply::Refused(refusal) = &reply {
            fabric.ledger.refuse(refusal);
        }
        channel.send(&reply)?;
    }
}

fn job(fabric: &Fabric, channel: &Channel, request: &JobRequest, held: &mut Vec<JobId>) -> Reply {
    if let Err(refusal) = check_text(&request.name, &request.user).and_then(|()| room(fabric, held)) {
        fabric.past.refused(fabric.jobs.number(), channel.peer().tenant(), request, &refusal);
        return Reply::Refused(refusal);
    }
    match timed(fabric, request, channel.peer().tenant(), channel) {
        Ok(ticket) => grant(ticket, held),
        Err(refusal) => Reply::Refused(refusal),
    }
}

fn timed(fabric: &Fabric, request: &JobRequest, tenant: Option<&str>, channel: &Channel) -> Result<JobTicket, Refusal> {
    fabric.ledger.time(|| admit(fabric, request, tenant, &|| channel.is_closed()))
}

fn attach(fabric: &Fabric, channel: &Channel, rank: AttachRequest, held: &mut Vec<JobId>) -> Option<Reply> {
    let tenant = channel.peer().tenant();
    if let Err(refusal) = check_text(&rank.name, &rank.user).and_then(|()| room(fabric, held)) {
        let host = std::slice::from_ref(&rank.host);
        fabric.past.refused_ranks(fabric.jobs.number(), (&rank, tenant), host, &refusal);
        return Some(Reply::Refused(refusal));
    }
    let first = rank.rank == 0;
    let verdict = fabric.rendezvous.attach(
        (&rank, tenant.map(str::to_owned)),
        |request, tenant| timed(fabric, request, tenant, channel),
        |job| end(fabric, job, JobEnd::Lost),
        |refusal, hosts| {
            fabric.past.refused_ranks(fabric.jobs.number(), (&rank, tenant), hosts, refusal);
        },
        || channel.is_closed(),
    )?;
    Some(match &*verdict {
        Ok(ticket) if first => {
            fabric.launches.enter(meeting(channel, &rank.rendezvous), ticket.job);
            grant(ticket.clone(), held)
        }
        Ok(ticket) => Reply::Granted(ticket.clone()),
        Err(refusal) => Reply::Refused(refusal.clone()),
    })
}

fn grant(ticket: JobTicket, held: &mut Vec<JobId>) -> Reply {
    held.push(ticket.job);
    Reply::Granted(ticket)
}

fn end_held(fabric: &Fabric, job: JobId, why: Option<String>, held: &mut Vec<JobId>) -> Reply {
    if !held.contains(&job) {
        return Reply::Refused(not_held(fabric, job, "end it"));
    }
    held.retain(|other| *other != job);
    end(fabric, job, why.map_or(JobEnd::Ended, |why| JobEnd::GivenUp { why }));
    Reply::Ended { job }
}

fn note(fabric: &Fabric, job: JobId, why: &str, held: &[JobId]) -> Reply {
    if held.contains(&job) && fabric.jobs.note(job, why) {
        return Reply::Noted { job };
    }
    Reply::Refused(not_held(fabric, job, "speak for it"))
}

fn meeting(channel: &Channel, text: &str) -> Meeting {
    Meeting { tenant: channel.peer().tenant().map(str::to_owned), text: text.to_owned() }
}

fn take_account(fabric: &Fabric, meeting: &Meeting, account: &Account) -> Reply {
    let Some(job) = fabric.launches.job(meeting) else {
        let text = "no job is known whose ranks met under that text";
        return Reply::Refused(lasting(refuse(Resource::Rendezvous, None, text), fabric.started_ms));
    };
    // All ranks of the job have ended. If the end of its connection has not been noticed yet, the
    // job ends now.
    end(fabric, job, end_of(account));
    fabric.past.account(job, account);
    Reply::Noted { job }
}

fn not_held(fabric: &Fabric, job: JobId, what: &str) -> Refusal {
    let text = format!("{job} is not held by this connection: only the one that asked for a job can {what}");
    let refusal = refuse(Resource::Job, Some(&job.to_string()), text);
    match fabric.jobs.get(job) {
        Some(status) => lasting(refusal, status.since * 1000),
        None => refusal,
    }
}

fn room(fabric: &Fabric, held: &[JobId]) -> Result<(), Refusal> {
    if held.len() < HELD_MAX {
        return Ok(());
    }
    let text = format!("this connection holds {HELD_MAX} jobs, the most it may: end one first");
    let refusal = too_much(Resource::Jobs, held.len() as u64 + 1, HELD_MAX as u64, text);
    let newest = held.last().and_then(|job| fabric.jobs.get(*job)).map_or(fabric.started_ms, |job| job.since * 1000);
    Err(lasting(Refusal { holder: Some("this connection".into()), ..refusal }, newest))
}

fn check_text(name: &str, user: &str) -> Result<(), Refusal> {
    let longest = name.len().max(user.len());
    if longest <= TEXT_MAX {
        return Ok(());
    }
    let text = format!("names of programs and users have at most {TEXT_MAX} bytes: shorten it");
    Err(too_much(Resource::Request, longest as u64, TEXT_MAX as u64, text))
}

const IDLE: Duration = Duration::from_secs(60);
const HELD_MAX: usize = 64;
const TEXT_MAX: usize = 1024;
