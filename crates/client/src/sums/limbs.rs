//! The rounds of a sum that does not depend on order: a survey of each chunk, then its limbs.

use std::sync::Arc;

use trib_sums::{Kind, Layout, merge, settle, spread, survey};
use trib_wire::{DataType, Signature};

use super::call::{Call, post};
use super::lent::{Lent, Spares};
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::operation;

/// The rounds of one sum.
pub(super) struct Rounds<'a> {
    pub(super) kind: Kind,
    pub(super) call: &'a Call,
    pub(super) shared: &'a Shared,
    pub(super) group: &'a GroupState,
}

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

impl Rounds<'_> {
    /// Takes the sum; `wait` waits for an operation of the group.
    pub(super) fn take(&self, wait: impl Fn(&Arc<Completion>) -> Result<(), Error>) -> Result<(), Error> {
        let rows = &self.call.rows;
        if rows.chunks() == 0 {
            let signature = Signature { format: self.kind.survey_format(), ..self.call.signature };
            return wait(&self.call.post_empty(self.shared, self.group, &signature)?);
        }
        let (mut surveyed, mut under_way, mut spares) = (None, None, Spares::default());
        // Its order is that of all members: a survey, then the limbs of the chunk before it.
        for number in 0..rows.chunks() + 2 {
            let next = (number < rows.chunks()).then(|| self.ask(number, &mut spares)).transpose()?;
            let limbs = match std::mem::replace(&mut surveyed, next) {
                Some(Chunk { number, surveys }) => {
                    let layout = self.layout(number, surveys, &wait, &mut spares)?;
                    Some(self.send(number, layout, &mut spares)?)
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
    fn ask(&self, number: usize, spares: &mut Spares) -> Result<Chunk, Error> {
        let elements = self.call.rows.elements(number).len();
        // A part of a longer call is done as that is.
        if elements as u64 == self.call.part.count
            && let Some(layout) = self.unsurveyed(elements)
        {
            return Ok(Chunk { number, surveys: Survey::Needless(layout) });
        }
        let len = self.kind.survey_bytes(elements);
        let mut own = spares.take(len)?;
        survey(self.kind, self.call.signature.dtype, self.call.given(0, number), own.bytes_mut());
        if self.call.rows.count > 1 {
            let mut of_row = spares.take(len)?;
            for row in 1..self.call.rows.count {
                survey(self.kind, self.call.signature.dtype, self.call.given(row, number), of_row.bytes_mut());
                merge(own.bytes_mut(), of_row.bytes());
            }
            spares.give(of_row);
        }
        let count = (len / DataType::I16.size()) as u64;
        let signature = Signature {
            format: self.kind.survey_format(),
            ..operation::allreduce(count, self.call.signature.dtype, self.call.signature.op)
        };
        let start = own.bytes_mut().as_mut_ptr();
        let posted = post(self.shared, self.group, &signature, Input::InPlace, start)?;
        own.lend(&posted);
        Ok(Chunk { number, surveys: Survey::Asked(own, posted) })
    }

    /// The layout of a vector that goes without a survey.
    fn unsurveyed(&self, elements: usize) -> Option<Layout> {
        let most = elements.saturating_mul(self.call.rows.count).saturating_mul(self.call.signature.dtype.size());
        if most > UNSURVEYED_MAX {
            return None;
        }
        let layout = Layout::unsurveyed(self.call.signature.dtype, self.group.size, elements);
        (layout.bytes() * self.call.rows.count <= UNSURVEYED_MAX).then_some(layout)
    }

    fn layout(
        &self,
        number: usize,
        surveys: Survey,
        wait: impl Fn(&Arc<Completion>) -> Result<(), Error>,
        spares: &mut Spares,
    ) -> Result<Layout, Error> {
        match surveys {
            Survey::Needless(layout) => Ok(layout),
            Survey::Asked(surveys, posted) => {
                wait(&posted)?;
                let elements = self.call.rows.elements(number).len();
                let layout =
                    Layout::new(self.kind, self.call.signature.dtype, self.group.size, elements, surveys.bytes());
                spares.give(surveys);
                Ok(layout)
            }
        }
    }

    /// Lays a chunk out as limbs and sends them.
    fn send(&self, number: usize, layout: Layout, spares: &mut Spares) -> Result<Limbs, Error> {
        let bytes = layout.bytes();
        let mut given = spares.take(bytes * self.call.rows.count)?;
        for row in 0..self.call.rows.count {
            let target = &mut given.bytes_mut()[row * bytes..][..bytes];
            spread(&layout, self.call.given(row, number), target);
        }
        let mut gotten = spares.take(if self.call.gets { bytes } else { 0 })?;
        let signature = Signature { format: layout.format(), count: layout.limbs() as u64, ..self.call.signature };
        let (input, output) = (given.bytes().as_ptr(), gotten.bytes_mut().as_mut_ptr());
        let posted = post(self.shared, self.group, &signature, Input::At(input), output)?;
        given.lend(&posted);
        gotten.lend(&posted);
        Ok(Limbs { number, layout, given, gotten, posted })
    }

    /// Writes the elements of a chunk, whose limbs have come.
    fn finish(&self, limbs: &Limbs) {
        if self.call.gets {
            settle(&limbs.layout, limbs.gotten.bytes(), self.call.result(limbs.number));
        }
    }
}

/// Limbs of so many bytes travel in one packet, and a second round trip costs more than they do.
const UNSURVEYED_MAX: usize = 1024;
