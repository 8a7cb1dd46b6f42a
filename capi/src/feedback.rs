//! Error feedback of int8 sums, from section "Groups".

use std::ffi::{c_float, c_int, c_void};

use trib_client::{Error, feed_back};

use crate::boundary::{guard, writable};
use crate::collective::datatype;

/// Multiplies a vector, adds what was rounded away of it before, rounds it as it will travel, and
/// keeps what that takes away.
///
/// # Safety
/// The header's contract: `vector` and `residual` are `count` elements each, which nobody else uses
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_int8_feed_back(
    vector: *mut c_void,
    residual: *mut c_void,
    count: usize,
    t: c_int,
    factor: c_float,
) -> c_int {
    guard(|| {
        let dtype = datatype(t)?;
        let bytes = count.checked_mul(dtype.size()).filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| Error::Invalid(format!("no memory holds {count} elements of {dtype}")))?;
        if bytes == 0 {
            return feed_back(dtype, factor, &mut [], &mut []);
        }
        writable(vector, "vector")?;
        writable(residual, "residual")?;
        if vector.addr().abs_diff(residual.addr()) < bytes {
            return Err(Error::Invalid("the vector and its residual overlap".into()));
        }
        // SAFETY: the contract above; the two do not overlap.
        let both = unsafe { [vector, residual].map(|start| std::slice::from_raw_parts_mut(start.cast(), bytes)) };
        let [vector, residual] = both;
        feed_back(dtype, factor, vector, residual)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: c_int = 4;

    fn code(vector: *mut f32, residual: *mut f32, count: usize, t: c_int) -> c_int {
        // SAFETY: the callers pass memory of `count` elements, or what is refused before any use.
        unsafe { trib_int8_feed_back(vector.cast(), residual.cast(), count, t, 1.0) }
    }

    #[test]
    fn a_vector_and_its_residual_are_two_pieces_of_memory() {
        let (mut vector, mut residual) = ([1.01f32; 40], [0f32; 40]);
        assert_eq!(code(vector.as_mut_ptr(), residual.as_mut_ptr(), 40, F32), 0);
        assert!(vector[39] != 1.01 && (vector[39] + residual[39] - 1.01).abs() < 1e-7);
        assert_eq!(code(std::ptr::null_mut(), std::ptr::null_mut(), 0, F32), 0, "nothing has nothing to lose");
        let start = vector.as_mut_ptr();
        let refused = [
            code(std::ptr::null_mut(), residual.as_mut_ptr(), 40, F32),
            code(start, start.wrapping_add(39), 40, F32),
            code(start, residual.as_mut_ptr(), usize::MAX / 2, F32),
            code(start, residual.as_mut_ptr(), 20, 5),
            code(start, residual.as_mut_ptr(), 40, 77),
        ];
        assert!(refused.iter().all(|code| *code < 0), "{refused:?}");
    }
}
