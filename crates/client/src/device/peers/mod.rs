//! GPUs of one host that combine what they have before anything leaves the host.
//!
//! ```text
//!   rank 0's vector --> its memory |             fold of part 0 --> pinned --> between hosts -.
//!   rank 1's vector --> its memory | all given   fold of part 1 --> pinned --> between hosts --+-.
//!                                                                                              | |
//!   rank 0's result <-- both parts | all gotten  part 0 in its memory <------------------------' |
//!   rank 1's result <-- both parts |             part 1 in its memory <--------------------------'
//! ```
//! Each rank has memory of its device that the others of its host have mapped. A chunk of an
//! allreduce is copied there; when all have done that, a kernel of each device folds one part of
//! all of them into pinned memory, from where it travels between the ranks of the same position on
//! all hosts. Its result goes to the same device memory, and when all parts are there, each device
//! copies them to the program's. So a device gives and takes a part of a chunk over its bus instead
//! of all of it, and a host's link carries each chunk once.
//!
//! What is folded is what a board would fold, in the same order and with the same roundings
//! (`trib_reduce::ptx`), so that the bits are those of the same call over memory of the host.
//!
//! Ranks wait for each other in barriers of two groups that the library makes for each host, and
//! parts travel in operations of a third one between the hosts (`groups`). A rank that dies or
//! leaves ends these, as it ends all operations; who waits for others that do not come any more,
//! because the program's group has failed or was left, leaves them soon after. `meeting` is how
//! members find out whether all of them can, and whether all have called the same. `fold` is a
//! kernel that folds.
//!
//! Invariants: chunks use the parts of the device memory in turn, and all ranks the same one for
//! the same chunk; who comes to a chunk's first barrier has read all that the one before in the
//! same memory had left; nobody's memory is freed while another rank may read it.

mod fold;
mod groups;
mod meeting;

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use trib_device::{Context, Imported, Memory, Relaxed, Stream, driver};
use trib_reduce::ptx;
use trib_waiting::Pause;
use trib_wire::{Collective, DataType, ReduceOp, Signature};

use super::from_device;
use super::plan::Plan;
use crate::completion::Completion;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::posting::Posting;
use fold::Fold;
use groups::Groups;
pub(super) use meeting::{agree, meet};

/// The ranks of a host that combine, as one of them sees it.
pub(super) struct Peers {
    /// The program's group, and those that were made for it.
    group: Arc<GroupState>,
    groups: Groups,
    /// This rank's position among those of its host, in the order of the fold.
    position: usize,
    /// How operations are cut.
    plan: Plan,
    stream: Stream,
    own: ManuallyDrop<Memory>,
    /// That of the others by their positions; `None` for this rank.
    others: Vec<Option<Imported>>,
    folds: Mutex<Vec<Fold>>,
    /// A kernel may be under way of which no event tells.
    is_lost: AtomicBool,
}

/// A chunk that is combined.
#[derive(Clone, Copy)]
pub(super) struct Combined {
    /// The operation that it is.
    pub(super) signature: Signature,
    /// How many were combined before it.
    pub(super) number: u64,
}

impl Combined {
    fn bytes(&self, elements: u64) -> usize {
        elements as usize * self.signature.dtype.size()
    }
}

/// Whether ranks combine in such an operation, if they can. Every member says the same.
pub(super) fn concerns(signature: &Signature, is_sum: bool) -> bool {
    let Signature { collective, dtype, op, count, .. } = *signature;
    let is_long = count.saturating_mul(dtype.size() as u64) >= SHORTEST;
    collective == Collective::Allreduce && !is_sum && is_long && ptx::is_known(dtype, op)
}

impl Peers {
    /// How operations are cut.
    pub(super) fn plan(&self) -> Plan {
        self.plan
    }

    /// Where this rank's chunk is to be copied, before [`Peers::fold`].
    pub(super) fn input(&self, chunk: Combined) -> *mut u8 {
        self.memory(self.position, chunk, false)
    }

    /// Waits until all ranks of the host have copied the next chunk. This rank has.
    pub(super) fn give(&self) -> Result<(), Error> {
        self.meet(&self.groups.given)
    }

