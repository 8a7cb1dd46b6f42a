//! Work that concerns several lanes: operations that are cut over them, groups, which exist on all
//! of them, and sleeping on the sockets of all of them.
//!
//! Each lane completes its part of an operation on its own. A group, however, fails on all lanes
//! together: when it fails on one lane, this rank tells the members on the others why, so that they
//! do not wait there for parts that never come. Under `strict` it leaves the group there instead:
//! what it has not reported may have succeeded elsewhere, and has to wait for the word of a node.

use std::sync::Arc;

use trib_messages::job::LANES_MAX;
use trib_proto::Nanos;
use trib_wire::body::Fault;
use trib_wire::{GroupName, RankList, Signature};

use super::lane::Lane;
use super::operation::Operation;
use super::poll::{LaneSockets, Ready, Sockets};
use super::{Engine, Sleep, unnamed};
use crate::completion::Completion;
use crate::counters::Counters;
use crate::error::Error;
use crate::group_state::{GroupState, Purpose};
use crate::lanes::Lanes;
use crate::posting::{Part, Posting};

impl Engine {
    /// Posts an operation on the lane whose turn it is, or its parts on their lanes.
    pub(super) fn post_on_lanes(
        &mut self,
        now: Nanos,
        lanes: &Lanes,
        group: &GroupState,
        posting: Posting,
    ) -> Result<Arc<Completion>, Error> {
        if let Some(error) = group.error() {
            return Err(error.clone());
        }
        let ids = group.ids();
        if ids.len() != self.lanes.len() {
            return Err(unnamed());
        }
        let number = group.posted();
        let completion = match posting {
            Posting::Whole(Part { signature, memory, stretch_of }) => {
                let at = lanes.turn(number);
                let completion = Arc::new(Completion::on_lane(at, signature));
                let operation = Operation::new(ids[at], memory, completion.clone()).stretch_of(stretch_of);
                self.lanes[at].post(now, Some((number + 1, 0)), signature, operation)?;
                completion
            }
            Posting::Cut(whole, parts) => self.post_parts(now, group, (number + 1, whole), parts)?,
        };
        group.count();
        self.spread_failures();
        Ok(completion)
    }

    fn post_parts(
        &mut self,
        now: Nanos,
        group: &GroupState,
        (number, whole): (u64, Signature),
        parts: Vec<Part>,
    ) -> Result<Arc<Completion>, Error> {
        let completion = Arc::new(Completion::of_cut(parts.len() as u32, whole));
        for (at, Part { signature, memory, stretch_of }) in parts.into_iter().enumerate() {
            let number = Some((number, at as u16 + 1));
            let group_id = group.ids()[at];
            let operation = Operation::new(group_id, memory, completion.clone()).stretch_of(stretch_of);
            if let Err(error) = self.lanes[at].post(now, number, signature, operation) {
                if at > 0 {
                    // Without this the other members would wait for the missing parts.
                    group.fail(error.clone());
                    self.abandon(group);
                }
                return Err(error);
            }
        }
        Ok(completion)
    }

    /// Begins a group on every lane, and looks for boards if members of it share a host and it is
    /// for operations.
    pub(super) fn create_group(
        &mut self,
        purpose: Purpose,
        rank: u32,
        members: &RankList,
        tag: u64,
        name: GroupName,
    ) -> Result<Arc<GroupState>, Error> {
        let now = self.now();
        let plan = self.boards.plan(members, rank).filter(|_| purpose == Purpose::Operations);
        let parts = self.lanes.len() + usize::from(plan.is_some());
        let state = Arc::new(GroupState::new(rank, members, tag, name, parts));
        let mut ids = Vec::with_capacity(self.lanes.len());
        for at in 0..self.lanes.len() {
            match self.lanes[at].create_group(now, members.clone(), (tag, false), state.clone()) {
                Ok(id) => ids.push(id),
                Err(error) => {
                    for (lane, id) in self.lanes.iter_mut().zip(ids) {
                        lane.free_group(now, id);
                    }
                    return Err(error);
                }
            }
        }
        if let Some((plan, id)) = plan.zip(ids.first()) {
            self.boards.begin(plan, (members.clone(), tag), *id, &state);
        }
        state.know_ids(ids);
        self.spread_failures();
        self.boards.progress(now, &mut self.lanes[0], false);
        Ok(state)
    }

    /// Leaves a group on every lane. `worked` says that it had not failed before.
    pub(super) fn free_group(&mut self, state: &GroupState, worked: bool) {
        let now = self.now();
        for (lane, id) in self.lanes.iter_mut().zip(state.ids()) {
            lane.free_group(now, *id);
        }
        if let Some(at) = self.boards.index_of(state) {
            self.boards.free(at, (&left(), worked), now, &mut self.lanes[0]);
        }
    }

    /// Leaves all groups.
    pub(super) fn leave_groups(&mut self) {
        let now = self.now();
        for lane in &mut self.lanes {
            for group in lane.driver.groups() {
                lane.free_group(now, group);
            }
        }
        self.boards.free_all(&left(), now, &mut self.lanes[0]);
    }

    /// Groups that have failed on one lane fail on all others. With a single lane there is nothing
    /// to do.
    #[inline]
    pub(super) fn spread_failures(&mut self) {
        if self.lanes.len() > 1 {
            self.spread();
        }
    }

