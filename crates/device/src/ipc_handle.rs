//! By which processes tell each other of memory of a device.

use std::fmt;

/// A handle (`CUipcMemHandle`).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct IpcHandle(pub [u8; IpcHandle::LEN]);

impl IpcHandle {
    /// Its bytes.
    pub const LEN: usize = 64;
}

impl fmt::Debug for IpcHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IpcHandle")
    }
}
