//! Error feedback: what a member's own rounding takes from a vector is added to the next one.

use trib_wire::{DataType, INT8_BLOCK, Scalar};

use super::{Kernel, are_defined_on, block, run};
use crate::Path;
use crate::element::{BF16, Element, F16, Unaligned, elements_mut};

/// Multiplies `vector` by `factor`, adds the residual, rounds each element to the nearest that its
/// block and its type can hold, ties to even, and leaves in `residual` what that has taken away, as
/// far as the type has digits for it. What is rounded so travels as it is. A block that has no
/// scale, because an element is not finite or above 127 x 2^121, becomes no numbers, and leaves no
/// residual.
///
/// # Panics
///
/// If the type is none that [`are_defined_on`] names, or the two have not one length.
pub fn feed_back(dtype: DataType, factor: f32, vector: &mut [u8], residual: &mut [u8]) {
    feed_back_on(Path::best(), dtype, factor, vector, residual);
}

/// [`feed_back`] with the instructions of one path, for tests and measurements.
///
/// # Panics
///
/// As [`feed_back`], and when this processor lacks the instructions of the path.
pub fn feed_back_on(path: Path, dtype: DataType, factor: f32, vector: &mut [u8], residual: &mut [u8]) {
    assert!(path.is_available(), "this processor has no {path}");
    assert!(are_defined_on(dtype), "error feedback of {dtype}");
    assert_eq!(vector.len(), residual.len(), "the bytes of the residual");
    match dtype.value() {
        Scalar::F16 => {
            run(path, FeedBack { factor, vector: elements_mut::<F16>(vector), residual: elements_mut(residual) })
        }
        Scalar::BF16 => {
            run(path, FeedBack { factor, vector: elements_mut::<BF16>(vector), residual: elements_mut(residual) })
        }
        _ => run(path, FeedBack { factor, vector: elements_mut::<f32>(vector), residual: elements_mut(residual) }),
    }
}

struct FeedBack<'a, E> {
    factor: f32,
    vector: &'a mut [Unaligned<E>],
    residual: &'a mut [Unaligned<E>],
}

impl<E: Element<Wide = f32>> Kernel for FeedBack<'_, E> {
    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.vector.as_chunks_mut();
        let (residuals, rest_residual) = self.residual.as_chunks_mut();
        for (elements, residual) in blocks.iter_mut().zip(residuals) {
            step(self.factor, elements, residual);
        }
        if !rest.is_empty() {
            // Zeros change nothing of a block.
            let mut elements = [Unaligned(E::narrow(0.0)); INT8_BLOCK];
            let mut residual = elements;
            elements[..rest.len()].copy_from_slice(rest);
            residual[..rest.len()].copy_from_slice(rest_residual);
            step(self.factor, &mut elements, &mut residual);
            rest.copy_from_slice(&elements[..rest.len()]);
            rest_residual.copy_from_slice(&residual[..rest_residual.len()]);
        }
    }
}

/// One block, in loops of one length over memory of its own, which the compiler vectorises.
#[inline(always)]
fn step<E: Element<Wide = f32>>(
    factor: f32,
    elements: &mut [Unaligned<E>; INT8_BLOCK],
    residual: &mut [Unaligned<E>; INT8_BLOCK],
) {
    let mut values = [0.0; INT8_BLOCK];
    for at in 0..INT8_BLOCK {
        values[at] = elements[at].0.widen() * factor + residual[at].0.widen();
    }
    let mut rounded = values;
    let Some(scale) = block::round(&mut rounded) else {
        *elements = [Unaligned(E::narrow(f32::NAN)); INT8_BLOCK];
        *residual = [Unaligned(E::narrow(0.0)); INT8_BLOCK];
        return;
    };
    let most = most_in_float16(scale);
    for at in 0..INT8_BLOCK {
        let element = within::<E>(rounded[at], most);
        elements[at].0 = element;
        rounded[at] = element.widen();
    }
    for at in 0..INT8_BLOCK {
        let lost = E::narrow(values[at] - rounded[at]);
        residual[at].0 = if lost.widen().is_finite() { lost } else { E::narrow(0.0) };
    }
}

/// A multiple of the scale as an element. Float16 alone does not have all of them: the largest
/// numbers that it has round to one that it has not, and with a residual they are beyond it.
#[inline(always)]
fn within<E: Element<Wide = f32>>(rounded: f32, most_in_float16: f32) -> E {
    let element = E::narrow(rounded);
    if element.widen().is_infinite() { E::narrow(most_in_float16.copysign(rounded)) } else { element }
}

/// The largest multiple of the scale that float16 has. Where it has none, elements are beyond it by
/// far, and infinite.
#[inline(always)]
fn most_in_float16(scale: f32) -> f32 {
    if scale > FLOAT16_MAX { f32::INFINITY } else { (FLOAT16_MAX / scale).floor() * scale }
}

/// The largest number that float16 has.
const FLOAT16_MAX: f32 = 65504.0;
