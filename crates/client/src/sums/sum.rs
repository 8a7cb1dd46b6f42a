//! One sum, from the call to its result.

use std::sync::{Arc, Mutex, PoisonError};

use trib_proto::window;
use trib_sums::{Kind, Layout, merge, settle, spread, survey};
use trib_wire::{DataType, Signature};

use super::lent::{Lent, Spares};
use super::rows::Rows;
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::operation;
use crate::posting::{Posting, check, lacks_buffer};

/// A sum that is to be taken.
pub(crate) struct Sum {
    kind: Kind,
    signature: Signature,
    rows: Rows,
    input: *const u8,
    output: *mut u8,
    /// Whether this member gets a result.
    gets: bool,
    /// The operation that is waited for.
    current: Mutex<Option<Arc<Completion>>>,
}

// SAFETY: the caller gave the buffers to the library until the sum is over; one thread takes it.
unsafe impl Send for Sum {}
// SAFETY: as above; only that thread touches the buffers.
unsafe impl Sync for Sum {}

/// A chunk on its way.
struct Chunk {
    number: usize,
    surveys: Survey,
}

/// What is known of a chunk's elements.
enum Survey {
    /// Nothing: its limbs have room for every number.
    Needless(Layout),
    /// It is being found out.
    Asked(Lent, Arc<Completion>),
}

/// The limbs of a chunk on their way.
struct Limbs {
    number: usize,
    layout: Layout,
    /// What this member gives; kept until its operation is over.
    given: Lent,
    gotten: Lent,
    posted: Arc<Completion>,
}

impl Sum {
    /// Checks a call in a group of `size`, in which this process has `rank`.
    pub(crate) fn new(
        kind: Kind,
        signature: Signature,
        (size, rank): (u32, u32),
        input: Input,
        output: *mut u8,
    ) -> Result<Sum, Error> {
        check(&signature, input, (size, rank))?;
        super::check(kind, &signature, size)?;
        let (given, gotten) = window::shares(&signature, size, rank);
        let start = match input {
            Input::At(start) => start,
            Input::InPlace => output.cast_const(),
        };
        if (!given.is_empty() && start.is_null()) || (!gotten.is_empty() && output.is_null()) {
            return Err(lacks_buffer(signature.collective));
        }
        let rows = Rows::new(&signature, size);
        let (gets, current) = (!gotten.is_empty(), Mutex::new(None));
        Ok(Sum { kind, signature, rows, input: start, output, gets, current })
    }

    /// What was called.
    pub(crate) fn signature(&self) -> Signature {
        self.signature
    }

    /// Takes the sum; `wait` waits for an operation of the group. If this rank alone fails, it
    /// leaves the group, because others wait for what it has not posted.
    pub(crate) fn take(
        &self,
        shared: &Shared,
        group: &GroupState,
        wait: impl Fn(&Completion) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let taken = self.rounds(shared, group, wait);
        *self.lock() = None;
        if let Err(error) = &taken
            && group.error().is_none()
            && !matches!(error, Error::Forked(_))
        {
            let why = error.with_text(format!("this rank has left the group: {error}"));
            // In a finalized context there is nobody to tell.
            let _ = shared.leave_group(group, why);
        }
        taken
    }

    /// The operation that it waits for now.
    pub(crate) fn current(&self) -> Option<Arc<Completion>> {
        self.lock().clone()
    }

    fn rounds(
        &self,
        shared: &Shared,
        group: &GroupState,
        wait: impl Fn(&Completion) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let wait = |completion: &Arc<Completion>| {
            *self.lock() = Some(completion.clone());
            wait(completion)
        };
        if self.rows.chunks() == 0 {
            // A member that has elements is told that another one has none.
            let signature = Signature { format: self.kind.survey_format(), ..self.signature };
            return wait(&post(shared, group, &signature, Input::At(self.input), self.output)?);
        }
        let (mut surveyed, mut under_way, mut spares) = (None, None, Spares::default());
        // Its order is that of all members: a survey, then the limbs of the chunk before it.
        for number in 0..self.rows.chunks() + 2 {
            let next =
                (number < self.rows.chunks()).then(|| self.ask(shared, group, number, &mut spares)).transpose()?;
            let limbs = match std::mem::replace(&mut surveyed, next) {
                Some(Chunk { number, surveys }) => {
                    let layout = self.layout(group.size, number, surveys, wait, &mut spares)?;
                    Some(self.send(shared, group, number, layout, &mut spares)?)
                }
                None => None,
            };
            if let Some(limbs) = std::mem::replace(&mut under_way, limbs) {
                wait(&limbs.posted)?;
                self.finish(&limbs);
                spares.give(limbs.given);
                spares.give(limbs.gotten);
            }
        }
        Ok(())
    }