    fn spread(&mut self) {
        while let Some((state, fault)) = self.lanes.iter_mut().find_map(|lane| lane.driver.take_failed()) {
            self.report(&state, fault);
        }
    }

    /// Tells the members of a group on every lane why it does not go on. Were it only left there,
    /// some would hear that first, and not why.
    fn report(&mut self, state: &GroupState, fault: Fault) {
        let now = self.lately();
        if self.lanes.iter().any(Lane::is_strict) {
            return self.abandon(state);
        }
        for (lane, id) in self.lanes.iter_mut().zip(state.ids()) {
            // First, because the report fails the group here on lanes where it is not ready yet.
            // That does not make its creation fail, if the first lane had it ready.
            lane.driver.give_up_group(*id);
            lane.report(now, *id, fault);
        }
    }

    /// Leaves a group on every lane, because this rank cannot go on with it.
    fn abandon(&mut self, state: &GroupState) {
        let now = self.lately();
        for (lane, id) in self.lanes.iter_mut().zip(state.ids()) {
            lane.abandon_group(now, *id);
            lane.flush(now);
        }
    }

    #[inline]
    pub(super) fn next_deadline(&self) -> Nanos {
        if let [lane] = &self.lanes[..] {
            let next = lane.next_deadline();
            return if self.boards.is_busy() { next.min(self.boards.next_deadline(self.lately())) } else { next };
        }
        self.lanes.iter().map(|lane| lane.next_deadline()).min().unwrap_or(Nanos::NEVER)
    }

    pub(super) fn heartbeat_half(&self) -> Nanos {
        self.lanes.iter().map(|lane| lane.heartbeat_half()).min().unwrap_or(Nanos::NEVER)
    }

    /// Whether a lane or a board needs progress even while the application makes no call.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.boards.is_busy() || self.lanes_are_busy()
    }

    /// Whether a lane does.
    pub(super) fn lanes_are_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_busy())
    }

    /// Whether the node of a lane may ask for a lease back that no operation uses.
    #[inline]
    pub(super) fn may_be_revoked(&self) -> bool {
        self.lanes.iter().any(|lane| lane.may_be_revoked())
    }

    /// Called after a sleep on the streams of unused leases alone.
    pub(super) fn end_watch(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.wake_up());
    }

    /// Called before a sleep on the streams of unused leases alone; `end_watch` must follow. On
    /// these lanes every byte wakes the sleeper: no result is under way, so there is no low-water
    /// mark.
    pub(super) fn begin_watch(&mut self) -> Sockets {
        let now = self.now();
        Sockets::of(self.lanes.iter_mut().map(|lane| {
            let may_be_revoked = lane.may_be_revoked();
            if may_be_revoked {
                let marked = lane.arm(now);
                debug_assert!(marked.is_none(), "a mark without a result to come");
            }
            // Who falls asleep says what wakes it, so the mark comes first.
            lane.fall_asleep();
            if !may_be_revoked {
                return LaneSockets::NEITHER;
            }
            LaneSockets { datagram: LaneSockets::NONE, ..lane.sockets() }
        }))
    }

    /// Called before a sleep on the sockets until `until`; `end_sleep` must follow.
    #[inline]
    pub(super) fn begin_sleep(&mut self, until: Nanos) -> Sleep {
        let now = self.now();
        self.boards.see(now);
        let (sockets, until) = (self.sockets(), until.min(self.next_deadline()));
        let mut sleeping = Sleep { sockets, until, marked: [Nanos::NEVER; LANES_MAX] };
        for (lane, marked) in self.lanes.iter_mut().zip(&mut sleeping.marked) {
            *marked = lane.arm(now).unwrap_or(Nanos::NEVER);
            sleeping.until = sleeping.until.min(*marked);
            lane.fall_asleep();
        }
        if self.boards.fall_asleep() {
            sleeping.until = now;
        }
        sleeping
    }

    /// Called after the sleep.
    #[inline]
    pub(super) fn end_sleep(&mut self, sleeping: &Sleep, ready: Ready) {
        let now = self.now();
        for (at, (lane, marked)) in self.lanes.iter_mut().zip(sleeping.marked).enumerate() {
            lane.wake_up();
            if marked != Nanos::NEVER {
                lane.disarm(now, marked, ready.stream(at));
            }
        }
        self.boards.wake_up();
    }

    #[inline]
    pub(super) fn sockets(&self) -> Sockets {
        Sockets::of(self.lanes.iter().map(|lane| lane.sockets())).with_bell(self.boards.bell())
    }

    /// The lanes whose frames wait until the socket has room, a bit for each.
    #[inline]
    pub(super) fn blocked(&self) -> u8 {
        let bit = |(at, lane): (usize, &super::Lane)| u8::from(lane.is_blocked()) << at;
        self.lanes.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// The sum over all lanes. A group counts once.
    pub(super) fn counters(&self) -> Counters {
        let mut lanes = self.lanes.iter().map(|lane| lane.counters());
        let first = lanes.next().unwrap_or_default();
        let sum = lanes.fold(first, |sum, lane| sum.with_lane(&lane));
        Counters { operations_board: self.boards.operations(), ..sum }
    }
}

/// With this end the operations of a group that is left.
fn left() -> Error {
    Error::Peer("this rank has left the group".into())
}

const _: () = assert!(LANES_MAX <= u8::BITS as usize, "a bit for each lane");
