//! Section "Memory": names for regions. The library keeps nothing about a region but its job and
//! never touches it: the memory may be a GPU's, and it may be freed before its name is. Of a GPU's
//! memory the driver is told that the program's copies to it are to be over when they return.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::RegParams;
use crate::boundary::{guard, writable};
use crate::context::CONTEXTS;
use crate::cuda;
use crate::error::{ENOMEM, Failure};
use crate::handle::{Kind, Table};

/// Regions that C holds.
pub static REGIONS: Table<Named> = Table::new(Kind::Region);

/// A registered region.
pub struct Named {
    /// The number of the job to which it belongs.
    pub context: u64,
}

/// Names a region.
///
/// # Safety
/// `mr` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_reg_mr(
    context: *mut c_void,
    buf: *mut c_void,
    len: usize,
    mr: *mut *mut c_void,
) -> c_int {
    guard("sharp_coll_reg_mr", || {
        let _ = len;
        writable(mr, "mr")?;
        // Some clients use the handle without checking the result. SAFETY: checked above.
        unsafe { mr.write(core::ptr::null_mut()) };
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        if context.takes_gpu_memory {
            cuda::prepare(buf.cast::<u8>());
        }
        let named = Arc::new(Named { context: context.number });
        let handle = REGIONS.insert(named).ok_or_else(|| Failure::new(ENOMEM, "too many regions"))?;
        // SAFETY: as above.
        unsafe { mr.write(handle) };
        Ok(())
    })
}

/// Does the same; the further properties of the region are not needed.
///
/// # Safety
/// `mr` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_reg_mr_v2(
    context: *mut c_void,
    buf: *mut c_void,
    len: usize,
    _params: *const RegParams,
    mr: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { sharp_coll_reg_mr(context, buf, len, mr) }
}

/// Forgets a region of this job.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_dereg_mr(context: *mut c_void, mr: *mut c_void) -> c_int {
    guard("sharp_coll_dereg_mr", || {
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        let no_region = || Failure::invalid("there is no such region in this job");
        REGIONS.get(mr).filter(|region| region.context == context.number).ok_or_else(no_region)?;
        REGIONS.remove(mr).map(|_| ()).ok_or_else(no_region)
    })
}
