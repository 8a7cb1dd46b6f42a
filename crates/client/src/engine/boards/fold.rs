//! Folding what members have given, in the order of the tree.

use trib_reduce::{FoldError, fold_as};
use trib_transport::memory::copy;
use trib_wire::Arithmetic;
use trib_wire::ids::CHILDREN_MAX;

use super::shape::Shape;

/// Folds, and keeps the memory that this takes.
#[derive(Debug, Default)]
pub(super) struct Folder {
    spares: Vec<Vec<u8>>,
}

impl Folder {
    /// Folds `into.len()` bytes from byte `from` on of what each member has given, `parts` by
    /// position. It goes through them in stretches that stay in the processor's nearest memory.
    ///
    /// # Panics
    /// If a part has fewer bytes.
    pub(super) fn fold<'a>(
        &mut self,
        shape: &Shape,
        arithmetic: Arithmetic,
        parts: &impl Fn(usize) -> &'a [u8],
        from: usize,
        into: &mut [u8],
    ) -> Result<(), FoldError> {
        let element = arithmetic.element_size();
        let mut at = from;
        for stretch in into.chunks_mut(STRETCH / element * element) {
            self.stretch(shape, arithmetic, parts, at, stretch)?;
            at += stretch.len();
        }
        Ok(())
    }

    fn stretch<'a>(
        &mut self,
        shape: &Shape,
        arithmetic: Arithmetic,
        parts: &impl Fn(usize) -> &'a [u8],
        at: usize,
        into: &mut [u8],
    ) -> Result<(), FoldError> {
        let len = into.len();
        let part = |member: usize| &parts(member)[at..at + len];
        if let Shape::Node(children) = shape
            && let [Shape::Member(one), Shape::Member(other)] = children[..]
        {
            copy(part(one), into);
            return fold_as(arithmetic, into, &[part(other)]);
        }
        let children = match shape {
            Shape::Member(member) => {
                copy(part(*member), into);
                return Ok(());
            }
            Shape::Node(children) => children,
        };
        let mut sources: [&[u8]; CHILDREN_MAX] = [&[]; CHILDREN_MAX];
        let mut inner: Vec<Vec<u8>> = Vec::new();
        for child in children.iter().skip(1) {
            if let Shape::Node(_) = child {
                let mut scratch = self.spares.pop().unwrap_or_default();
                scratch.resize(len, 0);
                self.stretch(child, arithmetic, parts, at, &mut scratch)?;
                inner.push(scratch);
            }
        }
        let mut folded = inner.iter();
        for (source, child) in sources.iter_mut().zip(children.iter().skip(1)) {
            *source = match child {
                Shape::Member(member) => part(*member),
                Shape::Node(_) => folded.next().map_or(&[], |scratch| &scratch[..]),
            };
        }
        if let Some(first) = children.first() {
            self.stretch(first, arithmetic, parts, at, into)?;
        }
        let result = fold_as(arithmetic, into, &sources[..children.len().saturating_sub(1)]);
        self.spares.append(&mut inner);
        result
    }
}

/// In bytes. Of three vectors so much fits into the smallest cache.
const STRETCH: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use trib_wire::{DataType, ReduceOp};

    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn each_node_rounds_by_itself() {
        let sum = Arithmetic::Elements(DataType::F32, ReduceOp::Sum);
        let values = [1e8f32, -1e8, 1.0, 0.5];
        let given: Vec<Vec<u8>> = values.iter().map(|value| bytes(&vec![*value; 5000])).collect();
        let member = Shape::Member;
        let fold = |shape: &Shape| {
            let mut into = vec![0; 4 * 5000 - 8];
            Folder::default().fold(shape, sum, &|at| &given[at], 8, &mut into).unwrap();
            assert!(into.chunks(4).all(|value| value == &into[..4]));
            f32::from_le_bytes(into[..4].try_into().unwrap())
        };
        let flat = Shape::Node((0..4).map(member).collect());
        assert_eq!(fold(&flat), ((1e8f32 + -1e8) + 1.0) + 0.5);
        let pairs = Shape::Node(vec![Shape::Node(vec![member(0), member(2)]), Shape::Node(vec![member(1), member(3)])]);
        assert_eq!(fold(&pairs), (1e8f32 + 1.0) + (-1e8 + 0.5));
        assert_ne!(fold(&pairs), fold(&flat));
        let behind = Shape::Node(vec![member(2), Shape::Node(vec![member(0), member(1)]), member(3)]);
        assert_eq!(fold(&behind), 1.5);
    }

    #[test]
    fn what_is_not_defined_is_an_error() {
        let sum = Arithmetic::Elements(DataType::F32, ReduceOp::BitXor);
        let given = bytes(&[1.0]);
        let shape = Shape::Node(vec![Shape::Member(0), Shape::Member(1)]);
        assert!(Folder::default().fold(&shape, sum, &|_| &given, 0, &mut [0; 4]).is_err());
    }
}
