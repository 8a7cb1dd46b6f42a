//! Version 8.

use std::ffi::c_int;

use super::properties::{V8, give};
use super::{Absent, NAME, Name, Out, Pointer};
use crate::log::Logger;
use crate::{coll, net};

/// `ncclNet_v8_t`.
#[repr(C)]
pub struct Net {
    name: Name,
    init: extern "C" fn(Option<Logger>) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut V8) -> c_int,
    listen: unsafe extern "C" fn(c_int, Pointer, Out) -> c_int,
    connect: unsafe extern "C" fn(c_int, Pointer, Out, Out) -> c_int,
    accept: unsafe extern "C" fn(Pointer, Out, Out) -> c_int,
    register: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Out) -> c_int,
    register_dma_buf: Absent,
    deregister: unsafe extern "C" fn(Pointer, Pointer) -> c_int,
    send: unsafe extern "C" fn(Pointer, Pointer, c_int, c_int, Pointer, Out) -> c_int,
    receive: unsafe extern "C" fn(Pointer, c_int, Out, *mut c_int, *mut c_int, Out, Out) -> c_int,
    flush: unsafe extern "C" fn(Pointer, c_int, Out, *mut c_int, Out, Out) -> c_int,
    test: unsafe extern "C" fn(Pointer, *mut c_int, *mut c_int) -> c_int,
    close_send: unsafe extern "C" fn(Pointer) -> c_int,
    close_receive: unsafe extern "C" fn(Pointer) -> c_int,
    close_listener: unsafe extern "C" fn(Pointer) -> c_int,
    device_registration: Absent,
    device_has_consumed: Absent,
}

/// `ncclCollNet_v8_t`.
#[repr(C)]
pub struct CollNet {
    name: Name,
    init: extern "C" fn(Option<Logger>) -> c_int,
    devices: unsafe extern "C" fn(*mut c_int) -> c_int,
    properties: unsafe extern "C" fn(c_int, *mut V8) -> c_int,
    listen: unsafe extern "C" fn(c_int, Pointer, Out) -> c_int,
    connect: unsafe extern "C" fn(Out, c_int, c_int, Pointer, Out) -> c_int,
    reduce_support: unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
    register: unsafe extern "C" fn(Pointer, Pointer, usize, c_int, Out) -> c_int,
    register_dma_buf: Absent,
    deregister: unsafe extern "C" fn(Pointer, Pointer) -> c_int,
    allreduce: unsafe extern "C" fn(Pointer, Pointer, Pointer, c_int, c_int, c_int, Pointer, Pointer, Out) -> c_int,
    allgather: Absent,
    reduce_scatter: Absent,
    flush: unsafe extern "C" fn(Pointer, Pointer, c_int, Pointer, Out) -> c_int,
    test: unsafe extern "C" fn(Pointer, *mut c_int, *mut c_int) -> c_int,
    close: unsafe extern "C" fn(Pointer) -> c_int,
    close_listener: unsafe extern "C" fn(Pointer) -> c_int,
}

/// What NCCL looks for.
#[unsafe(export_name = "ncclNetPlugin_v8")]
pub static NET: Net = Net {
    name: Name::new(NAME),
    init: init_net,
    devices: net::devices,
    properties: give::<V8>,
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
};

/// What NCCL looks for.
#[unsafe(export_name = "ncclCollNetPlugin_v8")]
pub static COLLNET: CollNet = CollNet {
    name: Name::new(NAME),
    init: init_collnet,
    devices: coll::devices,
    properties: give::<V8>,
    listen: coll::listen,
    connect: coll::connect,
    reduce_support: coll::reduce_support,
    register: coll::register,
    register_dma_buf: None,
    deregister: coll::deregister,
    allreduce,
    allgather: None,
    reduce_scatter: None,
    flush: coll::flush,
    test: coll::test,
    close: coll::close,
    close_listener: coll::close_listener,
};

pub extern "C" fn init_net(logger: Option<Logger>) -> c_int {
    net::init(logger)
}

pub extern "C" fn init_collnet(logger: Option<Logger>) -> c_int {
    coll::init(logger)
}

pub unsafe extern "C" fn connect(_device: c_int, handle: Pointer, comm: Out, _offload: Out) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::connect(handle, comm) }
}

unsafe extern "C" fn send(
    comm: Pointer,
    data: Pointer,
    size: c_int,
    _tag: c_int,
    _registration: Pointer,
    request: Out,
) -> c_int {
    // SAFETY: NCCL's contract.
    unsafe { net::send(comm, data, widened(size), request) }
}

unsafe extern "C" fn receive(
    comm: Pointer,
    count: c_int,
    data: Out,
    sizes: *mut c_int,
    _tags: *mut c_int,
    _registrations: Out,
    request: Out,
) -> c_int {
    // SAFETY: NCCL's contract: there are as many sizes as the count says.
    unsafe { net::receive(comm, count, data, || widened(*sizes), request) }
}

unsafe extern "C" fn allreduce(
    comm: Pointer,
    input: Pointer,
    output: Pointer,
    count: c_int,
    dtype: c_int,
    op: c_int,
    input_registration: Pointer,
    output_registration: Pointer,
    request: Out,
) -> c_int {
    let registrations = (input_registration, output_registration);
    // SAFETY: NCCL's contract.
    unsafe {
        coll::allreduce(comm, input, output, widened(count), dtype, op, registrations.0, registrations.1, request)
    }
}

/// A size below 0 is beyond all that is allowed.
fn widened(size: c_int) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_as_many_entries_as_the_declarations() {
        assert_eq!((size_of::<Net>(), size_of::<CollNet>()), (19 * 8, 17 * 8));
        assert_eq!((widened(-1), widened(5)), (usize::MAX, 5));
    }
}
