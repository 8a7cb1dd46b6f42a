//! Connections whose handshake is under way.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Interest, Registry as Polled, Token};
use trib_control::Sparing;
use trib_keys::Session;
use trib_transport::tcp::{Admission, Caller, HandshakeError, Progress, StreamSocket};
use trib_wire::hello::{Hello, Status};

use super::add;
use crate::counters::Counters;

/// These connections, by number.
#[derive(Default)]
pub(super) struct Callers {
    all: Vec<Option<Caller>>,
    outcomes: Outcomes,
    /// What strangers make the node log.
    pub(super) log: Sparing,
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

impl Callers {
    /// Takes an accepted connection in and returns its number. Above the bound the connection is
    /// closed, and the child tries again.
    pub(super) fn insert(
        &mut self,
        mut socket: StreamSocket,
        peer: SocketAddr,
        polled: &Polled,
        first_token: usize,
    ) -> Option<usize> {
        let number = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        if number >= CALLERS_MAX {
            self.outcomes.crowded_out += 1;
            return None;
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        polled.register(&mut socket, Token(first_token + number), interest).ok()?;
        if number == self.all.len() {
            self.all.push(None);
        }
        self.all[number] = Some(Caller::new(socket, peer, Instant::now()));
        Some(number)
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
            Progress::Reading | Progress::Writing => None,
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

/// The largest number of handshakes at once. Each holds a descriptor and some 300 bytes, and up to
/// 4 KiB more while it says where the nodes of its tree are, for five seconds at most.
const CALLERS_MAX: usize = 4096;
