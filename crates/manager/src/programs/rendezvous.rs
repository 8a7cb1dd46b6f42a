//! Ranks of one program that find each other at the manager.
//!
//! ```text
//!   Gathering --last rank--> Admitting --ticket or refusal--> Settled (all ranks get the same)
//!       |                                                        ^
//!       `-- contradiction, or patience over: refusal ------------'
//! ```
//! Each rank waits on its own thread. The thread whose rank completes the program admits the job,
//! with no lock held.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use trib_control::clock::unix_ms;
use trib_messages::job::JobTicket;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::{AttachRequest, JobRequest, QuotaAsk};
use trib_wire::ids::JobId;
use trib_wire::ranks::RankList;

use crate::lock::lock;
use crate::planning::quota::check_ranks;
use crate::refuse::{lasting, refuse, too_much};
use crate::time::Time;

/// What a program's ranks are told. The job ends with rank 0's connection.
pub(crate) type Verdict = Arc<Result<JobTicket, Refusal>>;

/// Where ranks of one program meet: under the same text, and in the name of one tenant. Who has
/// another tenant's certificate meets nobody there, whatever text it guesses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Meeting {
    pub tenant: Option<String>,
    pub text: String,
}

/// All programs that are gathering.
pub(crate) struct Rendezvous {
    time: Time,
    programs: Mutex<BTreeMap<Meeting, Arc<Program>>>,
}

struct Program {
    state: Mutex<State>,
    settled: Condvar,
}

struct State {
    size: u32,
    present: BTreeMap<u32, Rank>,
    /// When the first of them came, milliseconds since 1970-01-01 UTC.
    began_ms: u64,
    end: Instant,
    admitting: bool,
    verdict: Option<Verdict>,
}

struct Rank {
    host: String,
    pid: u32,
    deputy: Option<SocketAddr>,
    domain: Option<u16>,
    ask: QuotaAsk,
    name: String,
    user: String,
    wait_ms: Option<u32>,
    patience_ms: Option<u32>,
}

impl Rendezvous {
    /// Nobody is there yet.
    pub(crate) fn new(time: Time) -> Rendezvous {
        Rendezvous { time, programs: Mutex::default() }
    }

    /// How many programs gather.
    pub(crate) fn gathering(&self) -> usize {
        lock(&self.programs).len()
    }

    /// Waits until all ranks are here and `admit` has decided, or until it is clear that they will
    /// not all come.
    ///
    /// `tenant` is that of this rank's certificate, and of all ranks that it meets. `is_gone` tells
    /// whether this rank's connection has ended. Then the rank no longer counts as present, and the
    /// answer is `None`. `abandon` ends a job if rank 0 was gone before it received the ticket.
    /// `refused` is told once of what was refused before there was a request to admit, with the
    /// hosts of the ranks that it is about.
    pub(crate) fn attach(
        &self,
        (rank, tenant): (&AttachRequest, Option<String>),
        admit: impl FnOnce(&JobRequest, Option<&str>) -> Result<JobTicket, Refusal>,
        abandon: impl FnOnce(JobId),
        refused: impl Fn(&Refusal, &[String]),
        is_gone: impl Fn() -> bool,
    ) -> Option<Verdict> {
        if let Err(refusal) = check(rank) {
            refused(&refusal, std::slice::from_ref(&rank.host));
            return Some(Arc::new(Err(refusal)));
        }
        let (meeting, number) = (Meeting { tenant, text: rank.rendezvous.clone() }, rank.rank);
        let program = match self.join(rank, &meeting) {
            Ok(program) => program,
            Err(refusal) => {
                refused(&refusal, std::slice::from_ref(&rank.host));
                return Some(Arc::new(Err(refusal)));
            }
        };
        if let Some(request) = program.complete() {
            self.settle(&meeting, &program, admit(&request, meeting.tenant.as_deref()));
        }
        let verdict = self.wait(&meeting, &program, number, &is_gone, &refused);
        if let (Some(verdict), 0, true) = (&verdict, number, is_gone()) {
            if let Ok(ticket) = &**verdict {
                abandon(ticket.job);
            }
            return None;
        }
        verdict
    }

    /// Takes the lock once.
    pub(crate) fn touch(&self) {
        drop(lock(&self.programs));
    }

    fn join(&self, rank: &AttachRequest, meeting: &Meeting) -> Result<Arc<Program>, Refusal> {
        let mut programs = lock(&self.programs);
        let patience =
            Duration::from_millis(rank.patience_ms.map_or(PATIENCE_MS, |ms| u64::from(ms.min(PATIENCE_MAX_MS))));
        let end = self.time.now() + patience;
        let program = programs.entry(meeting.clone()).or_insert_with(|| {
            let (size, present, began_ms) = (rank.size, BTreeMap::new(), unix_ms());
            let state = State { size, present, began_ms, end, admitting: false, verdict: None };
            Arc::new(Program { state: Mutex::new(state), settled: Condvar::new() })
        });
        let program = program.clone();
        let mut state = lock(&program.state);
        if let Some(refusal) = state.contradiction(rank) {
            // Ranks of a program that is being admitted are not to blame for one that came too
            // late.
            if !state.admitting {
                state.verdict = Some(Arc::new(Err(refusal.clone())));
                program.settled.notify_all();
                programs.remove(meeting);
            }
            return Err(refusal);
        }
        let AttachRequest { rank: number, host, pid, deputy, domain, ask, name, user, wait_ms, patience_ms, .. } =
            rank.clone();
        state.present.insert(number, Rank { host, pid, deputy, domain, ask, name, user, wait_ms, patience_ms });
        state.end = state.end.max(end);
        drop(state);
        Ok(program)
    }

