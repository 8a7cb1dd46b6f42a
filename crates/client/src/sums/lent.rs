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
        if len == 0 {
            return Ok(Lent { bytes: Vec::new(), len, borrower: None });
        }
        // Surveys are short and limbs long: the memory of one is of little use to the other. Where
        // none is long enough the longest grows, so that there are never more than are lent at
        // once.
        let fits = |spare: &Vec<u8>| if spare.len() >= len { (0, spare.len()) } else { (1, usize::MAX - spare.len()) };
        let best = self.0.iter().enumerate().min_by_key(|(_, spare)| fits(spare)).map(|(at, _)| at);
        let mut bytes = best.map(|at| self.0.swap_remove(at)).unwrap_or_default();
        if bytes.len() < len {
            bytes
                .try_reserve_exact(len - bytes.len())
                .map_err(|cause| Error::Memory(format!("no memory for the limbs of a sum: {cause}")))?;
            bytes.resize(len, 0);
        }
        Ok(Lent { bytes, len, borrower: None })
    }

    /// Takes back what is not used any more.
    pub(super) fn give(&mut self, mut lent: Lent) {
        if lent.is_free() && !lent.bytes.is_empty() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spares_are_those_that_fit_best_and_never_more_than_were_lent_at_once() {
        let mut spares = Spares::default();
        for round in 1..20 {
            let (survey, limbs, none) =
                (spares.take(6).unwrap(), spares.take(1000 * round).unwrap(), spares.take(0).unwrap());
            assert_eq!([survey.bytes().len(), limbs.bytes().len(), none.bytes().len()], [6, 1000 * round, 0]);
            assert!(survey.bytes.len() == 6 && limbs.bytes.len() == 1000 * round && none.bytes.capacity() == 0);
            [survey, limbs, none].into_iter().for_each(|lent| spares.give(lent));
            assert_eq!(spares.0.len(), 2);
        }
        assert_eq!(spares.take(10).unwrap().bytes().len(), 10, "of the long one");
    }
}
