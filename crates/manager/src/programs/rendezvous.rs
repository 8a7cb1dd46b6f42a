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
            self.settle(&meeting, &program, || admit(&request, meeting.tenant.as_deref()));
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

    /// Tells all ranks what `decide` returns.
    fn settle(&self, key: &Meeting, program: &Arc<Program>, decide: impl FnOnce() -> Result<JobTicket, Refusal>) {
        let mut settling = Settling { rendezvous: self, key, program, outcome: None };
        settling.outcome = Some(decide());
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
                // From here on no rank can join or complete it, or leave it.
                state.admitting = true;
                let hosts: Vec<String> = state.present.values().map(|rank| rank.host.clone()).collect();
                // A rank that joins has the list of programs locked and waits for this state.
                drop(state);
                self.settle(key, program, || {
                    let others = lock(&self.programs).keys().any(|other| other.text == key.text && other != key);
                    let refusal = lock(&program.state).incomplete(&key.text, others);
                    refused(&refusal, &hosts);
                    Err(refusal)
                });
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

/// A program that is being decided about. When this goes, its ranks have their verdict: after a
/// panic they would wait for ever without one.
struct Settling<'a> {
    rendezvous: &'a Rendezvous,
    key: &'a Meeting,
    program: &'a Arc<Program>,
    outcome: Option<Result<JobTicket, Refusal>>,
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        let failed = || {
            let text = "the manager failed while it decided about the program, and its log says where: start the program again, and report that";
            Err(refuse(Resource::Rendezvous, None, text))
        };
        let outcome = self.outcome.take().unwrap_or_else(failed);
        self.rendezvous.remove(self.key, self.program);
        lock(&self.program.state).verdict = Some(Arc::new(outcome));
        self.program.settled.notify_all();
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
    if rank.size > MEETING_MAX {
        let text = format!(
            "{size} ranks cannot meet at the manager, where each waits on a connection of its own and one tenant has at most {MEETING_MAX}: \
             start the program under its MPI, or give the job an exchange of its own (`trib_params.oob`), so that rank 0 asks for all"
        );
        return Err(too_much(Resource::Connections, size, MEETING_MAX.into(), text));
    }
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

/// The largest number of ranks that can meet. A tenant has as many connections, and all ranks of a
/// program wait at once.
pub(crate) const MEETING_MAX: u32 = 5376;
const PATIENCE_MS: u64 = 60_000;
const PATIENCE_MAX_MS: u32 = 3_600_000;
const NAME_MAX: usize = 1024;
/// How often the connection of a waiting rank is looked at.
const GLANCE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn rank(rank: u32, size: u32) -> AttachRequest {
        AttachRequest {
            rendezvous: "here".into(),
            rank,
            size,
            host: format!("h{rank}"),
            pid: 0,
            deputy: None,
            domain: None,
            ask: QuotaAsk::default(),
            name: "prog".into(),
            user: "ann".into(),
            wait_ms: None,
            patience_ms: None,
        }
    }

    /// Attaches a rank to a program about which a request fails so.
    fn attach(
        rendezvous: &Rendezvous,
        rank: &AttachRequest,
        admit: impl FnOnce() -> Result<JobTicket, Refusal>,
    ) -> Verdict {
        rendezvous.attach((rank, None), |_, _| admit(), |_| {}, |_, _| {}, || false).unwrap()
    }

    #[test]
    fn a_rank_whose_patience_ends_holds_up_none_that_joins() {
        let rendezvous = Rendezvous::new(Time::default());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| attach(&rendezvous, &rank(0, 2), || panic!("the program is not complete")));
            let end = Instant::now() + LIMIT;
            while rendezvous.gathering() == 0 {
                assert!(Instant::now() < end);
                thread::yield_now();
            }
            // A rank that joins has the list, and waits for the state of its program.
            let programs = lock(&rendezvous.programs);
            let program = programs.values().next().unwrap().clone();
            lock(&program.state).end = Instant::now();
            while !program.state.try_lock().is_ok_and(|state| state.admitting) {
                assert!(Instant::now() < end, "the state is held while the list is waited for");
                thread::yield_now();
            }
            drop(programs);
            let verdict = waiting.join().unwrap();
            let refusal = verdict.as_ref().as_ref().unwrap_err();
            assert!(refusal.text.contains("missing: rank 1"), "{refusal}");
        });
    }

    #[test]
    fn after_a_panic_the_other_ranks_are_told_and_the_text_is_free() {
        let rendezvous = Arc::new(Rendezvous::new(Time::default()));
        let (sender, verdicts) = mpsc::channel();
        for number in [0, 1] {
            let (rendezvous, sender) = (rendezvous.clone(), sender.clone());
            thread::spawn(move || sender.send(attach(&rendezvous, &rank(number, 2), || panic!("a bug"))));
        }
        // The thread of the rank that came last has decided, and is gone.
        let told = verdicts.recv_timeout(LIMIT).expect("the other rank waits");
        assert!(told.as_ref().as_ref().unwrap_err().text.contains("start the program again"), "{told:?}");
        assert_eq!(rendezvous.gathering(), 0);
    }

    #[test]
    fn more_ranks_than_a_tenant_has_connections_are_refused() {
        let refusal = check(&rank(0, MEETING_MAX + 1)).unwrap_err();
        assert_eq!((refusal.asked, refusal.available), (5377, 5376));
        assert!(refusal.text.contains("trib_params.oob"), "{refusal}");
        assert_eq!(check(&rank(0, MEETING_MAX)), Ok(()));
    }

    const LIMIT: Duration = Duration::from_secs(20);
}
