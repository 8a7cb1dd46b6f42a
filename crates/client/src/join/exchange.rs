//! Joining over the caller's own exchange.
//!
//! An error of a rank, in its arguments or its environment, goes into its first record: see
//! `agreement`.

use std::net::SocketAddr;
use std::time::Duration;

use trib_messages::Message;
use trib_messages::job::JobTicket;
use trib_messages::request::{JobRequest, Request};
use trib_wire::ranks::WORLD_MAX;

use super::candidacy::Candidacy;
use super::{Deadline, Joined, connect, manager, numa};
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
        Ok((params.host_name()?, numa::domain()?))
    });
    let candidacy = own.is_ok().then(|| Candidacy::open(params)).flatten();
    let own = own.map(|(host, domain)| introduction(&host, domain, candidacy.as_ref().map(Candidacy::address)));
    let wait = wait.unwrap_or_default();

    let mut held = None;
    let introductions = agreement.gather(own.as_ref().map(String::as_bytes).map_err(Clone::clone))?;
    let granted = introductions.and_then(introduced).and_then(|Introduced { hosts, pids, deputies, domains }| {
        let (name, user) = (manager::program_name(), manager::user_name());
        let (ask, wait_ms) = (params.quota()?, manager::wait_ms(wait));
        let patience_ms = Some(manager::patience_ms(deadline));
        let request = JobRequest { hosts, pids, deputies, domains, ask, name, user, wait_ms, patience_ms };
        let (hold, ticket) = manager::ask(params, &Request::RequestJob(request), deadline, wait)?;
        held = Some(hold);
        let mut json = Vec::new();
        ticket.write(&mut json);
        Ok(json)
    });
    let joined = share(params, &mut agreement, (own, candidacy), granted, (deadline, wait));
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
    (own, candidacy): (Result<String, Error>, Option<Candidacy>),
    granted: Result<Vec<u8>, Error>,
    (deadline, wait): (Deadline, Duration),
) -> Result<Joined, Error> {
    let ticket = agreement.bcast(granted)??;
    let deadline = deadline.after_waiting(wait);
    // The first exchange may have lost this rank's objection, so the rank raises it once more.
    let taken =
        own.and_then(|_| read(&ticket)).and_then(|ticket| connect::to_nodes(params, &ticket, candidacy, deadline));
    let outcome = taken.as_ref().map(|_| &[][..]).map_err(Clone::clone);
    let verdict = agreement.gather(outcome)?.map(|_| Vec::new());
    agreement.bcast(verdict)??;
    taken
}

fn read(ticket: &[u8]) -> Result<JobTicket, Error> {
    JobTicket::read(ticket)
        .map_err(|cause| Error::Manager(format!("the ticket that rank 0 passed on cannot be read: {cause}")))
}

/// What a rank tells about itself: its process id, where it listens, the NUMA domain to which it is
/// bound, and its host's name.
fn introduction(host: &str, domain: Option<u16>, deputy: Option<SocketAddr>) -> String {
    let deputy = deputy.map_or_else(|| NOWHERE.to_owned(), |address| address.to_string());
    let domain = domain.map_or_else(|| NOWHERE.to_owned(), |domain| domain.to_string());
    format!("{} {deputy} {domain} {host}", std::process::id())
}

/// What all ranks have told, by rank.
#[derive(Default, PartialEq, Eq, Debug)]
struct Introduced {
    hosts: Vec<String>,
    pids: Vec<u32>,
    deputies: Vec<Option<SocketAddr>>,
    domains: Vec<Option<u16>>,
}

fn introduced(values: Vec<Vec<u8>>) -> Result<Introduced, Error> {
    let unreadable = || Error::OutOfBand("the out-of-band gather brought what is no introduction of a rank".into());
    let mut all = Introduced::default();
    for value in values {
        let text = String::from_utf8(value).map_err(|_| unreadable())?;
        // A host's name may have spaces.
        let mut words = text.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(unreadable);
        let (pid, deputy, domain, host) = (word()?, word()?, word()?, word()?);
        all.pids.push(pid.parse().map_err(|_| unreadable())?);
        let address = (deputy != NOWHERE).then(|| deputy.parse().map_err(|_| unreadable()));
        all.deputies.push(address.transpose()?);
        let domain = (domain != NOWHERE).then(|| domain.parse().map_err(|_| unreadable()));
        all.domains.push(domain.transpose()?);
        all.hosts.push(host.to_owned());
    }
    Ok(all)
}

/// Where a rank listens that does not, and the domain of one that is bound to none.
const NOWHERE: &str = "-";
const ADDRESS_MAX: usize = "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295]:65535".len();
const _: () = assert!(HOST_MAX + "4294967295  65535 ".len() + ADDRESS_MAX <= CONTENT_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_introduced_as_they_told_and_nothing_else_is_an_introduction() {
        let listens: SocketAddr = "[fe80::1]:65535".parse().unwrap();
        let told = [("h 1", Some(65_535), Some(listens)), ("h2", None, None)];
        let values = told.map(|(host, domain, deputy)| introduction(host, domain, deputy).into_bytes());
        let expected = Introduced {
            hosts: vec!["h 1".into(), "h2".into()],
            pids: vec![std::process::id(); 2],
            deputies: vec![Some(listens), None],
            domains: vec![Some(65_535), None],
        };
        assert_eq!(introduced(values.to_vec()), Ok(expected));
        for wrong in ["", "7", "7 -", "7 - -", "x - - h", "-1 - - h", "7 h - h", "7 - 65536 h", "7 - h h", "7  - h"] {
            assert!(introduced(vec![wrong.as_bytes().to_vec()]).is_err(), "`{wrong}`");
        }
        assert!(introduced(vec![b"7 - - \xff".to_vec()]).is_err());
    }
}
