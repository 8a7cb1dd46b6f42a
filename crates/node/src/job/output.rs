//! The core's wishes, carried out.

use std::net::SocketAddr;

use trib_messages::recovery::Replayed;
use trib_proto::node::{Fold, NodeOutput, Note, Part, Payload, Stage, Target};
use trib_proto::{Nanos, Path};
use trib_transport::landing::Source;
use trib_transport::udp::{DatagramSocket, Sent, seal, seal_with};
use trib_wire::body::BodyBytes;
use trib_wire::header::HEADER_LEN;
use trib_wire::ids::CHILDREN_MAX;
use trib_wire::{Fault, Header, NodeId, Placement, Seal};

use super::sealing::Direction;
use super::{JobBuffer, JobIo, LinkNumber, PARENT, fold};
use crate::counters::Tally;

/// What a core is called with: the things of its job, and those of its worker.
pub(crate) struct Output<'a> {
    pub io: &'a mut JobIo,
    pub udp: &'a mut DatagramSocket,
    pub tally: &'a mut Tally,
}

impl NodeOutput for Output<'_> {
    type Buffer = JobBuffer;

    fn transmit(&mut self, target: Target, path: Path, header: &Header, payload: Payload<'_, JobBuffer>) {
        if self.io.broken.is_some() {
            return;
        }
        match path {
            Path::Stream => self.queue(target, header, payload),
            Path::Datagram => self.send(target, header, payload),
        }
    }

    fn fold(&mut self, fold: &Fold, parts: impl Iterator<Item = Part<JobBuffer>>) -> JobBuffer {
        #[cfg(test)]
        crate::worker::trap::step(self.io.identity.job);
        let mut bytes = 0;
        let parts = parts.inspect(|part| bytes += u64::from(part.bytes));
        let result = fold::fold(&mut self.io.buffers, fold, parts);
        self.tally.payload_bytes_folded += bytes;
        self.io.bytes_folded += bytes;
        self.io.stay.folded();
        match result {
            Ok(buffer) => buffer,
            Err((buffer, why)) => {
                self.io.broken.get_or_insert(why);
                buffer
            }
        }
    }

    fn note(&mut self, note: Note) {
        self.tally.note(note);
    }

    fn suspect(&mut self, node: NodeId) {
        self.io.suspected = Some(node);
    }

    fn move_to(&mut self, placement: &Placement) {
        let known = self.io.learnt.take().unwrap_or_default();
        self.io.learnt = Some(known.with(placement));
    }

    fn failed(&mut self, fault: &Fault) {
        self.io.faults.found(fault);
    }

    fn took(&mut self, path: Path, stage: Stage, span: Nanos) {
        self.io.latencies.took(path, stage, span);
    }

    fn replayed(&mut self, path: Path, bytes: u64) {
        let (fragments, segments) = match path {
            Path::Datagram => (1, 0),
            Path::Stream => (0, 1),
        };
        let replayed = Replayed { fragments, segments, bytes };
        self.io.replayed += replayed;
        self.tally.replayed += replayed;
    }
}

