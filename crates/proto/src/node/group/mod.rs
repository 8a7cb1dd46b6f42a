//! One group at one node, with its machines.

mod state;

use trib_wire::header::FLAG_STREAM;
use trib_wire::{Body, ChildIndex, Fault, Header, Kind, Marks};

use super::board::Board;
use super::identity::Identity;
use super::info::{Duty, GroupInfo, Posted};
use super::lease::Lease;
use super::link::Link;
use super::llt::Datagrams;
use super::output::{NodeOutput, Payload, Target};
use super::sat::Streams;
use crate::Path;
use state::{Event, State, transition};

/// The streaming operations that a member has announced. It asks for the lock again while segments
/// of the lease before are on their way, so neither is always the newer one.
#[derive(Clone, Copy, Default)]
struct Announced {
    /// The one for which it has asked for the lock last.
    asked: Option<Posted>,
    /// The one of which a segment has come last.
    streamed: Option<Posted>,
}

/// One group with its machines.
pub(super) struct Group<B> {
    pub(super) info: GroupInfo,
    /// LLT, which is made with the first datagram.
    pub(super) datagrams: Option<Box<Datagrams<B>>>,
    /// SAT, which is made with the first segment.
    pub(super) streams: Option<Box<Streams<B>>>,
    pub(super) lease: Lease,
    /// What members say of their board, if they have one.
    pub(super) board: Option<Box<Board>>,
    /// The streaming operations that each member has announced, by position.
    announced: Vec<Announced>,
    /// A bit for each child that has left.
    pub(super) left: u64,
    /// A bit for each of these that needs no further word, because it is dead or has forgotten the
    /// group.
    pub(super) silent: u64,
    /// A bit for each child below which all have freed the group before this epoch.
    pub(super) freed: u64,
    state: State,
}

impl<B> Group<B> {
    pub(super) fn new(info: GroupInfo) -> Group<B> {
        let announced = vec![Announced::default(); info.members.len()];
        Group {
            info,
            datagrams: None,
            streams: None,
            lease: Lease::default(),
            board: None,
            announced,
            left: 0,
            silent: 0,
            freed: 0,
            state: State::Live,
        }
    }

