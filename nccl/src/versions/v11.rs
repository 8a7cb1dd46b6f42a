//! Version 11.

use std::ffi::c_int;

use super::properties::{Properties, V11, give};
use super::v10::{receive, send};
use super::{Absent, NAME, Name, Out, Pointer};
use crate::log::Logger;
use crate::{coll, net};

/// `ncclNet_v11_t`, and `ncclNet_v12_t` with its own properties.
#[repr(C)]
pub struct Net<P> {
    name: Name,
    /// With a context, the communicator's number, a configuration, a logger, and the function of a
    /// profiler.
    init: unsafe extern "C" fn(Out, u64, Pointer, Option<Logger>, Pointer) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut P) -> c_int,
    listen: unsafe extern "C" fn(Pointer, c_int, Pointer, Out) -> c_int,
    connect: unsafe extern "C" fn(Pointer, c_int, Pointer, Out, Out) -> c_int,
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
    finalize: unsafe extern "C" fn(Pointer) -> c_int,
    set_attributes: Absent,
}

/// `ncclCollNet_v11_t`, and `ncclCollNet_v12_t` with its own properties.
#[repr(C)]
pub struct CollNet<P> {
    name: Name,
    init: unsafe extern "C" fn(Out, u64, Option<Logger>) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut P) -> c_int,
    listen: unsafe extern "C" fn(Pointer, c_int, Pointer, Out) -> c_int,
    connect: unsafe extern "C" fn(Out, c_int, c_int, Pointer, Out) -> c_int,
    reduce_support: unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
    register: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Out) -> c_int,
    register_dma_buf: Absent,
    deregister: unsafe extern "C" fn(Pointer, Pointer) -> c_int,
    allreduce: unsafe extern "C" fn(Pointer, Pointer, Pointer, usize, c_int, c_int, Pointer, Pointer, Out) -> c_int,
    allgather: Absent,
    reduce_scatter: Absent,
    flush: unsafe extern "C" fn(Pointer, Pointer, c_int, Pointer, Out) -> c_int,
    test: unsafe extern "C" fn(Pointer, *mut c_int, *mut c_int) -> c_int,
    close: unsafe extern "C" fn(Pointer) -> c_int,
    close_listener: unsafe extern "C" fn(Pointer) -> c_int,
    make_virtual_device: Absent,
    finalize: unsafe extern "C" fn(Pointer) -> c_int,
}

/// What NCCL looks for.
#[unsafe(export_name = "ncclNetPlugin_v11")]
pub static NET: Net<V11> = Net::table();

/// What NCCL looks for.
#[unsafe(export_name = "ncclCollNetPlugin_v11")]
pub static COLLNET: CollNet<V11> = CollNet::table();

impl<P: Properties> Net<P> {
    pub const fn table() -> Net<P> {
        Net {
            name: Name::new(NAME),
            init: init_net,
            devices: net::devices,
            properties: give::<P>,
            listen: listen_net,
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
            finalize,
            set_attributes: None,
        }
    }
}

impl<P: Properties> CollNet<P> {
    pub const fn table() -> CollNet<P> {
        CollNet {
            name: Name::new(NAME),
            init: init_collnet,
            devices: coll::devices,
            properties: give::<P>,
            listen: listen_collnet,
            connect: coll::connect,
            reduce_support: coll::reduce_support,
            register: coll::register,
            register_dma_buf: None,
            deregister: coll::deregister,
            allreduce: coll::allreduce,
            allgather: None,
            reduce_scatter: None,
            flush: coll::flush,
            test: coll::test,
            close: coll::close,
            close_listener: coll::close_listener,
            make_virtual_device: None,
            finalize,
        }
    }
}

unsafe extern "C" fn init_net(
    context: Out,
    _communicator: u64,
    _configuration: Pointer,
    logger: Option<Logger>,
    _profiler: Pointer,
) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { no_context(context) };
    net::init(logger)
}

unsafe extern "C" fn init_collnet(context: Out, _communicator: u64, logger: Option<Logger>) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { no_context(context) };
    coll::init(logger)
}

unsafe extern "C" fn listen_net(_context: Pointer, device: c_int, handle: Pointer, comm: Out) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::listen(device, handle, comm) }
}

unsafe extern "C" fn listen_collnet(_context: Pointer, device: c_int, handle: Pointer, comm: Out) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { coll::listen(device, handle, comm) }
}

unsafe extern "C" fn connect(_context: Pointer, _device: c_int, handle: Pointer, comm: Out, _offload: Out) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::connect(handle, comm) }
}

/// A communicator has nothing of its own here until it connects.
unsafe extern "C" fn finalize(_context: Pointer) -> c_int {
    0
}

/// # Safety
/// The pointer is null or may be written to.
unsafe fn no_context(context: Out) {
    if !context.is_null() {
        // SAFETY: the caller's contract.
        unsafe { context.write(std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_as_many_entries_as_the_declarations() {
        assert_eq!((size_of::<Net<V11>>(), size_of::<CollNet<V11>>()), (22 * 8, 19 * 8));
    }
}