    /// Folds this rank's part of a chunk, to pinned memory if it is to travel. If that fails, a
    /// kernel may still write there.
    ///
    /// # Safety
    /// The pinned memory has room for a part, and all ranks of the host have copied the chunk.
    pub(super) unsafe fn fold(&self, chunk: Combined, pinned: *mut u8) -> Result<(), Error> {
        let part = self.part(chunk, self.position);
        if part.is_empty() {
            return Ok(());
        }
        let offset = chunk.bytes(part.start);
        let own = self.memory(self.position, chunk, true).wrapping_add(offset);
        let (result, count) = (if self.groups.between.is_some() { pinned } else { own }, part.end - part.start);
        let at = |position| self.memory(position, chunk, false).wrapping_add(offset).addr() as u64;
        let vectors = (0..self.others.len()).map(at);
        let mut arguments: Vec<u64> = [result.addr() as u64, count].into_iter().chain(vectors).collect();
        let current = self.context().enter().map_err(from_device)?;
        let fold = self.fold_of(chunk.signature.dtype, chunk.signature.op)?;
        // SAFETY: all ranks have copied the chunk, and use the memory again only when this one has
        // come to the next barrier.
        unsafe { fold.kernel.launch(&current, &self.stream, &mut arguments, count) }.map_err(from_device)?;
        let folded = self.stream.record(&current).and_then(|event| event.wait());
        folded.inspect_err(|_| self.is_lost.store(true, Ordering::Relaxed)).map_err(from_device)
    }

    /// Posts this rank's part between the hosts, as a stretch of a call with this count.
    ///
    /// # Safety
    /// The pinned memory has a part, and is the library's until the operation is over.
    pub(super) unsafe fn post(&self, chunk: Combined, pinned: *mut u8, whole: u64) -> Result<Arc<Completion>, Error> {
        let part = self.part(chunk, self.position);
        let signature = Signature { count: part.end - part.start, ..chunk.signature };
        let Some(between) = self.groups.between.as_ref().filter(|_| !part.is_empty()) else {
            let over = Completion::of_cut(1, signature);
            over.finish(Ok(()));
            return Ok(Arc::new(over));
        };
        let shared = &self.groups.shared;
        let (lanes, shape) = (shared.lanes(), (between.size, between.rank));
        // SAFETY: the caller's contract.
        let posting = unsafe { Posting::lay_out(lanes, shape, &signature, Input::InPlace, pinned) }?;
        shared.post(between, posting.stretch_of(whole.div_ceil(self.others.len() as u64)))
    }

    /// Shows the others this rank's part of the result, and waits until all parts are there. If
    /// that fails, a copy may still read the pinned memory.
    ///
    /// # Safety
    /// The part has come to the pinned memory.
    pub(super) unsafe fn show(&self, chunk: Combined, pinned: *const u8) -> Result<(), Error> {
        let part = self.part(chunk, self.position);
        if self.groups.between.is_some() && !part.is_empty() {
            let own = self.memory(self.position, chunk, true).wrapping_add(chunk.bytes(part.start));
            let current = self.context().enter().map_err(from_device)?;
            // SAFETY: the part is there, and nobody reads this memory before the barrier.
            unsafe { self.stream.copy(&current, pinned, own, chunk.bytes(part.end - part.start)) }
                .map_err(from_device)?;
            let shown = self.stream.record(&current).map_err(from_device)?;
            shown.wait().map_err(from_device)?;
        }
        self.meet(&self.groups.gotten)
    }

    /// The copies that bring a result whose parts are all there: from, to, and how many bytes.
    pub(super) fn copies(&self, chunk: Combined, to: *mut u8) -> impl Iterator<Item = (*const u8, *mut u8, usize)> {
        (0..self.others.len()).filter_map(move |position| {
            let part = self.part(chunk, position);
            let offset = chunk.bytes(part.start);
            let from = self.memory(position, chunk, true).wrapping_add(offset).cast_const();
            (!part.is_empty()).then(|| (from, to.wrapping_add(offset), chunk.bytes(part.end - part.start)))
        })
    }

    /// Leaves the groups: the others are not to wait for this rank.
    pub(super) fn leave(&self, why: &Error) {
        self.groups.leave(why);
    }

    fn context(&self) -> Context {
        self.stream.context()
    }

    /// The elements of a chunk that the rank at this position folds.
    fn part(&self, chunk: Combined, position: usize) -> Range<u64> {
        part(chunk.signature.count, self.others.len(), position)
    }

    /// Where the chunk, or its result, lies in the memory of the rank at this position.
    fn memory(&self, position: usize, chunk: Combined, result: bool) -> *mut u8 {
        let start = self.others[position].as_ref().map_or_else(|| self.own.start(), Imported::start);
        let slot = (chunk.number % self.plan.depth as u64) as usize;
        start.wrapping_add((2 * slot + usize::from(result)) * half(&self.plan))
    }

    /// Waits until all ranks of such a group are here.
    fn meet(&self, group: &GroupState) -> Result<(), Error> {
        self.wait(&*self.groups.barrier(group)?)
    }

    /// Waits for an operation of these groups, as a thread of the library's. If the program's group
    /// has failed or was left, others may not come: then this rank leaves, too, but not at once, as
    /// what they have still posted may be on its way.
    pub(super) fn wait(&self, completion: &Completion) -> Result<(), Error> {
        let mut noticed: Option<Instant> = None;
        loop {
            let waited = self.groups.shared.wait_as_own_for(completion, Some(WATCH));
            if let Some(outcome) = completion.outcome() {
                return outcome;
            }
            let Err(Error::Timeout(_)) = waited else { return waited };
            if let Some(error) = self.group.error()
                && noticed.get_or_insert_with(Instant::now).elapsed() >= GRACE
            {
                self.leave(error);
            }
        }
    }

