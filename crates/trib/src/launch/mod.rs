//! Starting the ranks of one program here, and ending all of them when one fails.
//!
//! - `environment`: what a rank finds in its environment
//! - `rank`: one started rank and its process group
//! - `label`: the rank in front of every line of output
//!
//! One thread decides everything. It sleeps until a signal arrives: at SIGCHLD it looks which ranks
//! have ended, and others it passes on.

mod environment;
mod label;
mod rank;

use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{debug, error, warn};
use trib_control::{Channel, ManagerUrl};
use trib_lab::process::running_groups;
use trib_messages::hello::Role;
use trib_messages::reply::Reply;
use trib_messages::request::{Account, Request};

use crate::failure::Failure;
use environment::Environment;
use label::Labels;
use rank::{End, Rank};

/// The most ranks of one machine: a manager takes no more connections from one address, and each
/// rank has one while it joins.
pub const RANKS_MAX: i64 = 2048;

/// A program to be run.
#[derive(Debug)]
pub struct Job {
    /// The number of ranks.
    pub ranks: u32,
    /// The names that the ranks report as their hosts. If there are none, they report this
    /// machine's.
    pub hosts: Vec<String>,
    /// Whether every line of output gets its rank in front.
    pub label: bool,
    /// The time from SIGTERM to SIGKILL.
    pub grace: Duration,
    /// What the ranks get as `TRIB_WAIT_MS`; `None` to leave it as it is.
    pub wait: Option<Duration>,
    /// What the ranks get as `TRIB_MANAGER`; `None` to leave it unset.
    pub manager: Option<String>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
}

/// How the job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every rank exited with 0.
    Succeeded,
    /// The exit code of the first rank that did not exit with 0, or 128 + the signal that ended
    /// that rank or us.
    Failed(u8),
}

impl Job {
    /// Starts the ranks and waits until all have ended.
    pub fn run(&self) -> Result<Verdict, Failure> {
        // Signals are caught before the first rank starts, so that the end of none is missed.
        let signals = listen_for_signals()?;
        let environment = Environment::new(self)?;
        let mut labels = Labels::new();
        let ranks = self.start(&environment, &mut labels)?;
        let verdict = Verdict::Succeeded;
        let mut running =
            Running { ranks, signals, grace: self.grace, verdict, account: None, deadline: None, has_killed: false };
        let have_all_ended = running.wait_for_all();
        let since = Instant::now();
        // What runs on may print for ever.
        labels.wait(LABEL_LIMIT, || running.is_interrupted() || !have_all_ended && since.elapsed() > LABEL_LIMIT);
        if let (Some(manager), Some(account)) = (&self.manager, running.account) {
            tell(manager, environment.rendezvous(), account);
        }
        Ok(running.verdict)
    }

    /// Starts all ranks. If one cannot be started, dropping the others kills them.
    fn start(&self, environment: &Environment<'_>, labels: &mut Labels) -> Result<Vec<Rank>, Failure> {
        (0..self.ranks)
            .map(|rank| {
                let mut command = environment.command(rank, &self.program);
                Rank::start(rank, &mut command, self.label.then_some(&mut *labels)).map_err(|error| {
                    let program = self.program[0].to_string_lossy();
                    Failure::Environment(format!("cannot start rank {rank}, `{program}`: {error}"))
                })
            })
            .collect()
    }
}

/// The ranks while some of them run.
struct Running {
    ranks: Vec<Rank>,
    signals: Receiver<i32>,
    grace: Duration,
    verdict: Verdict,
    /// What the manager is told about the end, unless every rank exited with 0.
    account: Option<Account>,
    /// When the ranks that still run are killed; `None` while none has failed.
    deadline: Option<Instant>,
    /// Whether everything that was left got SIGKILL.
    has_killed: bool,
}

impl Running {
    /// Waits for the end of all ranks and, of a job that has failed, of what they have started.
    /// Returns false if something of that cannot be ended.
    fn wait_for_all(&mut self) -> bool {
        loop {
            self.note_ends();
            let have_ended = self.ranks.iter().all(Rank::has_ended);
            // What a rank of a job that ends well has left behind is meant to stay.
            if have_ended && (self.deadline.is_none() || self.left().is_empty()) {
                return true;
            }
            let is_all_done = have_ended && self.has_killed;
            match self.next_signal(have_ended) {
                Ok(SIGCHLD) => {}
                Ok(signal) if !is_all_done => self.pass_on(signal),
                Err(_) if self.deadline.is_some_and(|deadline| Instant::now() < deadline) => {}
                Err(_) if !is_all_done => self.kill("the grace period is over"),
                _ => {
                    let left = self.left();
                    if !left.is_empty() {
                        let ranks = left.join(", ");
                        warn!(
                            "what ranks {ranks} have started runs on: this user may not end it, or the kernel does not"
                        );
                    }
                    return left.is_empty();
                }
            }
        }
    }

