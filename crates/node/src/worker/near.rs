//! The links whose far ends share memory with this process, and those over UCX.
//!
//! While the worker is awake it looks at the rings of the former, which costs no system call.
//! Before it sleeps it tells the far ends, which then ring a bell that poll knows. The links over
//! UCX have one bell together, and UCX works when it is driven.

use std::io;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry};
use trib_transport::edge::Glance;
use trib_transport::ucx::{UcxCounters, UcxWorker};

use super::datagrams::take;
use super::hosted::Slot;
use super::{UCX, Worker, guard};
use crate::job::LinkNumber;

/// These links.
#[derive(Default)]
pub(super) struct Near {
    all: Vec<(Slot, LinkNumber, Glance)>,
    /// What links over UCX go through, once one of this worker's jobs has any.
    ucx: Option<UcxWorker>,
}

impl Near {
    pub(super) fn add(&mut self, slot: Slot, link: LinkNumber, glance: Glance) {
        self.all.push((slot, link, glance));
    }

    /// The link is closed: what comes over it is nobody's.
    pub(super) fn forget(&mut self, slot: Slot, link: LinkNumber) {
        self.all.retain(|(other, its, _)| (*other, *its) != (slot, link));
    }

    /// The job of this slot is gone, with all its links.
    pub(super) fn forget_job(&mut self, slot: Slot) {
        self.all.retain(|(other, ..)| *other != slot);
    }

    /// How many links there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Links over UCX go through `ucx` from now on.
    pub(super) fn use_ucx(&mut self, ucx: UcxWorker, polled: &Registry) -> io::Result<()> {
        polled.register(&mut SourceFd(&ucx.bell()), UCX, Interest::READABLE)?;
        self.ucx = Some(ucx);
        Ok(())
    }

    /// What has gone through UCX.
    pub(super) fn ucx_counters(&self) -> Option<UcxCounters> {
        self.ucx.as_ref().map(UcxWorker::counters)
    }

    /// Whether anything has come over any of these links.
    pub(super) fn has_come(&self) -> bool {
        if let Some(ucx) = &self.ucx {
            ucx.drive();
        }
        self.all.iter().any(|(.., glance)| glance.has_come())
    }

    /// Tells all far ends that this thread is about to sleep. Returns false if something has come;
    /// then they need not know.
    pub(super) fn fall_asleep(&self) -> bool {
        if self.ucx.as_ref().is_some_and(|ucx| !ucx.fall_asleep()) {
            return false;
        }
        for (at, (.., glance)) in self.all.iter().enumerate() {
            let sleeps = match glance {
                Glance::Memory(glance) => glance.fall_asleep(),
                Glance::Ucx(glance) => !glance.has_come(),
            };
            if !sleeps {
                self.all[..at].iter().for_each(|(.., glance)| glance.wake_up());
                return false;
            }
        }
        true
    }

    /// Nobody lets UCX work after this. What was written over it is sent before, within this time.
    pub(super) fn see_off(&self, span: Duration) {
        if let Some(ucx) = &self.ucx {
            ucx.see_off(span);
        }
    }

    /// This thread looks for itself.
    pub(super) fn wake_up(&self) {
        self.all.iter().for_each(|(.., glance)| glance.wake_up());
    }
}

impl Worker {
    /// Takes what has come over memory. Returns whether anything had.
    pub(super) fn on_near(&mut self) -> bool {
        let (mut found, mut at) = (false, 0);
        // A link that closes meanwhile lets another one take its position. That one's turn comes
        // with the next look.
        while let Some((slot, link, glance)) = self.near.all.get(at) {
            at += 1;
            if !glance.has_come() {
                continue;
            }
            let (slot, link, glance) = (*slot, *link, glance.clone());
            found = true;
            self.handle(slot, |worker| {
                worker.take_records(slot, link);
                if glance.has_room()
                    && let Some(job) = worker.hosted.get_mut(slot)
                {
                    job.io.links.unblock(link);
                }
            });
            if glance.has_bytes() {
                self.on_readable(slot, link, false);
            }
        }
        found
    }

    fn take_records(&mut self, slot: Slot, link: LinkNumber) {
        let now = self.now();
        let Some(job) = self.hosted.get_mut(slot) else { return };
        let Some(mut inbox) = job.io.links.take_inbox(link) else { return };
        for _ in 0..TURN {
            let Some(datagram) = inbox.next(&mut self.datagrams.rejected) else { break };
            let socket = &mut self.datagrams.socket;
            if let Err(why) = guard(|| take(job, link, &datagram, now, socket, &mut self.tally)) {
                job.io.broken = Some(why);
                break;
            }
        }
        job.io.links.put_inbox(link, inbox);
    }
}

/// The number of datagrams that are taken from one link before it is the next one's turn.
const TURN: usize = 64;