impl Output<'_> {
    fn queue(&mut self, target: Target, header: &Header, payload: Payload<'_, JobBuffer>) {
        let body = match payload {
            Payload::Body(body) => body.to_bytes(),
            _ => BodyBytes::new(),
        };
        let JobIo { links, name, lane, sealing, buffers, broken, .. } = &mut *self.io;
        let mut sealed: Option<(Seal, JobBuffer)> = None;
        for link in link_numbers(target) {
            if let (Payload::Data { buffer, from }, Some(sealing)) = (&payload, &mut *sealing)
                && header.payload_len > 0
                && !links.is_in_memory(link)
            {
                // Vector data of a link that is not open is for a far end that is gone.
                if !links.is_open(link) {
                    continue;
                }
                if sealed.is_none() {
                    let range = (*from as usize, header.payload_len as usize);
                    sealed = sealing.segment(direction(target), buffers, buffer, range);
                }
                let (Some((seal, buffer)), Some(queue)) = (&sealed, links.queue(link)) else {
                    broken.get_or_insert_with(|| "there is no buffer for what is to be encrypted".into());
                    return;
                };
                queue.push_sealed(header, buffer.share(0, buffer.len()), seal);
                continue;
            }
            let Some(queue) = links.queue(link) else { continue };
            let full = match payload {
                Payload::Data { buffer, from } => {
                    let share = buffer.share(from as usize, header.payload_len as usize);
                    queue.push_data(header, Some(share));
                    false
                }
                Payload::None if header.keeps_turn() => {
                    queue.push_data(header, None);
                    false
                }
                Payload::None | Payload::Body(_) => queue.push_control(header, &body).is_err(),
            };
            let behind = if full { Some(link) } else { links.most_behind(link) };
            if let Some(link) = behind {
                tracing::warn!(job = header.job.0, node = %name, lane, link, "far end does not read, link closed");
                self.tally.link_overruns += 1;
                links.doom(link);
            }
        }
    }

    fn send(&mut self, target: Target, header: &Header, payload: Payload<'_, JobBuffer>) {
        let JobIo { links, up, results, sealing, too_long, .. } = &mut *self.io;
        let body = match payload {
            Payload::Body(body) => body.to_bytes(),
            _ => BodyBytes::new(),
        };
        let payload = match payload {
            Payload::None | Payload::Body(_) => &body[..],
            Payload::Data { buffer, from } => {
                &buffer.bytes()[from as usize..from as usize + header.payload_len as usize]
            }
        };
        let key = if target == Target::Parent { up } else { results };
        // The header and the payload as they leave the host, if payloads are sealed there.
        let sealed = match sealing {
            Some(sealing) if !payload.is_empty() && link_numbers(target).any(|link| !links.is_in_memory(link)) => {
                sealing.datagram(direction(target), payload)
            }
            _ => None,
        };
        let sealed = sealed.map(|(seal, payload)| (seal_with(header, key, payload, &seal), payload));
        let mut head = None;
        let mut addresses = [SocketAddr::from(([0, 0, 0, 0], 0)); CHILDREN_MAX];
        let mut count = 0;
        for link in link_numbers(target) {
            let Some(address) = links.datagrams(link) else { continue };
            let outside = sealed.as_ref().filter(|_| !links.is_in_memory(link));
            let head_len = outside.map_or(HEADER_LEN, |(head, _)| head.len());
            links.count_datagram_out(link, head_len + payload.len());
            if let Some(outbox) = links.outbox(link) {
                let sent = match outside {
                    Some((head, payload)) => outbox.send(head, payload),
                    None => outbox.send(head.get_or_insert_with(|| seal(header, key, payload)), payload),
                };
                if sent == Sent::TooLong {
                    too_long.push((link, *header));
                }
                continue;
            }
            addresses[count] = address;
            count += 1;
        }
        if count == 0 {
            return;
        }
        let refused = match &sealed {
            Some((head, payload)) => self.udp.send_headed(head, payload, &addresses[..count]),
            None => self.udp.send(header, key, payload, &addresses[..count]),
        };
        if refused != 0 {
            let by_socket = |link: &LinkNumber| links.datagrams(*link).is_some() && !links.is_near(*link);
            let reached = link_numbers(target).filter(by_socket).enumerate();
            too_long.extend(reached.filter(|(at, _)| refused >> at & 1 != 0).map(|(_, link)| (link, *header)));
        }
    }
}

fn direction(target: Target) -> Direction {
    if target == Target::Parent { Direction::Up } else { Direction::Down }
}

/// The links of a target, the lowest child first.
fn link_numbers(target: Target) -> impl Iterator<Item = LinkNumber> {
    let mut bits = match target {
        Target::Parent => 1u128 << PARENT,
        Target::Child(child) => 1 << child.0,
        Target::Children(bits) => u128::from(bits),
    };
    core::iter::from_fn(move || {
        (bits != 0).then(|| {
            let link = bits.trailing_zeros() as LinkNumber;
            bits &= bits - 1;
            link
        })
    })
}
