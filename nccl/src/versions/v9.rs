//! Version 9.

use std::ffi::c_int;

use super::properties::{V9, give};
use super::v8::{connect, init_collnet, init_net};
use super::{Absent, NAME, Name, Out, Pointer};
use crate::log::Logger;
use crate::{coll, net};

/// `ncclNet_v9_t`.
#[repr(C)]
pub struct Net {
    name: Name,
    init: extern "C" fn(Option<Logger>) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut V9) -> c_int,
    listen: unsafe extern "C" fn(c_int, Pointer, Out) -> c_int,
    connect: unsafe extern "C" fn(c_int, Pointer, Out, Out) -> c_int,
    accept: unsafe extern "C" fn(Pointer, Out, Out) -> c_int,
    register: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Out) -> c_int,
    register_dma_buf: Absent,
    deregister: unsafe extern "C" fn(Pointer, Pointer) -> c_int,
    send: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Pointer, Out) -> c_int,
    receive: unsafe extern "C" fn(Pointer, c_int, Out, *mut usize, *mut c_int, Out, Out) -> c_int,
    flush: unsafe extern "C" fn(Pointer, c_int, Out, *mut c_int, Out, Out) -> c_int,
    test: unsafe extern "C" fn(Pointer, *mut c_int, *mut c_int) -> c_int,
    close_send: unsafe extern "C" fn(Pointer) -> c_int,
    close_receive: unsafe extern "C" fn(Pointer) -> c_int,
    close_listener: unsafe extern "C" fn(Pointer) -> c_int,
    device_registration: Absent,
    device_has_consumed: Absent,
    make_virtual_device: Absent,
}

/// `ncclCollNet_v9_t`, and `ncclCollNet_v10_t`.
#[repr(C)]
pub struct CollNet {
    name: Name,
    init: extern "C" fn(Option<Logger>) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut V9) -> c_int,
    listen: unsafe extern "C" fn(c_int, Pointer, Out) -> c_int,
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
}

/// What NCCL looks for.
#[unsafe(export_name = "ncclNetPlugin_v9")]
pub static NET: Net = Net {
    name: Name::new(NAME),
    init: init_net,
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
#[unsafe(export_name = "ncclCollNetPlugin_v9")]
pub static COLLNET: CollNet = COLLNET_TABLE;

/// The table of versions 9 and 10.
pub const COLLNET_TABLE: CollNet = CollNet {
    name: Name::new(NAME),
    init: init_collnet,
    devices: coll::devices,
    properties: give::<V9>,
    listen: coll::listen,
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
};

unsafe extern "C" fn send(
    comm: Pointer,
    data: Pointer,
    size: usize,
    _tag: c_int,
    _registration: Pointer,
    request: Out,
) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::send(comm, data, size, request) }
}

unsafe extern "C" fn receive(
    comm: Pointer,
    count: c_int,
    data: Out,
    sizes: *mut usize,
    _tags: *mut c_int,
    _registrations: Out,
    request: Out,
) -> c_int {
    // SAFETY: NCCL's contract: there are as many sizes as the count says.
    unsafe { net::receive(comm, count, data, || *sizes, request) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_as_many_entries_as_the_declarations() {
        assert_eq!((size_of::<Net>(), size_of::<CollNet>()), (20 * 8, 18 * 8));
    }
}