    /// Whether a signal has come that does not tell of a rank's end.
    fn is_interrupted(&self) -> bool {
        self.signals.try_iter().any(|signal| signal != SIGCHLD)
    }

    /// The next signal. No signal tells of the end of what ranks have started, so once these
    /// `have_ended` it waits for a moment only.
    fn next_signal(&self, have_ended: bool) -> Result<i32, RecvTimeoutError> {
        match self.deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.signals.recv_timeout(if have_ended { left.min(GLANCE) } else { left })
            }
            None => self.signals.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// The ranks that run, or of which something runs that they started.
    fn left(&self) -> Vec<String> {
        let groups = running_groups();
        let left = self.ranks.iter().filter(|rank| !rank.has_ended() || rank.is_among(&groups));
        left.map(|rank| rank.number().to_string()).collect()
    }

    fn note_ends(&mut self) {
        let ends: Vec<(u32, End)> =
            self.ranks.iter_mut().filter_map(|rank| Some((rank.number(), rank.end()?))).collect();
        for (rank, end) in ends {
            if let Some(code) = end.failure() {
                self.note_failure(rank, end, code);
            }
        }
    }

    /// Notes a failure. The first one is the job's; those after it are mostly its consequences.
    fn note_failure(&mut self, rank: u32, end: End, code: u8) {
        if self.verdict != Verdict::Succeeded {
            return;
        }
        self.verdict = Verdict::Failed(code);
        self.account = Some(Account::Failed(format!("rank {rank} {end}")));
        let left = self.ranks.iter().filter(|rank| !rank.has_ended()).count();
        error!("rank {rank} {end}; ending the {left} ranks that still run");
        self.end_with(SIGTERM);
    }

    /// Passes a signal on. A second signal, of any kind, means that the user has waited long
    /// enough.
    fn pass_on(&mut self, signal: i32) {
        if self.deadline.is_some() {
            return self.kill("interrupted again");
        }
        if self.verdict == Verdict::Succeeded {
            self.verdict = Verdict::Failed(u8::try_from(128 + signal).unwrap_or(u8::MAX));
            self.account = Some(Account::Interrupted(rank::name_of(signal)));
        }
        self.end_with(signal);
    }

    fn end_with(&mut self, signal: i32) {
        self.deadline = Some(Instant::now() + self.grace);
        self.ranks.iter().for_each(|rank| rank.signal(signal));
    }

    fn kill(&mut self, reason: &str) {
        warn!("{reason}; killing what is left of ranks {}", self.left().join(", "));
        self.ranks.iter().for_each(Rank::kill);
        self.has_killed = true;
        self.deadline = Some(Instant::now() + KILL_LIMIT);
    }
}

/// Tells the manager how the program ended, for people who ask it why. The manager knows nothing of
/// a program that did not use the fabric, and it may be away; neither is a failure of this run.
fn tell(manager: &str, rendezvous: &str, account: Account) {
    let request = Request::Account { rendezvous: rendezvous.to_owned(), account };
    let told = manager
        .parse::<ManagerUrl>()
        .and_then(|url| Channel::connect(&url, Role::User, ANSWER)?.ask::<_, Reply>(&request, ANSWER));
    match told {
        Ok(Reply::Noted { job }) => debug!(job = job.0, "the manager knows how the job ended"),
        Ok(other) => debug!(?other, "the manager knows no job of this program"),
        Err(error) => debug!(%error, "the manager is not told how the program ended"),
    }
}

/// Receives signals as messages. The thread ends with the process.
fn listen_for_signals() -> Result<Receiver<i32>, Failure> {
    let heeded = trib_lab::heeded(&[SIGHUP, SIGINT, SIGTERM]);
    let mut signals = Signals::new(heeded.iter().chain(&[SIGCHLD])).map_err(Failure::environment)?;
    let (sender, receiver): (Sender<i32>, _) = channel();
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// How long the manager may take to accept the news of a job's end.
const ANSWER: Duration = Duration::from_secs(1);
/// How often the launcher looks whether something is left of ranks that have ended.
const GLANCE: Duration = Duration::from_millis(20);
/// How long the kernel may take after SIGKILL before we report it again.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// For how long no line of output may come before it counts as all. A process that a rank left
/// behind may keep the pipe open for ever.
const LABEL_LIMIT: Duration = Duration::from_secs(1);
