//! Connections whose handshake is under way. When there are too many, or when they say too much,
//! the oldest of the address with most of them gives way: an honest one has its proof in a moment.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mio::{Interest, Registry as Polled, Token};
use trib_control::Sparing;
use trib_keys::Session;
use trib_transport::tcp::{Admission, Caller, HandshakeError, Progress, StreamSocket};
use trib_wire::hello::{Hello, Status};

use super::add;
use crate::counters::Counters;

/// These connections, by number.
pub(super) struct Callers {
    all: Vec<Option<Caller>>,
    limits: Limits,
    outcomes: Outcomes,
    /// What strangers make the node log.
    pub(super) log: Sparing,
}

/// What all of them together may take.
#[derive(Clone, Copy)]
struct Limits {
    callers: usize,
    /// The bytes of what they say, besides [`SHORT`] of each.
    kept: usize,
}

#[derive(Default)]
struct Outcomes {
    opened: u64,
    bad_key: u64,
    version: u64,
    unknown_job: u64,
    refused: u64,
    malformed: u64,
    timed_out: u64,
    crowded_out: u64,
    lost: u64,
    broken: u64,
}

impl Default for Callers {
    fn default() -> Callers {
        Callers { all: Vec::new(), limits: LIMITS, outcomes: Outcomes::default(), log: Sparing::default() }
    }
}

impl Callers {
    /// Takes an accepted connection in and returns its number. Above the bound another one is
    /// closed, and that child tries again.
    pub(super) fn insert(
        &mut self,
        mut socket: StreamSocket,
        peer: SocketAddr,
        polled: &Polled,
        first_token: usize,
    ) -> Option<usize> {
        if self.all.iter().flatten().count() >= self.limits.callers {
            self.give_way(|_| 1);
        }
        let number = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        polled.register(&mut socket, Token(first_token + number), interest).ok()?;
        if number == self.all.len() {
            self.all.push(None);
        }
        self.all[number] = Some(Caller::new(socket, peer, Instant::now()));
        Some(number)
    }

    /// Closes the oldest connection of those that weigh anything, of the address whose connections
    /// weigh most together.
    fn give_way(&mut self, weight: impl Fn(&Caller) -> usize) {
        let mut weights: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for caller in self.all.iter().flatten() {
            *weights.entry(caller.peer().ip()).or_default() += weight(caller);
        }
        let Some((most, _)) = weights.into_iter().max_by_key(|(_, weight)| *weight) else { return };
        let of_most = |caller: &&Caller| caller.peer().ip() == most && weight(caller) > 0;
        let callers = self.all.iter().enumerate().filter_map(|(number, slot)| Some((number, slot.as_ref()?)));
        let oldest = callers.filter(|(_, caller)| of_most(caller)).min_by_key(|(_, caller)| caller.deadline());
        if let Some((number, _)) = oldest {
            self.all[number] = None;
            self.outcomes.crowded_out += 1;
        }
    }

    /// Goes on with one handshake. Returns the connection when it is open.
    pub(super) fn advance(
        &mut self,
        number: usize,
        admission: &mut impl Admission,
        polled: &Polled,
    ) -> Option<(Hello, SocketAddr, StreamSocket, Option<Session>)> {
        let slot = self.all.get_mut(number)?;
        match slot.as_mut()?.advance(admission) {
            Progress::Reading | Progress::Writing => {
                if slot.as_ref().is_some_and(|caller| long(caller) > 0)
                    && self.all.iter().flatten().map(long).sum::<usize>() > self.limits.kept
                {
                    self.give_way(long);
                }
                None
            }
            Progress::Failed(error) => {
                let peer = slot.take().map(|caller| caller.peer());
                if self.log.may(kind(&error), Instant::now()) {
                    tracing::info!(?peer, %error, "a connection was not opened");
                }
                self.outcomes.count(&error);
                None
            }
            Progress::Open(hello) => {
                let mut caller = slot.take()?;
                let peer = caller.peer();
                self.outcomes.opened += 1;
                // From now on a worker polls it.
                if let Err(error) = polled.deregister(caller.socket_mut()) {
                    tracing::error!(%error, "cannot hand a connection over");
                    return None;
                }
                let session = caller.take_session();
                Some((hello, peer, caller.into_socket(), session))
            }
        }
    }

    /// Closes a connection whose handling failed through an error of this program.
    pub(super) fn drop_broken(&mut self, number: usize) {
        if let Some(slot) = self.all.get_mut(number) {
            *slot = None;
        }
        self.outcomes.broken += 1;
    }

    /// How long until the next caller's patience ends, or there is something to be told of those
    /// that are gone.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        let deadline = self.all.iter().flatten().map(Caller::deadline).min();
        let patience = deadline.map(|deadline| deadline.saturating_duration_since(now));
        patience.into_iter().chain(self.log.patience(now)).min()
    }

    /// Closes connections that are too slow.
    pub(super) fn give_up(&mut self, now: Instant) {
        self.log.tell(now);
        for slot in &mut self.all {
            if slot.as_ref().is_some_and(|caller| caller.deadline() <= now) {
                *slot = None;
                self.outcomes.timed_out += 1;
            }
        }
    }

    pub(super) fn add_to(&self, counters: &mut Counters) {
        let o = &self.outcomes;
        for (name, count) in [
            ("handshakes_opened", o.opened),
            ("handshakes_bad_key", o.bad_key),
            ("handshakes_version", o.version),
            ("handshakes_unknown_job", o.unknown_job),
            ("handshakes_refused", o.refused),
            ("handshakes_malformed", o.malformed),
            ("handshakes_timed_out", o.timed_out),
            ("handshakes_crowded_out", o.crowded_out),
            ("handshakes_lost", o.lost),
            ("handshakes_broken", o.broken),
        ] {
            add(counters, name, count);
        }
    }
}

impl Outcomes {
    fn count(&mut self, error: &HandshakeError) {
        match error {
            HandshakeError::BadKey => self.bad_key += 1,
            HandshakeError::Version { .. } => self.version += 1,
            HandshakeError::Refused(Status::UnknownJob | Status::UnknownNode) => self.unknown_job += 1,
            HandshakeError::Refused(_) | HandshakeError::Moved(_) => self.refused += 1,
            HandshakeError::Malformed(_) => self.malformed += 1,
            HandshakeError::TimedOut => self.timed_out += 1,
            HandshakeError::Io(_) | HandshakeError::Closed => self.lost += 1,
        }
    }
}

/// The kind of a failure, for the log.
fn kind(error: &HandshakeError) -> &'static str {
    match error {
        HandshakeError::BadKey => "key",
        HandshakeError::Version { .. } => "version",
        HandshakeError::Refused(_) => "refused",
        HandshakeError::Moved(_) => "moved",
        HandshakeError::Malformed(_) => "malformed",
        HandshakeError::TimedOut => "too slow",
        HandshakeError::Io(_) | HandshakeError::Closed => "closed",
    }
}

/// What is kept of a caller beyond [`SHORT`]: it is saying, or has said, that very many nodes of
/// its tree have moved.
fn long(caller: &Caller) -> usize {
    caller.kept().saturating_sub(SHORT)
}

/// Each handshake holds a descriptor and some 300 bytes, and up to [`SHORT`] more while it says
/// where the nodes of its tree are, for five seconds at most. Where all nodes of the largest tree
/// have moved, some 130 calls of it may be answered at once.
const LIMITS: Limits = Limits { callers: 4096, kept: 64 << 20 };
/// This is enough where a thousand nodes have moved.
const SHORT: usize = 8 << 10;

#[cfg(test)]
mod tests;
