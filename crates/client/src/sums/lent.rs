//! Memory that is lent to an operation of the group.

use std::sync::Arc;

use crate::completion::Completion;
use crate::error::Error;

/// A vector of ours. Dropped before its operation is over, it stays allocated: the engine may still
/// read or write it.
pub(super) struct Lent {
    /// As many as it ever had.
    bytes: Vec<u8>,
    len: usize,
    borrower: Option<Arc<Completion>>,
}

/// Memory that is used again: new memory costs a fault for each of its pages.
#[derive(Default)]
pub(super) struct Spares(Vec<Vec<u8>>);

impl Spares {
    /// So many bytes, with any content.
    pub(super) fn take(&mut self, len: usize) -> Result<Lent, Error> {
        // Surveys are short and limbs long: the memory of one is of no use to the other.
        let fitting = self.0.iter().enumerate().filter(|(_, spare)| spare.len() >= len);
        let best = fitting.min_by_key(|(_, spare)| spare.len()).map(|(at, _)| at);
        let mut bytes = best.map(|at| self.0.swap_remove(at)).unwrap_or_default();
        if bytes.len() < len {
            bytes
                .try_reserve_exact(len)
                .map_err(|cause| Error::Memory(format!("no memory for the limbs of a sum: {cause}")))?;
            bytes.resize(len, 0);
        }
        Ok(Lent { bytes, len, borrower: None })
    }

    /// Takes back what is not used any more.
    pub(super) fn give(&mut self, mut lent: Lent) {
        if lent.is_free() {
            self.0.push(std::mem::take(&mut lent.bytes));
        }
    }
}

impl Lent {
    /// Notes the operation that has it.
    pub(super) fn lend(&mut self, borrower: &Arc<Completion>) {
        self.borrower = Some(borrower.clone());
    }

    fn is_free(&self) -> bool {
        self.borrower.as_ref().is_none_or(|borrower| borrower.is_done())
    }

    /// The bytes, when their operation is over.
    pub(super) fn bytes(&self) -> &[u8] {
        assert!(self.is_free(), "memory that an operation has");
        &self.bytes[..self.len]
    }

    /// The same to be written.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_free(), "memory that an operation has");
        &mut self.bytes[..self.len]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_free() {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}
