//! A job goes on elsewhere, or comes here: its tree has another placement.

use std::thread;
use std::time::{Duration, Instant};

use trib_messages::job::NodeGrant;
use trib_transport::tcp::say;
use trib_wire::Placement;
use trib_wire::auth::FrameKey;

use super::hosted::Slot;
use super::{Key, Worker, guard};
use crate::accept::Request;
use crate::job::{Buffers, Output};
use crate::news::News;

impl Worker {
    /// A logical node is here from now on.
    pub(super) fn host(
        &mut self,
        grant: &NodeGrant,
        placement: &Placement,
        reserved: Option<Buffers>,
        results: &FrameKey,
    ) {
        match reserved.or_else(|| Buffers::for_grant(grant)) {
            Some(buffers) => self.install(grant, placement, (buffers, results)),
            None => {
                let (key, why) =
                    ((grant.job, grant.node), "there is no memory for it here, though the job was to have some");
                tracing::error!(job = key.0.0, node = grant.name, lane = grant.lane, why, "the job cannot be hosted");
                // The thread that receives the news ends only with the process.
                let _ = self.news.send(News::Faulty { job: key.0, fault: None, why: why.to_owned() });
                (self.tell)(Request::Gone(key));
            }
        }
    }

    /// The core of the epoch before tells its neighbours where the tree is, and ends.
    pub(super) fn leave(&mut self, key: Key, placement: &Placement) {
        if let Some(slot) = self.hosted.find(key) {
            self.send_away(slot, placement);
        }
    }

    fn send_away(&mut self, slot: Slot, placement: &Placement) {
        let Some(mut job) = self.take_out(slot) else { return };
        self.past += &job.io.latencies;
        if !job.io.replayed.is_none() {
            let (tree, placement) = ((job.io.identity.job, job.io.lane), job.io.placement.clone());
            (self.tell)(Request::Replayed { tree, placement, replayed: job.io.replayed });
        }
        let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        if let Err(why) = guard(|| job.core.move_to(placement, &mut out)) {
            tracing::error!(
                job = job.io.identity.job.0,
                node = job.io.name,
                why,
                "neighbours learn it by the end of links"
            );
        }
        self.part(&mut job);
    }

    /// Says the last frames over all links of a job that has left the table, and closes them.
    pub(super) fn part(&mut self, job: &mut crate::job::Job) {
        let mut partings = job.io.links.part();
        self.tally.links_closed += partings.len() as u64;
        for parting in &mut partings {
            if let Err(error) = self.poll.registry().deregister(&mut parting.socket) {
                tracing::debug!(%error, "a connection that closes was not polled");
            }
        }
        self.farewells.retain(|farewell| !farewell.is_finished());
        self.farewells.extend(say(partings, FAREWELL));
    }

    /// The process is about to leave: a logical node below which no rank is left need not go on
    /// elsewhere, and ends.
    pub(super) fn see_out(&mut self) {
        for slot in self.hosted.slots() {
            if self.hosted.get_mut(slot).is_some_and(|job| job.is_deserted())
                && let Some(mut job) = self.remove(slot)
            {
                self.part(&mut job);
            }
        }
        if self.hosted.is_empty() {
            self.leaving.clear();
        }
    }

    /// The thread is about to end: last frames get a moment, for the process may end with it.
    pub(super) fn see_off(&mut self) {
        let end = Instant::now() + LAST_WORDS;
        while self.farewells.iter().any(|farewell| !farewell.is_finished()) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        self.near.see_off(end.saturating_duration_since(Instant::now()));
    }
}

/// How long the far ends may take to read and to close.
const FAREWELL: Duration = Duration::from_secs(10);
/// The same when the process is about to end.
const LAST_WORDS: Duration = Duration::from_millis(500);