    /// Whether it has failed, so that nothing of it matters but leaving it, and its last word.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::Reported | State::Failed)
    }

    /// Whether the group's root has yet to say how it ends.
    pub(super) fn waits_for_the_last_word(&self) -> bool {
        matches!(self.state, State::Live | State::Reported)
    }

    /// The group cannot go on, and its root is to say how it ends. Returns false if that was known.
    pub(super) fn report(&mut self) -> bool {
        let next = transition(self.state, Event::Report);
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }

    /// Every member holds all results below these numbers: under `strict` the last word of the
    /// group's root. Elsewhere nobody asks.
    pub(super) fn last_word(&self, identity: &Identity) -> Marks {
        if !identity.config.strict || self.info.duty != Duty::Root {
            return Marks::default();
        }
        let start = self.info.start;
        let of = |marks: Option<&super::marks::Marks>, start: u64| {
            marks.map_or(start, |marks| marks.stable().max(marks.least()))
        };
        Marks {
            fragments: of(self.datagrams.as_ref().map(|datagrams| &datagrams.marks), start.fragments),
            segments: of(self.streams.as_ref().map(|streams| &streams.marks), start.segments),
        }
    }

    /// The group cannot go on. Returns false if that was known.
    pub(super) fn fail(&mut self) -> bool {
        let next = transition(self.state, Event::Fault);
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }

    /// Whether all children have left, so that nothing needs its name any more.
    pub(super) fn is_gone(&mut self) -> bool {
        if self.left == self.info.all {
            self.state = transition(self.state, Event::AllLeft).unwrap_or(self.state);
        }
        self.state == State::Gone
    }

    /// Whether it will be gone without anything that a program does: all have freed it, and give
    /// each other what some lack.
    pub(super) fn is_going(&self) -> bool {
        self.left | self.freed == self.info.all
    }

    /// Whether it is going and the parent does not know: some have freed it in this epoch only.
    pub(super) fn goes_unknown(&self) -> bool {
        self.is_going() && self.freed != self.info.all
    }

    /// Notes that a member streams an operation. It is an error if another member runs the same
    /// operation by datagram: such ranks disagree about its length, and neither protocol would ever
    /// finish it.
    pub(super) fn announce(&mut self, identity: &Identity, position: usize, header: &Header) -> Result<(), Fault> {
        let Announced { asked, streamed } = &mut self.announced[position];
        let last = if header.kind == Kind::Intent { asked } else { streamed };
        if last.is_some_and(|posted| posted.op_seq == header.op_seq) {
            return Ok(());
        }
        *last = Some(Posted::from(header));
        match self.datagrams.as_ref().and_then(|datagrams| datagrams.filling(header.op_seq)) {
            Some(other) => Err(identity.mismatch(Posted::from(other), Posted::from(header))),
            None => Ok(()),
        }
    }

    /// The same check from the other side: it is an error if a member streams the operation of a
    /// fragment that has just begun. The operation need not be one of those that the member has
    /// announced last, because segments of several operations may wait here.
    pub(super) fn check_begun(&self, identity: &Identity, header: &Header) -> Result<(), Fault> {
        let announced = self.all_announced().find(|posted| posted.op_seq == header.op_seq);
        let staged = || self.streams.as_ref()?.staged_of(header.op_seq).map(Posted::from);
        match announced.or_else(staged) {
            Some(other) => Err(identity.mismatch(Posted::from(header), other)),
            None => Ok(()),
        }
    }

    /// The newest streaming operation that a member has announced.
    pub(super) fn announced(&self) -> Option<Posted> {
        self.all_announced().max_by_key(|posted| posted.op_seq)
    }

    fn all_announced(&self) -> impl Iterator<Item = Posted> {
        self.announced.iter().flat_map(|member| [member.asked, member.streamed]).flatten()
    }

    /// The group has failed, so nobody needs what those keep for it that have left: their marks say
    /// so.
    pub(super) fn release_those_that_left(&self, identity: &Identity, out: &mut impl NodeOutput) {
        let targets = self.left & !self.silent;
        for flags in [0, FLAG_STREAM] {
            if targets != 0 {
                let header = Header { mark: u64::MAX, flags, ..self.info.down(identity, Kind::Mark, ChildIndex::ALL) };
                out.transmit(Target::Children(targets), Path::Stream, &header, Payload::None);
            }
        }
    }

    /// Tells the fault at the other ends of all the group's edges, but not at `except`.
    pub(super) fn broadcast_fault(
        &self,
        identity: &Identity,
        (fault, mark): (&Fault, Marks),
        except: Option<Link>,
        out: &mut impl NodeOutput,
    ) {
        let body = Body::GroupError(*fault);
        let skip = match except {
            Some(Link::Child(child)) => 1u64 << child.0,
            Some(Link::Parent) | None => 0,
        };
        let targets = self.info.all & !self.left & !skip;
        if targets != 0 {
            let header = mark.said_by(self.info.down(identity, Kind::GroupError, ChildIndex::ALL));
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
        if except != Some(Link::Parent) {
            self.tell_parent(identity, fault, out);
        }
    }

    /// Tells the parent of a fault.
    pub(super) fn tell_parent(&self, identity: &Identity, fault: &Fault, out: &mut impl NodeOutput) {
        if let Some(header) = self.info.up(identity, Kind::GroupError) {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&Body::GroupError(*fault)));
        }
    }

    /// Ends the machines that fold, and with them every buffer that they have, and what was said of
    /// a board.
    pub(super) fn drop_machines(&mut self) {
        (self.datagrams, self.streams, self.board) = (None, None, None);
    }
}

#[cfg(test)]
mod tests;
