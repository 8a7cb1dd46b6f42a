//! One sum, from the call to its result.

use std::sync::{Arc, Mutex, PoisonError};

use trib_wire::Signature;

use super::blocks;
use super::call::{Call, Part};
use super::limbs::Rounds;
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::sum_kind::SumKind;

/// A sum that is to be taken.
pub(crate) struct Sum {
    kind: SumKind,
    call: Call,
    /// The operation that is waited for.
    current: Mutex<Option<Arc<Completion>>>,
}

impl Sum {
    /// Checks a call in a group of `size`, in which this process has `rank`.
    pub(crate) fn new(
        shared: &Shared,
        kind: SumKind,
        (signature, part): (Signature, Part),
        (size, rank): (u32, u32),
        input: Input,
        output: *mut u8,
    ) -> Result<Sum, Error> {
        let call = Call::new(signature, part, (size, rank), input, output)?;
        super::check(shared, kind, &signature, size)?;
        Ok(Sum { kind, call, current: Mutex::new(None) })
    }

    /// What was called.
    pub(crate) fn signature(&self) -> Signature {
        self.call.signature
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
        match self.kind.order_free() {
            Some(kind) => Rounds { kind, call: &self.call, shared, group }.take(wait),
            None => blocks::take(&self.call, shared, group, wait),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Completion>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