    fn settle(&self, key: &Meeting, program: &Arc<Program>, outcome: Result<JobTicket, Refusal>) {
        self.remove(key, program);
        lock(&program.state).verdict = Some(Arc::new(outcome));
        program.settled.notify_all();
    }

    fn wait(
        &self,
        key: &Meeting,
        program: &Arc<Program>,
        number: u32,
        is_gone: &impl Fn() -> bool,
        refused: &impl Fn(&Refusal, &[String]),
    ) -> Option<Verdict> {
        loop {
            let state = lock(&program.state);
            let turn = if state.admitting { GLANCE } else { GLANCE.min(self.time.left(state.end)) };
            let mut state = match state.verdict {
                Some(_) => state,
                None => self.time.wait(&program.settled, (&program.state, state), turn),
            };
            if let Some(verdict) = &state.verdict {
                return Some(verdict.clone());
            }
            if state.admitting {
                continue;
            }
            if self.time.now() >= state.end {
                let others = lock(&self.programs).keys().any(|other| other.text == key.text && other != key);
                let refusal = state.incomplete(&key.text, others);
                let hosts: Vec<String> = state.present.values().map(|rank| rank.host.clone()).collect();
                // From here on no rank can join or complete it.
                state.admitting = true;
                drop(state);
                refused(&refusal, &hosts);
                self.settle(key, program, Err(refusal));
            } else if is_gone() {
                state.present.remove(&number);
                let empty = state.present.is_empty();
                state.admitting = empty;
                drop(state);
                if empty {
                    self.remove(key, program);
                }
                return None;
            }
        }
    }

    fn remove(&self, key: &Meeting, program: &Arc<Program>) {
        let mut programs = lock(&self.programs);
        if programs.get(key).is_some_and(|other| Arc::ptr_eq(other, program)) {
            programs.remove(key);
        }
    }
}

impl Program {
    // The whole program's request, for the one rank that finds the program complete.
    fn complete(&self) -> Option<JobRequest> {
        let mut state = lock(&self.state);
        if state.admitting || state.verdict.is_some() || state.present.len() < state.size as usize {
            return None;
        }
        state.admitting = true;
        let hosts = state.present.values().map(|rank| rank.host.clone()).collect();
        let pids = state.present.values().map(|rank| rank.pid).collect();
        let deputies = state.present.values().map(|rank| rank.deputy).collect();
        let domains = state.present.values().map(|rank| rank.domain).collect();
        let first = state.present.get(&0)?;
        let (ask, name, user) = (first.ask.clone(), first.name.clone(), first.user.clone());
        let Rank { wait_ms, patience_ms, .. } = *first;
        Some(JobRequest { hosts, pids, deputies, domains, ask, name, user, wait_ms, patience_ms })
    }
}

impl State {
    fn contradiction(&self, rank: &AttachRequest) -> Option<Refusal> {
        let AttachRequest { rendezvous, rank: number, size, .. } = rank;
        let text = if self.admitting {
            format!(
                "rank {number} came to rendezvous `{rendezvous}` when it was over: use a new rendezvous for every program"
            )
        } else if self.size != *size {
            format!(
                "the ranks at rendezvous `{rendezvous}` disagree: rank {number} says there are {size}, others say {}; start all with the same size, and every program with its own rendezvous",
                self.size
            )
        } else if self.present.contains_key(number) {
            format!(
                "two processes at rendezvous `{rendezvous}` say they are rank {number}: start every program with its own rendezvous"
            )
        } else {
            return None;
        };
        let (asked, available) = (u64::from(*size), u64::from(self.size));
        let refusal = refuse(Resource::Rendezvous, Some(&format!("rank {number}")), text);
        Some(lasting(Refusal { asked, available, ..refusal }, self.began_ms))
    }

    fn incomplete(&self, key: &str, others_wait: bool) -> Refusal {
        let missing = RankList::from_ranks((0..self.size).filter(|rank| !self.present.contains_key(rank)));
        let others = if others_wait {
            "; others wait under that text with the certificate of another tenant: give all ranks of a program the same credentials"
        } else {
            ""
        };
        let text = format!(
            "only {} of {} ranks came to rendezvous `{key}` in time; missing: rank {missing}{others}",
            self.present.len(),
            self.size
        );
        let (asked, available) = (u64::from(self.size), self.present.len() as u64);
        let refusal = refuse(Resource::Rendezvous, Some(&format!("rank {missing}")), text);
        lasting(Refusal { asked, available, ..refusal }, self.began_ms)
    }
}

fn check(rank: &AttachRequest) -> Result<(), Refusal> {
    let (number, size) = (u64::from(rank.rank), u64::from(rank.size));
    check_ranks(size)?;
    if number >= size {
        let text = format!("rank {number} of {size} ranks cannot be: ranks count from 0");
        return Err(too_much(Resource::Request, number, size.saturating_sub(1), text));
    }
    if rank.rendezvous.is_empty() || rank.rendezvous.len() > NAME_MAX {
        let text = format!("a rendezvous has 1 to {NAME_MAX} bytes: set TRIB_RENDEZVOUS to the same text on all ranks");
        return Err(too_much(Resource::Request, rank.rendezvous.len() as u64, NAME_MAX as u64, text));
    }
    Ok(())
}

const PATIENCE_MS: u64 = 60_000;
const PATIENCE_MAX_MS: u32 = 3_600_000;
const NAME_MAX: usize = 1024;
/// How often the connection of a waiting rank is looked at.
const GLANCE: Duration = Duration::from_millis(250);
