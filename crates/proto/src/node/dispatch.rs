//! The way from a frame to the machine that it concerns.

use trib_wire::{Body, Fault, GroupIndex, Header, Kind, Marks, Reason};

use super::at::At;
use super::board::Board;
use super::frame::Frame;
use super::info::Duty;
use super::llt::Datagrams;
use super::membership::Join;
use super::membership::check_left;
use super::output::{NodeOutput, Note, Payload, Target};
use super::sat::Streams;
use super::{Link, NodeCore};
use crate::Path;
use crate::lock::Decision;

impl<B> NodeCore<B> {
    pub(super) fn dispatch(&mut self, link: Link, frame: Frame<'_, B>, out: &mut impl NodeOutput<Buffer = B>) {
        let header = frame.header;
        match (link, header.kind, frame.body) {
            (_, Kind::Heartbeat, _) => {
                if let Link::Child(child) = link
                    && let Some(at_boards) = self.at_boards.get_mut(usize::from(child.0))
                {
                    *at_boards = header.op_seq;
                }
                self.answer_heartbeat(link, out);
            }
            (Link::Child(child), Kind::Join, Body::Join { key, fault, standing, nodes, name }) => {
                let heard = Marks::of(header);
                self.on_join(child, key, Join { fault: *fault, standing: *standing, heard, nodes, name }, out);
            }
            (Link::Child(child), Kind::Lost, Body::Lost(ranks)) => self.on_lost(child, ranks, out),
            (Link::Parent, Kind::Ready, Body::Ready(key, start)) => self.on_ready(header, (key, *start), out),
            (Link::Parent, Kind::Ask, Body::Ask(key)) => self.on_ask(key, out),
            (Link::Parent, Kind::Freed, _) => self.on_freed(header, out),
            (_, Kind::Move, Body::Move(placement)) if self.identity.config.recovers => {
                self.on_move(link, placement, out)
            }
            (Link::Parent, Kind::Refused, Body::Refused(key, fault)) => {
                self.on_refused(key, (*fault, Marks::of(header)), out);
            }
            (Link::Parent, Kind::Nack, _) => out.note(Note::UnknownGroup),
            (_, _, _) => self.on_group_frame(link, frame, out),
        }
    }

    /// Refuses a frame for a group, generation or epoch that is not one of ours. It is counted, and
    /// the sender of a datagram from below is told.
    pub(super) fn refuse_frame(&mut self, link: Link, frame: &Frame<'_, B>, out: &mut impl NodeOutput<Buffer = B>) {
        out.note(Note::UnknownGroup);
        if let (Link::Child(child), Path::Datagram) = (link, frame.path) {
            let Header { group, generation, seq, .. } = *frame.header;
            let nack = Header { group, generation, seq, ..self.identity.down(Kind::Nack, child) };
            out.transmit(Target::Child(child), Path::Datagram, &nack, Payload::Body(&Body::Nack(Reason::Unknown)));
        }
    }

    fn on_group_frame(&mut self, link: Link, frame: Frame<'_, B>, out: &mut impl NodeOutput<Buffer = B>) {
        let header = frame.header;
        let index = match link {
            Link::Child(_) => self.table.named_by_child(header.group, header.generation),
            Link::Parent => self.table.named_by_parent(header.group, header.generation),
        };
        let Some(group) = index.and_then(|index| self.table.get_mut(index)) else {
            let is_mark = link == Link::Parent && header.kind == Kind::Mark;
            return if is_mark { self.on_late_mark(header, out) } else { self.refuse_frame(link, &frame, out) };
        };
        let index = group.info.index;
        let is_last_word = link == Link::Parent && header.kind == Kind::GroupError && group.waits_for_the_last_word();
        if group.has_failed() && header.kind != Kind::Leave && !is_last_word {
            return;
        }
        match link {
            Link::Parent => self.on_frame_from_parent(index, frame, out),
            Link::Child(child) => match group.info.position(child) {
                Some(position) => self.on_frame_from_child(index, position, frame, out),
                None => self.refuse_frame(link, &frame, out),
            },
        }
    }

