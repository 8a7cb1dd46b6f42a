//! Version 10.

use std::ffi::c_int;

use super::properties::{V9, give};
use super::v9::{COLLNET_TABLE, CollNet};
use super::{Absent, NAME, Name, Out, Pointer};
use crate::log::Logger;
use crate::net;

/// `ncclNet_v10_t`.
#[repr(C)]
pub struct Net {
    name: Name,
    /// With a logger and the function of a profiler.
    init: unsafe extern "C" fn(Option<Logger>, Pointer) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut V9) -> c_int,
    listen: unsafe extern "C" fn(c_int, Pointer, Out) -> c_int,
    /// With a device, a configuration, a handle, the connection, and its part on the device.
    connect: unsafe extern "C" fn(c_int, Pointer, Pointer, Out, Out) -> c_int,
    accept: unsafe extern "C" fn(Pointer, Out, Out) -> c_int,
    register: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Out) -> c_int,
    register_dma_buf: Absent,
    deregister: unsafe extern "C" fn(Pointer, Pointer) -> c_int,
    send: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Pointer, Pointer, Out) -> c_int,
    receive: unsafe extern "C" fn(Pointer, c_int, Out, *mut usize, *mut c_int, Out, Out, Out) -> c_int,
    flush: unsafe extern "C" fn(Pointer, c_int, Out, *mut c_int, Out, Out) -> c_int,
    test: unsafe extern "C" fn(Pointer, *mut c_int, *mut c_int) -> c_int,
    close_send: unsafe extern "C" fn(Pointer) -> c_int,
    close_receive: unsafe extern "C" fn(Pointer) -> c_int,
    close_listener: unsafe extern "C" fn(Pointer) -> c_int,
    device_registration: Absent,
    device_has_consumed: Absent,
    make_virtual_device: Absent,
}

/// What NCCL looks for.
#[unsafe(export_name = "ncclNetPlugin_v10")]
pub static NET: Net = Net {
    name: Name::new(NAME),
    init,
    devices: net::devices,
    properties: give::<V9>,
    listen: net::listen,
    connect,
    accept: net::accept,
    register: net::register,
    register_dma_buf: None,
    deregister: net::deregister,
    send,
    receive,
    flush: net::flush,
    test: net::test,
    close_send: net::close,
    close_receive: net::close,
    close_listener: net::close_listener,
    device_registration: None,
    device_has_consumed: None,
    make_virtual_device: None,
};

/// What NCCL looks for.
#[unsafe(export_name = "ncclCollNetPlugin_v10")]
pub static COLLNET: CollNet = COLLNET_TABLE;

unsafe extern "C" fn init(logger: Option<Logger>, _profiler: Pointer) -> c_int {
    net::init(logger)
}

unsafe extern "C" fn connect(
    _device: c_int,
    _configuration: Pointer,
    handle: Pointer,
    comm: Out,
    _offload: Out,
) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::connect(handle, comm) }
}

pub unsafe extern "C" fn send(
    comm: Pointer,
    data: Pointer,
    size: usize,
    _tag: c_int,
    _registration: Pointer,
    _profile: Pointer,
    request: Out,
) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::send(comm, data, size, request) }
}

pub unsafe extern "C" fn receive(
    comm: Pointer,
    count: c_int,
    data: Out,
    sizes: *mut usize,
    _tags: *mut c_int,
    _registrations: Out,
    _profiles: Out,
    request: Out,
) -> c_int {
    // SAFETY: NCCL's contract: there are as many sizes as the count says.
    unsafe { net::receive(comm, count, data, || *sizes, request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_as_many_entries_as_the_declaration() {
        assert_eq!(size_of::<Net>(), 20 * 8);
    }
}
