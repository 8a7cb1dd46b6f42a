//! Section "Predictions": for which operations of a group the tree is expected to pay.

use std::ffi::c_int;
use std::mem::size_of;

use trib_client::{Error, Range, Rank, ShapePrediction};

use crate::boundary::{given, guard, writable};
use crate::context::TribContext;

/// `trib_range`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TribRange {
    from: u64,
    to: u64,
}

/// `trib_prediction`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TribPrediction {
    struct_size: usize,
    known: u32,
    barrier: u32,
    allreduces: u32,
    reduces: u32,
    allreduce: [TribRange; 2],
    reduce: [TribRange; 2],
    in_memory: u32,
    unused: u32,
}

/// Predicts for a group of these ranks.
///
/// # Safety
/// The header's contract: `ctx` came from `trib_init`, `world_ranks` points to `size` ranks,
/// `prediction` to a `trib_prediction` with its size in `struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_predict(
    ctx: *mut TribContext,
    world_ranks: *const u32,
    size: u32,
    prediction: *mut TribPrediction,
) -> c_int {
    guard(|| {
        writable(prediction, "prediction")?;
        // SAFETY: the caller's contract; the size is the first field.
        let given_size = unsafe { prediction.cast::<usize>().read() };
        if given_size < size_of::<usize>() {
            return Err(Error::Invalid("prediction->struct_size is not sizeof(trib_prediction)".into()));
        }
        // SAFETY: the caller's contract.
        let (context, ranks) = unsafe {
            given(world_ranks, "world_ranks")?;
            (&given(ctx, "ctx")?.context, core::slice::from_raw_parts(world_ranks, size as usize))
        };
        let members: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
        let ours = match context.shares_memory(&members) {
            true => TribPrediction { in_memory: 1, ..TribPrediction::default() },
            false => context.prediction(&members).map(in_c).unwrap_or_default(),
        };
        let ours = TribPrediction { struct_size: given_size, ..ours };
        let len = given_size.min(size_of::<TribPrediction>());
        // SAFETY: the caller's struct has `given_size` bytes, ours at least `len`.
        unsafe { core::ptr::copy_nonoverlapping((&raw const ours).cast::<u8>(), prediction.cast::<u8>(), len) };
        Ok(())
    })
}

fn in_c(shape: &ShapePrediction) -> TribPrediction {
    let ranges = |ranges: &[Range]| {
        let mut two = [TribRange::default(); 2];
        // A job with more than two ranges is refused when it is joined.
        for (slot, range) in two.iter_mut().zip(ranges) {
            *slot = TribRange { from: range.from, to: range.to };
        }
        (ranges.len().min(2) as u32, two)
    };
    let ((allreduces, allreduce), (reduces, reduce)) = (ranges(&shape.allreduce), ranges(&shape.reduce));
    TribPrediction {
        struct_size: 0,
        known: 1,
        barrier: u32::from(shape.barrier),
        allreduces,
        reduces,
        allreduce,
        reduce,
        in_memory: 0,
        unused: 0,
    }
}