    /// The compiled fold, which is made once.
    fn fold_of(&self, dtype: DataType, op: ReduceOp) -> Result<Fold, Error> {
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fold) = folds.iter().find(|fold| fold.is_of(dtype, op)) {
            return Ok(fold.clone());
        }
        let current = self.context().enter().map_err(from_device)?;
        let fold = Fold::new(&current, dtype, op, self.others.len())?;
        folds.push(fold.clone());
        Ok(fold)
    }

    /// Waits until no rank of the host reads this one's memory any more; it is called when this one
    /// reads nobody's.
    fn part_from_others(&self) -> Result<(), Error> {
        let (barrier, began) = (self.groups.barrier(&self.groups.gotten)?, Instant::now());
        // Nobody else may bring it on: in a callback of a call that waits, that call does not, and
        // as long as it waits, the library's thread does not either.
        loop {
            self.groups.shared.poll()?;
            let waited = began.elapsed();
            if let Some(outcome) = barrier.outcome() {
                return outcome;
            }
            if waited >= PATIENCE {
                return Err(Error::Timeout("another rank of the host has not freed the group".into()));
            }
            std::thread::sleep(LOOKS.after(waited));
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // A graph that the program captures meanwhile is not spoilt.
        let _relaxed = driver().and_then(Relaxed::enter);
        if self.is_lost.load(Ordering::Relaxed) {
            std::mem::forget((std::mem::take(&mut self.others), std::mem::take(&mut self.folds)));
            return;
        }
        self.folds.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        // Nobody frees what another one has mapped.
        self.others.clear();
        match self.part_from_others() {
            // SAFETY: the field is not used again.
            Ok(()) => unsafe { ManuallyDrop::drop(&mut self.own) },
            // Another rank may still read it. It goes with the process.
            Err(cause) => tracing::info!(%cause, "a device's memory that others of the host have mapped is kept"),
        }
    }
}

/// The elements of a vector that the rank at this position of so many folds.
fn part(count: u64, ranks: usize, position: usize) -> Range<u64> {
    let each = count.div_ceil(ranks as u64).next_multiple_of(STEP);
    let start = (each * position as u64).min(count);
    start..(start + each).min(count)
}

/// The bytes for a chunk in a device's memory, and for its result behind it.
fn half(plan: &Plan) -> usize {
    (plan.buffer / 2).next_multiple_of(ALIGNMENT)
}

/// The bytes of memory that a rank's device needs.
fn whole(plan: &Plan) -> usize {
    (2 * half(plan) * plan.depth).next_multiple_of(BLOCK)
}

/// The bytes from which on it is worth its barriers. NCCL on each host, which does the same for
/// programs that have it, is used from the same length on.
const SHORTEST: u64 = 256 << 10;
/// Parts begin at multiples of so many elements, and memory at multiples of so many bytes: threads
/// of a device that read side by side then share what they read.
const STEP: u64 = 256;
const ALIGNMENT: usize = 256;
/// The driver may take less out of a block of its own, of which another process maps the whole.
const BLOCK: usize = 2 << 20;
/// The most ranks of a host that combine: a fold has registers for each.
const RANKS_MAX: usize = 16;
/// How often a rank that waits for others looks whether they may still come, and how long it waits
/// for what they have posted before.
const WATCH: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_secs(1);
/// How long a rank that frees its group waits for others of its host.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOKS: Pause = Pause::growing(Duration::from_micros(50), Duration::from_millis(2), 4);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation;

    #[test]
    fn parts_are_all_of_a_vector() {
        for count in [0, 1, 255, 256, 257, 1000, 100_003] {
            for ranks in 2..=16 {
                let parts: Vec<_> = (0..ranks).map(|position| part(count, ranks, position)).collect();
                assert_eq!((parts[0].start, parts[ranks - 1].end), (0, count));
                assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{count} by {ranks}");
            }
        }
    }

    #[test]
    fn long_allreduces_of_numbers_are_combined() {
        let long = operation::allreduce(1 << 20, DataType::F32, ReduceOp::Sum);
        assert!(concerns(&long, false) && !concerns(&long, true));
        assert!(!concerns(&operation::allreduce(1 << 10, DataType::F32, ReduceOp::Sum), false));
        assert!(!concerns(&operation::reduce(1 << 20, DataType::F32, ReduceOp::Sum, 0), false));
        let pair = DataType::PAIRS[0];
        assert!(!concerns(&operation::allreduce(1 << 20, pair, ReduceOp::MaxLoc), false));
    }
}