    fn on_frame_from_child(
        &mut self,
        index: GroupIndex,
        position: usize,
        frame: Frame<'_, B>,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let group = self.table.live(index);
        let (header, child) = (frame.header, group.info.members[position].child);
        if header.kind == Kind::Leave {
            return self.on_leave(index, child, out);
        }
        let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
        if group.left & (1 << child.0) != 0 {
            // A datagram may have been overtaken by the word that its sender left.
            let is_late = frame.path == Path::Datagram;
            return at.out.note(if is_late { Note::Stale } else { Note::Violation });
        }
        let outcome = match (header.kind, frame.path, header.is_stream(), frame.body) {
            (Kind::Contribution, Path::Datagram, false, _) => return self.on_datagram(index, position, frame, out),
            (Kind::Contribution, Path::Stream, true, _) => return self.on_segment(index, position, frame, out),
            (Kind::Probe, Path::Datagram, false, _) => {
                if at.info.duty == Duty::Relay {
                    return;
                }
                let datagrams = group.datagrams.get_or_insert_with(|| Box::new(Datagrams::new(at.identity, at.info)));
                let outcome = datagrams.on_probe(&mut at, position, header);
                datagrams.marks.make_sure(&mut at);
                outcome
            }
            // A rank may hold the result from an earlier epoch, when nothing of it has come here
            // yet. It says so once.
            (Kind::Mark, Path::Stream, is_stream, _) => {
                if at.info.duty == Duty::Relay {
                    return;
                }
                let marks = if is_stream {
                    &mut group.streams.get_or_insert_with(|| Box::new(Streams::new(at.identity, at.info))).marks
                } else {
                    &mut group.datagrams.get_or_insert_with(|| Box::new(Datagrams::new(at.identity, at.info))).marks
                };
                marks.on_mark(&mut at, position, header.mark);
                Ok(())
            }
            (Kind::Intent, Path::Stream, _, _) => return self.on_intent(index, position, header, out),
            (Kind::StopAt, Path::Stream, _, _) => {
                let step = group.lease.on_stop(&at, position, header.seq, group.left);
                step.map(|step| self.take_step(index, step, header, out))
            }
            (Kind::Released, Path::Stream, _, _) => {
                let outcome = group.lease.on_released(&at, position);
                self.try_release(index, out);
                outcome
            }
            (Kind::GroupError, Path::Stream, _, Body::GroupError(fault)) => {
                return self.fail(index, *fault, Some(Link::Child(child)), out);
            }
            // Who shares memory is below nodes that fold for it, up to the group's root.
            (Kind::Late, Path::Stream, _, Body::Late(late)) if at.info.duty != Duty::Relay => {
                let board = group.board.get_or_insert_with(|| Box::new(Board::new(at.info)));
                board.on_late(&mut at, position, header, late);
                Ok(())
            }
            _ => {
                at.out.note(Note::Violation);
                Ok(())
            }
        };
        self.settle(index, outcome, out);
    }

    fn on_frame_from_parent(&mut self, index: GroupIndex, frame: Frame<'_, B>, out: &mut impl NodeOutput<Buffer = B>) {
        let group = self.table.live(index);
        let header = frame.header;
        let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
        let (datagrams, streams, lease) = (group.datagrams.as_mut(), group.streams.as_mut(), &group.lease);
        let mut outcome: Result<(), Fault> = Ok(());
        match (header.kind, frame.path, frame.body, datagrams, streams) {
            (Kind::Result, Path::Datagram, _, Some(datagrams), _) if !header.is_stream() => {
                datagrams.on_result(&mut at, frame);
            }
            (Kind::Result, Path::Stream, _, _, Some(streams)) if header.is_stream() => {
                outcome = streams.on_result(&mut at, frame);
            }
            (Kind::Mark, Path::Stream, _, datagrams, streams) => match (header.is_stream(), datagrams, streams) {
                (false, Some(datagrams), _) => datagrams.marks.on_stable(&mut at, header.mark),
                (true, _, Some(streams)) => streams.marks.on_stable(&mut at, header.mark),
                _ => {}
            },
            (Kind::Held, Path::Datagram, Body::Held(held), datagrams, _) => {
                if let Some(datagrams) = datagrams {
                    outcome = datagrams.on_held(&mut at, header, *held);
                }
            }
            (Kind::Credit, Path::Stream, _, _, streams) => {
                if let Some(streams) = streams {
                    streams.on_credit(&mut at, header.seq);
                }
            }
            (Kind::Grant, Path::Stream, ..) if header.seq == lease.asked() => {
                outcome = self.grant_from_above(index, out);
            }
            (Kind::Revoke, Path::Stream, ..) if header.seq == lease.current() => {
                self.apply(Decision::Revoke(index), out);
            }
            (Kind::LeaseEnd, Path::Stream, ..) => {
                self.end_lease(index, header.seq, out);
            }
            (Kind::GroupError, Path::Stream, Body::GroupError(fault), ..) => {
                if self.identity.config.strict && at.info.duty == Duty::Inner {
                    return self.conclude(index, (*fault, Marks::of(header)), Some(Link::Parent), out);
                }
                self.fail(index, *fault, Some(Link::Parent), out);
            }
            _ => at.out.note(Note::Violation),
        }
        self.settle(index, outcome, out);
    }

    fn on_datagram(
        &mut self,
        index: GroupIndex,
        position: usize,
        frame: Frame<'_, B>,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let group = self.table.live(index);
        let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
        if at.info.duty == Duty::Relay {
            return at.out.note(Note::Violation);
        }
        let datagrams = group.datagrams.get_or_insert_with(|| Box::new(Datagrams::new(at.identity, at.info)));
        let header = frame.header;
        let outcome = datagrams.on_contribution(&mut at, position, frame);
        datagrams.marks.pass_on(&mut at);
        let outcome = outcome.and_then(|opened| {
            if !opened {
                return Ok(());
            }
            group.check_begun(&self.identity, header)?;
            check_left(&self.identity, group)
        });
        self.settle(index, outcome, out);
    }

