//! The stream connections of a worker's jobs: they are opened, read, written and closed here.

use mio::{Interest, Token};
use trib_proto::Nanos;
use trib_proto::node::Link;
use trib_transport::edge::Glance;
use trib_transport::tcp::{HandshakeError, ReadEnd, StreamError};
use trib_wire::{ChildIndex, Epoch, Header, Kind};

use super::hosted::Slot;
use super::{Key, LINKS, Worker, guard};
use crate::accept::Request;
use crate::job::{Identity, LinkNumber, Opened, Output, PARENT, Sink, core_link};
use crate::news::News;

/// The driver's number for a link of the core.
pub(super) fn number_of(link: Link) -> LinkNumber {
    match link {
        Link::Parent => PARENT,
        Link::Child(child) => usize::from(child.0),
    }
}

impl Worker {
    pub(super) fn on_link_up(&mut self, node: (Key, Epoch), link: LinkNumber, opened: Opened) {
        if let Some(slot) = self.find_of(node) {
            self.handle(slot, |worker| worker.open(slot, link, opened));
        }
    }

    fn open(&mut self, slot: Slot, link: LinkNumber, mut opened: Opened) {
        let Some(job) = self.hosted.get_mut(slot) else { return };
        if job.io.links.is_unheard(link) {
            // The far end has given that connection up before it could use it, and has come again.
            self.lose(slot, link);
        } else if !job.io.links.is_expected(link) {
            return;
        }
        let now = self.now();
        let token = Token((slot + 1) * LINKS + link);
        // Both interests stay for good: an edge of writability comes only after a write that found
        // the socket full.
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut opened.socket, token, interest) {
            tracing::error!(%error, "cannot poll a connection");
            return self.close(slot, link);
        }
        let Some(job) = self.hosted.get_mut(slot) else { return };
        self.tally.links_opened += 1;
        if let Some(glance) = opened.socket.glance() {
            match glance {
                Glance::Memory(_) => self.tally.links_near += 1,
                Glance::Ucx(_) => self.tally.links_ucx += 1,
            }
            self.near.add(slot, link, glance);
        }
        job.io.open(link, opened);
        if link != PARENT {
            job.lifetime.child_came(now);
        }
        let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        job.core.on_link_up(now, core_link(link), &mut out);
        self.next_timer = self.next_timer.min(job.core.next_deadline());
    }

    /// The logical node, if its core is of this epoch.
    fn find_of(&mut self, (key, epoch): (Key, Epoch)) -> Option<Slot> {
        let slot = self.hosted.find(key)?;
        (self.hosted.get_mut(slot)?.io.identity.epoch == epoch).then_some(slot)
    }

    pub(super) fn on_parent_failed(&mut self, node: (Key, Epoch), error: HandshakeError) {
        let Some(slot) = self.find_of(node) else { return };
        let (key, _) = node;
        if let Some(job) = self.hosted.get_mut(slot) {
            let (name, lane) = (&job.io.name, job.io.lane);
            tracing::error!(job = key.0.0, node = name, lane, %error, "cannot open the stream to the parent");
        }
        self.handle(slot, |worker| worker.close(slot, PARENT));
    }

    pub(super) fn on_child_gone(&mut self, node: (Key, Epoch), child: ChildIndex) {
        let (Some(slot), now) = (self.find_of(node), self.now()) else { return };
        self.handle(slot, |worker| {
            let Some(job) = worker.hosted.get_mut(slot) else { return };
            let mut out = Output { io: &mut job.io, udp: &mut worker.datagrams.socket, tally: &mut worker.tally };
            job.core.on_gone(now, child, &mut out);
        });
    }

    pub(super) fn on_writable(&mut self, slot: Slot, link: LinkNumber) {
        self.handle(slot, |worker| {
            if let Some(job) = worker.hosted.get_mut(slot) {
                job.io.links.unblock(link);
            }
        });
    }

    pub(super) fn on_readable(&mut self, slot: Slot, link: LinkNumber, closed: bool) {
        self.handle(slot, |worker| worker.read(slot, link, closed));
    }

    fn read(&mut self, slot: Slot, link: LinkNumber, closed: bool) {
        let now = Nanos(self.clock.read());
        let is_shared = self.hosted.is_shared();
        let Some(job) = self.hosted.get_mut(slot) else { return };
        let number = job.io.identity.job;
        if closed {
            job.io.links.expect_end(link);
        }
        let Some(mut connection) = job.io.links.take(link) else { return };
        if closed {
            connection.reader.expect_end();
            connection.socket.expect_end();
        }
        let allowance = if is_shared { self.shares.work.left(number) } else { u64::MAX };
        if allowance == 0 {
            job.io.links.put(link, connection);
            return self.unfinished.add(slot, link);
        }
        let before = connection.reader.bytes();
        let out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        let mut sink = Sink { core: &mut job.core, out, link: core_link(link), number: link, now, allowance };
        let result = guard(|| connection.reader.read(&mut connection.socket, &mut sink, TURN));
        let weight = allowance - sink.allowance;
        if is_shared {
            self.shares.work.spend(number, weight);
        }
        self.tally.stream_bytes_in += connection.reader.bytes() - before;
        if let (0, 1..) = (before, connection.reader.bytes()) {
            let Identity { job, node, epoch, .. } = job.io.identity;
            (self.tell)(Request::Spoke((job, node), epoch, core_link(link)));
        }
        job.io.links.put(link, connection);
        // The connection was put back first, because the last frames of a job go over it.
        let result = match result {
            Ok(result) => result,
            Err(why) => {
                job.io.broken = Some(why);
                return;
            }
        };
        match result {
            Ok(ReadEnd::Drained) => {}
            Ok(ReadEnd::Budget) if job.io.links.is_held(link) => job.io.links.hold(link),
            Ok(ReadEnd::Budget) => self.unfinished.add(slot, link),
            Ok(ReadEnd::Closed) => job.io.links.doom(link),
            Err(error) => {
                match &error {
                    StreamError::Io(error) => {
                        tracing::debug!(
                            job = job.io.identity.job.0,
                            node = job.io.name,
                            lane = job.io.lane,
                            link,
                            %error,
                            "link lost"
                        );
                    }
                    _ => {
                        self.tally.link_faults += 1;
                        tracing::warn!(
                            job = job.io.identity.job.0,
                            node = job.io.name,
                            lane = job.io.lane,
                            link,
                            %error,
                            "link closed"
                        );
                    }
                }
                job.io.links.doom(link);
            }
        }
    }

    /// Writes what the core has queued and closes what is doomed, until nothing is left to do now.
    /// Where several jobs share the worker, each writes its share in a round.
    pub(super) fn settle(&mut self, slot: Slot) {
        let now = self.now();
        let is_shared = self.hosted.is_shared();
        loop {
            let Some(job) = self.hosted.get_mut(slot) else { return };
            if let Some(why) = job.io.broken.take() {
                return self.abandon(slot, &why);
            }
            let Identity { job: number, node, epoch, .. } = job.io.identity;
            if let Some(placement) = job.io.learnt.take() {
                (self.tell)(Request::Learn((number, node), placement));
            }
            if let Some(neighbour) = job.io.suspected.take() {
                let (name, lane) = (&job.io.name, job.io.lane);
                tracing::warn!(
                    job = number.0,
                    node = name,
                    lane,
                    neighbour = neighbour.0,
                    "a neighbour is gone or silent"
                );
                (self.tell)(Request::Suspect((number, node), epoch, neighbour));
            }
            if let Some(fault) = job.io.faults.take_untold() {
                let (job, why) = (job.io.identity.job, fault.to_string());
                // The thread that receives the news ends only with the process.
                let _ = self.news.send(News::Faulty { job, fault: Some(fault), why });
            }
            let step = if let Some((link, header)) = job.io.too_long.pop() {
                guard(|| self.tell_too_long(slot, link, &header))
            } else if let Some(link) = job.io.links.next_doomed() {
                guard(|| self.lose(slot, link))
            } else if !job.io.links.has_dirty() {
                return;
            } else {
                let most = if is_shared { self.shares.writing.left(job.io.identity.job) } else { u64::MAX };
                if most == 0 {
                    return self.shares.wait(slot);
                }
                let Some(link) = job.io.links.next_dirty() else { return };
                guard(|| self.flush(slot, link, most, now))
            };
            if let Err(why) = step {
                return self.abandon(slot, &why);
            }
        }
    }

    fn tell_too_long(&mut self, slot: Slot, link: LinkNumber, header: &Header) {
        let now = self.now();
        let Some(job) = self.hosted.get_mut(slot) else { return };
        let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        job.core.on_too_long(now, core_link(link), header, &mut out);
    }

    fn flush(&mut self, slot: Slot, link: LinkNumber, most: u64, now: Nanos) {
        let Some(job) = self.hosted.get_mut(slot) else { return };
        match job.io.links.flush(link, most) {
            Ok(bytes) => {
                self.tally.stream_bytes_out += bytes;
                if most < u64::MAX {
                    self.shares.writing.spend(job.io.identity.job, bytes);
                }
            }
            Err(error) => {
                tracing::debug!(
                    job = job.io.identity.job.0,
                    node = job.io.name,
                    lane = job.io.lane,
                    link,
                    %error,
                    "link lost"
                );
                job.io.links.doom(link);
            }
        }
        while let Some(link) = job.io.links.next_unheld() {
            self.unfinished.add(slot, link);
        }
        while let Some(written) = job.io.links.next_written(link) {
            drop(written.payload);
            if let (Link::Child(child), Kind::Result) = (core_link(link), written.header.kind) {
                let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
                job.core.on_written(now, child, &written.header, &mut out);
            }
        }
    }

    /// A connection has ended. A child that has said nothing over it may not have heard that it was
    /// open, and may come again; if it does not, its silence ends the link.
    fn lose(&mut self, slot: Slot, link: LinkNumber) {
        let now = self.now();
        let Some(job) = self.hosted.get_mut(slot) else { return };
        if link == PARENT || !job.io.links.is_unheard(link) {
            return self.close(slot, link);
        }
        self.tally.links_closed += 1;
        job.io.links.expect_again(link);
        self.near.forget(slot, link);
        job.lifetime.child_went(now);
    }

    fn close(&mut self, slot: Slot, link: LinkNumber) {
        let now = self.now();
        let Some(job) = self.hosted.get_mut(slot) else { return };
        let was_open = job.io.links.is_open(link);
        if !job.io.links.close(link) {
            return;
        }
        self.near.forget(slot, link);
        if was_open {
            self.tally.links_closed += 1;
            if link != PARENT {
                job.lifetime.child_went(now);
            }
        }
        let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        job.core.on_link_down(now, core_link(link), &mut out);
    }
}

/// The number of bytes read from one link before it is the next one's turn.
const TURN: usize = 512 * 1024;
