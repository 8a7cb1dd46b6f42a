//! A user's conversation: jobs, rendezvous, status.

use trib_control::MESSAGE_MAX;
use trib_messages::job::JobTicket;
use trib_messages::jobs::JobEnd;
use trib_messages::reply::{Refusal, Reply, Resource};
use trib_messages::request::{Account, AttachRequest, JobRequest, Request};
use trib_wire::ids::JobId;

use crate::admission::admit;
use crate::admission::ending::end;
use crate::answers::explain::{explain, explain_program};
use crate::answers::status;
use crate::answers::survey::survey;
use crate::fabric::Fabric;
use crate::programs::rendezvous::Meeting;
use crate::records::past::end_of;
use crate::refuse::{lasting, refuse, too_much};

/// Who asks.
pub struct Asker<'a> {
    /// The tenant that its certificate names.
    pub tenant: Option<&'a str>,
    /// Whether its connection has ended. This is called with a lock held, so it must not block.
    pub is_gone: &'a dyn Fn() -> bool,
}

/// Answers a request of a connection that holds these jobs, which may take as long as the request
/// says. Nobody is left to be answered where the result is `None`.
pub(crate) fn answer(fabric: &Fabric, asker: &Asker<'_>, request: Request, held: &mut Vec<JobId>) -> Option<Reply> {
    let sight = &fabric.tenancy.sight(asker.tenant);
    let reply = match request {
        Request::RequestJob(request) => job(fabric, asker, &request, held),
        Request::Attach(rank) => attach(fabric, asker, rank, held)?,
        Request::Serve(_) => {
            Reply::Refused(refuse(Resource::Request, None, "who hosts nodes of a job asks for nothing else meanwhile"))
        }
        Request::EndJob { job, why } => end_held(fabric, job, why, held),
        Request::Fallback { job, why } => note(fabric, job, &why, held),
        Request::Account { rendezvous, account } => take_account(fabric, &meeting(asker, &rendezvous), &account),
        Request::Status => Reply::Status(status::report(fabric, sight)),
        Request::Explain { job, group } => explain(fabric, job, group, sight).unwrap_or_else(Reply::Refused),
        Request::ExplainProgram { name, group } => {
            explain_program(fabric, &name, group, sight).unwrap_or_else(Reply::Refused)
        }
        Request::Jobs => Reply::Jobs(survey(fabric, sight)),
    };
    if let Reply::Refused(refusal) = &reply {
        fabric.ledger.refuse(refusal);
    }
    Some(reply)
}

/// The answer instead of a reply that is longer than a message may be. A job of which rank 0 gets
/// no ticket ends.
pub(crate) fn too_long(fabric: &Fabric, reply: &Reply, bytes: usize, held: &mut Vec<JobId>) -> Refusal {
    let (what, remedy) = match reply {
        Reply::Granted(_) => ("the job's ticket", "use fewer ranks, or ask for fewer lanes"),
        Reply::Explanation(_) => ("the answer", "ask for one group of the job"),
        _ => ("the answer", "ask for one job, as `trib explain` does"),
    };
    let text = format!("{what} has {bytes} bytes, at most {MESSAGE_MAX} travel at once: {remedy}");
    if let Reply::Granted(JobTicket { job, .. }) = reply
        && held.contains(job)
    {
        held.retain(|other| other != job);
        end(fabric, *job, JobEnd::GivenUp { why: text.clone() });
    }
    let refusal = too_much(Resource::Request, bytes as u64, MESSAGE_MAX as u64, text);
    fabric.ledger.refuse(&refusal);
    refusal
}

/// The connection that held these jobs has ended without a word.
pub(crate) fn leave(fabric: &Fabric, held: &mut Vec<JobId>) {
    for job in held.drain(..) {
        fabric.jobs.lose(job);
        tracing::info!(job = job.0, "rank 0 is gone without a word; the job ends with its last rank");
    }
}

fn job(fabric: &Fabric, asker: &Asker<'_>, request: &JobRequest, held: &mut Vec<JobId>) -> Reply {
    if let Err(refusal) = check_text(&request.name, &request.user).and_then(|()| room(fabric, held)) {
        fabric.past.refused(fabric.jobs.number(), asker.tenant, request, &refusal);
        return Reply::Refused(refusal);
    }
    match timed(fabric, request, asker.tenant, asker) {
        Ok(ticket) => grant(ticket, held),
        Err(refusal) => Reply::Refused(refusal),
    }
}

fn timed(fabric: &Fabric, request: &JobRequest, tenant: Option<&str>, asker: &Asker<'_>) -> Result<JobTicket, Refusal> {
    fabric.ledger.time(|| admit(fabric, request, tenant, asker.is_gone))
}

fn attach(fabric: &Fabric, asker: &Asker<'_>, rank: AttachRequest, held: &mut Vec<JobId>) -> Option<Reply> {
    let tenant = asker.tenant;
    if let Err(refusal) = check_text(&rank.name, &rank.user).and_then(|()| room(fabric, held)) {
        let host = std::slice::from_ref(&rank.host);
        fabric.past.refused_ranks(fabric.jobs.number(), (&rank, tenant), host, &refusal);
        return Some(Reply::Refused(refusal));
    }
    let first = rank.rank == 0;
    let verdict = fabric.rendezvous.attach(
        (&rank, tenant.map(str::to_owned)),
        |request, tenant| timed(fabric, request, tenant, asker),
        |job| end(fabric, job, JobEnd::Lost),
        |refusal, hosts| {
            fabric.past.refused_ranks(fabric.jobs.number(), (&rank, tenant), hosts, refusal);
        },
        asker.is_gone,
    )?;
    Some(match &*verdict {
        Ok(ticket) if first => {
            fabric.launches.enter(meeting(asker, &rank.rendezvous), ticket.job);
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

fn meeting(asker: &Asker<'_>, text: &str) -> Meeting {
    Meeting { tenant: asker.tenant.map(str::to_owned), text: text.to_owned() }
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

const HELD_MAX: usize = 64;
const TEXT_MAX: usize = 1024;