    /// Begins to find out what the elements of a chunk are like, unless it is the only one and so
    /// short that this takes longer than limbs with room for every number.
    fn ask(&self, shared: &Shared, group: &GroupState, number: usize, spares: &mut Spares) -> Result<Chunk, Error> {
        let elements = self.rows.elements(number).len();
        if self.rows.chunks() == 1
            && let Some(layout) = self.unsurveyed(group.size, elements)
        {
            return Ok(Chunk { number, surveys: Survey::Needless(layout) });
        }
        let len = self.kind.survey_bytes(elements);
        let mut own = spares.take(len)?;
        survey(self.kind, self.signature.dtype, self.given(0, number), own.bytes_mut());
        if self.rows.count > 1 {
            let mut of_row = spares.take(len)?;
            for row in 1..self.rows.count {
                survey(self.kind, self.signature.dtype, self.given(row, number), of_row.bytes_mut());
                merge(own.bytes_mut(), of_row.bytes());
            }
            spares.give(of_row);
        }
        let count = (len / DataType::I16.size()) as u64;
        let signature = Signature {
            format: self.kind.survey_format(),
            ..operation::allreduce(count, self.signature.dtype, self.signature.op)
        };
        let start = own.bytes_mut().as_mut_ptr();
        let posted = post(shared, group, &signature, Input::InPlace, start)?;
        own.lend(&posted);
        Ok(Chunk { number, surveys: Survey::Asked(own, posted) })
    }

    /// The layout of a vector that goes without a survey.
    fn unsurveyed(&self, size: u32, elements: usize) -> Option<Layout> {
        let most = elements.saturating_mul(self.rows.count).saturating_mul(self.signature.dtype.size());
        if most > UNSURVEYED_MAX {
            return None;
        }
        let layout = Layout::unsurveyed(self.signature.dtype, size, elements);
        (layout.bytes() * self.rows.count <= UNSURVEYED_MAX).then_some(layout)
    }

    fn layout(
        &self,
        size: u32,
        number: usize,
        surveys: Survey,
        wait: impl Fn(&Arc<Completion>) -> Result<(), Error>,
        spares: &mut Spares,
    ) -> Result<Layout, Error> {
        match surveys {
            Survey::Needless(layout) => Ok(layout),
            Survey::Asked(surveys, posted) => {
                wait(&posted)?;
                let elements = self.rows.elements(number).len();
                let layout = Layout::new(self.kind, self.signature.dtype, size, elements, surveys.bytes());
                spares.give(surveys);
                Ok(layout)
            }
        }
    }

    /// Lays a chunk out as limbs and sends them.
    fn send(
        &self,
        shared: &Shared,
        group: &GroupState,
        number: usize,
        layout: Layout,
        spares: &mut Spares,
    ) -> Result<Limbs, Error> {
        let bytes = layout.bytes();
        let mut given = spares.take(bytes * self.rows.count)?;
        for row in 0..self.rows.count {
            let target = &mut given.bytes_mut()[row * bytes..][..bytes];
            spread(&layout, self.given(row, number), target);
        }
        let mut gotten = spares.take(if self.gets { bytes } else { 0 })?;
        let signature = Signature { format: layout.format(), count: layout.limbs() as u64, ..self.signature };
        let (input, output) = (given.bytes().as_ptr(), gotten.bytes_mut().as_mut_ptr());
        let posted = post(shared, group, &signature, Input::At(input), output)?;
        given.lend(&posted);
        gotten.lend(&posted);
        Ok(Limbs { number, layout, given, gotten, posted })
    }

    /// Writes the elements of a chunk, whose limbs have come.
    fn finish(&self, limbs: &Limbs) {
        if self.gets {
            // The result of a reduce-scatter is one row.
            let (from, len) = self.rows.span(0, limbs.number);
            // SAFETY: the output is as long as the call says and the library's until the sum is
            // over; this thread alone writes it, and what it has of an input in place has been
            // laid out.
            let target = unsafe { core::slice::from_raw_parts_mut(self.output.add(from), len) };
            settle(&limbs.layout, limbs.gotten.bytes(), target);
        }
    }

    /// What this member gives of a chunk in a row.
    fn given(&self, row: usize, number: usize) -> &[u8] {
        let (from, len) = self.rows.span(row, number);
        // SAFETY: the input is as long as the call says and the library's until the sum is over;
        // what is written of it in place are chunks that have been read.
        unsafe { core::slice::from_raw_parts(self.input.add(from), len) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Completion>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn post(
    shared: &Shared,
    group: &GroupState,
    signature: &Signature,
    input: Input,
    output: *mut u8,
) -> Result<Arc<Completion>, Error> {
    // SAFETY: the callers give memory of the length that the signature says, and keep it until the
    // operation is over.
    let posting = unsafe { Posting::lay_out(shared.lanes(), (group.size, group.rank), signature, input, output) }?;
    shared.post(group, posting)
}

/// Limbs of so many bytes travel in one packet, and a second round trip costs more than they do.
const UNSURVEYED_MAX: usize = 1024;
