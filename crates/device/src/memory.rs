//! Memory of a device that other processes of its host reach.

use std::ffi::c_uint;

use crate::context::{Context, Current};
use crate::error::Error;
use crate::ipc_handle::IpcHandle;

/// Memory of a device, of which its owner gives others a handle. It may be dropped only when
/// nothing that is under way touches it, in any process.
#[derive(Debug)]
pub struct Memory {
    context: Context,
    start: u64,
}

/// Memory of another process's device, which this process has mapped. It may be dropped only when
/// nothing that is under way in this process touches it.
#[derive(Debug)]
pub struct Imported {
    context: Context,
    start: u64,
}

impl Memory {
    /// Takes memory of the context's device.
    pub fn new(current: &Current, len: usize) -> Result<Memory, Error> {
        let mut start = 0;
        // SAFETY: the result is written where it belongs.
        unsafe { current.driver().allocate(&raw mut start, len) }?;
        Ok(Memory { context: current.context, start })
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        core::ptr::without_provenance_mut(self.start as usize)
    }

    /// The handle by which other processes map it.
    pub fn ipc_handle(&self, current: &Current) -> Result<IpcHandle, Error> {
        let mut handle = IpcHandle([0; IpcHandle::LEN]);
        // SAFETY: the memory is there; the result is written where it belongs.
        unsafe { current.driver().export(&raw mut handle, self.start) }?;
        Ok(handle)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Where the context is gone, its memory is gone with it.
        if let Ok(current) = self.context.enter() {
            // SAFETY: the memory is ours and not used again.
            let _ = unsafe { current.driver().free(self.start) };
        }
    }
}

impl Imported {
    /// Maps another process's memory, for kernels of the context's device and for copies. It fails
    /// where that device does not reach the other one.
    pub fn new(current: &Current, handle: IpcHandle) -> Result<Imported, Error> {
        let mut start = 0;
        // SAFETY: the driver takes any handle; the result is written where it belongs.
        unsafe { current.driver().import(&raw mut start, handle, LAZY_ENABLE_PEER_ACCESS) }?;
        Ok(Imported { context: current.context, start })
    }

    /// Where it begins in this process.
    pub fn start(&self) -> *mut u8 {
        core::ptr::without_provenance_mut(self.start as usize)
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        if let Ok(current) = self.context.enter() {
            // SAFETY: the memory was mapped by this process, and is not used again.
            let _ = unsafe { current.driver().close_import(self.start) };
        }
    }
}

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY_ENABLE_PEER_ACCESS: c_uint = 1;