    fn on_segment(
        &mut self,
        index: GroupIndex,
        position: usize,
        frame: Frame<'_, B>,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let group = self.table.live(index);
        let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
        let header = frame.header;
        if at.info.duty == Duty::Relay || !group.lease.covers(header.seq) {
            at.out.note(Note::Violation);
            let fault = at.violation(position);
            return self.settle(index, Err(fault), out);
        }
        let streams = group.streams.get_or_insert_with(|| Box::new(Streams::new(at.identity, at.info)));
        let outcome = streams.on_contribution(&mut at, position, frame);
        streams.marks.pass_on(&mut at);
        let outcome = outcome
            .and_then(|()| group.announce(&self.identity, position, header))
            .and_then(|()| check_left(&self.identity, group));
        self.settle(index, outcome, out);
        self.try_release(index, out);
    }

    fn on_intent(
        &mut self,
        index: GroupIndex,
        position: usize,
        header: &Header,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let group = self.table.live(index);
        let outcome = group.announce(&self.identity, position, header).and_then(|()| {
            let at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
            group.lease.on_intent(&at, position, header)
        });
        match outcome.and_then(|step| check_left(&self.identity, group).map(|()| step)) {
            Ok(step) => self.take_step(index, step, header, out),
            Err(fault) => self.settle(index, Err(fault), out),
        }
    }
}

#[cfg(test)]
mod tests {
    use trib_wire::header::FLAG_STREAM;
    use trib_wire::{ChildIndex, GroupKey, GroupName, NodeId, RankList, Standing};

    use super::*;
    use crate::node::NodeConfig;
    use crate::node::harness::{BOTH, LIMITS, Log, config, key};
    use crate::{Limits, Nanos};

    /// A frame from both children of the root.
    fn bring(core: &mut NodeCore<Vec<u8>>, out: &mut Log, header: Header, body: &Body) {
        for child in [ChildIndex(0), ChildIndex(1)] {
            let header = &Header { child, ..header };
            core.on_frame(Nanos(0), Link::Child(child), Frame { path: Path::Stream, header, body, data: None }, out);
        }
    }

    /// A node above that grants more leases than the job has contexts would make this one hold
    /// more segments than its grant has buffers.
    #[test]
    fn a_parent_grants_no_more_leases_than_there_are_contexts() {
        let (mut core, mut out) =
            (NodeCore::new(NodeConfig { limits: TWO_GROUPS, ..below_a_parent() }), Log::default());
        let (nodes, name) = (RankList::EMPTY, GroupName::default());
        for tag in [7, 8] {
            let key = GroupKey { tag, members: RankList::from_ranks([0, 1, 2]), ..key() };
            let join = Body::Join {
                key: key.clone(),
                fault: None,
                standing: Standing::NEW,
                nodes: nodes.clone(),
                name: name.clone(),
            };
            let header = core.identity.down(Kind::Join, ChildIndex::ALL);
            bring(&mut core, &mut out, header, &join);
            from_above(&mut core, &mut out, tag as u32, Kind::Ready, &Body::Ready(key, Marks::default()));
        }
        from_above(&mut core, &mut out, 7, Kind::Grant, &Body::None);
        assert_eq!(core.streams_held(), 1);
        out.take_sent();
        from_above(&mut core, &mut out, 8, Kind::Grant, &Body::None);
        assert_eq!(core.streams_held(), 1, "the job has one");
        let sent: Vec<Kind> = out.take_sent().iter().map(|sent| sent.kind).collect();
        assert_eq!(sent, [Kind::GroupError, Kind::GroupError], "both ways, and nothing is granted");
    }

    fn below_a_parent() -> NodeConfig {
        NodeConfig { world_size: 3, ..config(Some((NodeId(0), ChildIndex(0)))) }
    }

    /// A frame about a group that the parent knows by its tag, of its first lease.
    fn from_above(core: &mut NodeCore<Vec<u8>>, out: &mut Log, group: u32, kind: Kind, body: &Body) {
        let header = core.identity.up(kind).expect("there is a parent");
        let header = &Header { group: GroupIndex(group), seq: 1, flags: FLAG_STREAM, ..header };
        core.on_frame(Nanos(0), Link::Parent, Frame { path: Path::Stream, header, body, data: None }, out);
    }

    const TWO_GROUPS: Limits = Limits { groups: 2, osts: 2, ..LIMITS };

    #[test]
    fn marks_that_come_before_all_that_they_are_about_count() {
        for flags in [0, FLAG_STREAM] {
            let (mut core, mut out) = (NodeCore::new(config(None)), Log::default());
            let header = core.identity.down(Kind::Join, ChildIndex::ALL);
            let (nodes, name) = (RankList::EMPTY, GroupName::default());
            let join = Body::Join { key: key(), fault: None, standing: Standing::NEW, nodes, name };
            bring(&mut core, &mut out, header, &join);
            out.take_sent();
            bring(&mut core, &mut out, Header { kind: Kind::Mark, mark: 1, flags, ..header }, &Body::None);
            let sent: Vec<(Target, Kind)> = out.take_sent().iter().map(|sent| (sent.target, sent.kind)).collect();
            assert_eq!(sent, [(Target::Children(BOTH), Kind::Mark)], "flags {flags}");
        }
    }
}
