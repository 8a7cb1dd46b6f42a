//! The tables of functions that NCCL looks for, one file for each version of the interface.
//!
//! NCCL takes the newest version that it knows. Written by hand from the documentation and the
//! public declarations of the interface (`ext-net/README.md` and `src/include/plugin/net` of
//! <https://github.com/NVIDIA/nccl>); no package has them as headers.
//!
//! | version | what it changes |
//! | --- | --- |
//! | 8 | the oldest one here; sizes of 31 bits |
//! | 9 | sizes of 64 bits; properties of virtual devices and of the longest message |
//! | 10 | a configuration when connecting, a handle for profilers with messages |
//! | 11 | a context for each communicator, `finalize` |
//! | 12 | up to eight devices in a virtual one, rails and planes |
//!
//! The newest for which NCCL looks is 8 in 2.20.5, 11 in 2.28.9, 12 in 2.30.7 and 2.32.3.
//!
//! What may be absent in a table is null: memory by DMA-BUF, work of the device, virtual devices,
//! attributes, and of CollNet allgather and reduce-scatter, which NCCL then does itself.

mod properties;
mod v10;
mod v11;
mod v12;
mod v8;
mod v9;

use std::ffi::{CStr, c_char, c_void};

/// A function that is absent in all tables.
type Absent = Option<unsafe extern "C" fn()>;

/// A name that ends, in a table.
#[repr(transparent)]
struct Name(*const c_char);

// SAFETY: it points to constant text.
unsafe impl Sync for Name {}

impl Name {
    const fn new(text: &'static CStr) -> Name {
        Name(text.as_ptr())
    }
}

/// The name by which `NCCL_NET` knows the plugin.
const NAME: &CStr = c"tributary";

type Pointer = *mut c_void;
/// Where a function writes a pointer.
type Out = *mut *mut c_void;
