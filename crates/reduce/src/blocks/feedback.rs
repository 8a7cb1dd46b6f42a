//! Error feedback: what a member's own rounding takes from a vector is added to the next one.

use trib_wire::{DataType, INT8_BLOCK, Scalar};

use super::{Kernel, are_defined_on, block, run};
use crate::Path;
use crate::element::{BF16, Element, F16, Unaligned, elements_mut};

/// Adds the residual to `vector`, rounds each element to the nearest that its block and its type
/// can hold, ties to even, and leaves in `residual` what that has taken away, as far as the type
/// has digits for it. What is rounded so travels as it is. A block that has no scale, because an
/// element is not finite or above 127 x 2^121, becomes no numbers, and leaves no residual.
///
/// # Panics
///
/// If the type is none that [`are_defined_on`] names, or the two have not one length.
pub fn feed_back(dtype: DataType, vector: &mut [u8], residual: &mut [u8]) {
    feed_back_on(Path::best(), dtype, vector, residual);
}

/// [`feed_back`] with the instructions of one path, for tests and measurements.
///
/// # Panics
///
/// As [`feed_back`], and when this processor lacks the instructions of the path.
pub fn feed_back_on(path: Path, dtype: DataType, vector: &mut [u8], residual: &mut [u8]) {
    assert!(path.is_available(), "this processor has no {path}");
    assert!(are_defined_on(dtype), "error feedback of {dtype}");
    assert_eq!(vector.len(), residual.len(), "the bytes of the residual");
    match dtype.value() {
        Scalar::F16 => run(path, FeedBack { vector: elements_mut::<F16>(vector), residual: elements_mut(residual) }),
        Scalar::BF16 => run(path, FeedBack { vector: elements_mut::<BF16>(vector), residual: elements_mut(residual) }),
        _ => run(path, FeedBack { vector: elements_mut::<f32>(vector), residual: elements_mut(residual) }),
    }
}

struct FeedBack<'a, E> {
    vector: &'a mut [Unaligned<E>],
    residual: &'a mut [Unaligned<E>],
}

impl<E: Element<Wide = f32>> Kernel for FeedBack<'_, E> {
    #[inline(always)]
    fn run(self) {
        for (elements, residual) in self.vector.chunks_mut(INT8_BLOCK).zip(self.residual.chunks_mut(INT8_BLOCK)) {
            let mut values = [0.0; INT8_BLOCK];
            for ((value, element), own) in values.iter_mut().zip(&*elements).zip(&*residual) {
                *value = element.0.widen() + own.0.widen();
            }
            let rounded = block::nearest(&values);
            for ((element, own), (value, rounded)) in
                elements.iter_mut().zip(residual).zip(values.into_iter().zip(rounded))
            {
                element.0 = within::<E>(rounded);
                let lost = E::narrow(value - element.0.widen());
                own.0 = if lost.widen().is_finite() { lost } else { E::narrow(0.0) };
            }
        }
    }
}

/// A multiple of the scale as an element. The largest numbers of float16 round to 64 scales, which
/// it has not; 63 it has.
#[inline(always)]
fn within<E: Element<Wide = f32>>(rounded: f32) -> E {
    let element = E::narrow(rounded);
    if element.widen().is_infinite() { E::narrow(rounded - rounded / 64.0) } else { element }
}
