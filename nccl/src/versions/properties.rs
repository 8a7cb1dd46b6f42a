//! What NCCL asks about a device, in the layouts of the versions.

use std::ffi::{c_char, c_int};
use std::ptr;

use crate::coll::OPERATION_MAX;
use crate::failure::Failure;
use crate::interfaces;
use crate::net::{CONNECTIONS_MAX, MEMORY_OF_HOST, MESSAGE_MAX, RECEIVES_MAX};

/// `ncclNetProperties_v8_t`.
#[repr(C)]
pub struct V8 {
    name: *const c_char,
    pci_path: *const c_char,
    guid: u64,
    memory: c_int,
    registers_globally: c_int,
    speed: c_int,
    port: c_int,
    latency: f32,
    connections: c_int,
    receives: c_int,
    offload: c_int,
    offload_version: c_int,
}

/// `ncclNetProperties_v9_t`, which version 10 has, too.
#[repr(C)]
pub struct V9 {
    head: Head,
    parts: Parts<4>,
    message_max: usize,
    operation_max: usize,
}

/// `ncclNetProperties_v11_t`.
#[repr(C)]
pub struct V11 {
    common: V9,
    requests_in_one: c_int,
}

/// `ncclNetProperties_v12_t`.
#[repr(C)]
pub struct V12 {
    head: Head,
    parts: Parts<8>,
    message_max: usize,
    operation_max: usize,
    requests_in_one: c_int,
    rail: i16,
    plane: i16,
}

/// How all versions from 9 on begin.
#[repr(C)]
struct Head {
    name: *const c_char,
    pci_path: *const c_char,
    guid: u64,
    memory: c_int,
    registers_globally: c_int,
    forces_flush: c_int,
    speed: c_int,
    port: c_int,
    latency: f32,
    connections: c_int,
    receives: c_int,
    offload: c_int,
    offload_version: c_int,
}

/// The devices of a virtual one; a device is its own only part.
#[repr(C)]
struct Parts<const MAX: usize> {
    count: c_int,
    devices: [c_int; MAX],
}

/// A layout of the properties.
pub trait Properties {
    /// Those of the device with this number.
    fn of(device: c_int) -> Result<Self, Failure>
    where
        Self: Sized;
}

impl Properties for V8 {
    fn of(device: c_int) -> Result<V8, Failure> {
        let Head { name, pci_path, guid, memory, registers_globally, speed, port, latency, .. } = Head::of(device)?;
        Ok(V8 {
            name,
            pci_path,
            guid,
            memory,
            registers_globally,
            speed,
            port,
            latency,
            connections: CONNECTIONS_MAX,
            receives: RECEIVES_MAX,
            offload: NO_OFFLOAD,
            offload_version: 0,
        })
    }
}

impl Properties for V9 {
    fn of(device: c_int) -> Result<V9, Failure> {
        let (head, parts) = (Head::of(device)?, Parts::of(device));
        Ok(V9 { head, parts, message_max: MESSAGE_MAX, operation_max: OPERATION_MAX })
    }
}

impl Properties for V11 {
    fn of(device: c_int) -> Result<V11, Failure> {
        Ok(V11 { common: V9::of(device)?, requests_in_one: 1 })
    }
}

impl Properties for V12 {
    fn of(device: c_int) -> Result<V12, Failure> {
        Ok(V12 {
            head: Head::of(device)?,
            parts: Parts::of(device),
            message_max: MESSAGE_MAX,
            operation_max: OPERATION_MAX,
            requests_in_one: 1,
            rail: UNDEFINED,
            plane: UNDEFINED,
        })
    }
}

impl Head {
    fn of(device: c_int) -> Result<Head, Failure> {
        let interface = interfaces::numbered(device)?;
        Ok(Head {
            name: interface.name.as_ptr(),
            pci_path: interface.pci.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            guid: device as u64,
            memory: MEMORY_OF_HOST,
            registers_globally: 0,
            forces_flush: 0,
            speed: interface.speed,
            port: 0,
            latency: 0.0,
            connections: CONNECTIONS_MAX,
            receives: RECEIVES_MAX,
            offload: NO_OFFLOAD,
            offload_version: 0,
        })
    }
}

impl<const MAX: usize> Parts<MAX> {
    fn of(device: c_int) -> Parts<MAX> {
        let mut devices = [0; MAX];
        devices[0] = device;
        Parts { count: 1, devices }
    }
}

/// Gives the properties of a device to C.
///
/// # Safety
/// NCCL's contract of `getProperties`.
pub unsafe extern "C" fn give<P: Properties>(device: c_int, properties: *mut P) -> c_int {
    // SAFETY: the caller's contract.
    crate::boundary::guard("getProperties", || unsafe { crate::boundary::give(properties, "props", P::of(device)?) })
}

/// `NCCL_NET_DEVICE_HOST`.
const NO_OFFLOAD: c_int = 0;
/// `NCCL_NET_ID_UNDEF`.
const UNDEFINED: i16 = -1;

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn layouts_are_those_of_the_declarations() {
        assert_eq!((size_of::<V8>(), offset_of!(V8, latency), offset_of!(V8, offload_version)), (64, 40, 56));
        assert_eq!((size_of::<Head>(), offset_of!(Head, speed), offset_of!(Head, offload)), (64, 36, 56));
        assert_eq!((size_of::<V9>(), offset_of!(V9, parts), offset_of!(V9, message_max)), (104, 64, 88));
        assert_eq!((size_of::<V11>(), offset_of!(V11, requests_in_one)), (112, 104));
        assert_eq!((size_of::<V12>(), offset_of!(V12, message_max), offset_of!(V12, rail)), (128, 104, 124));
    }

    #[test]
    fn a_device_that_is_not_there_has_none() {
        assert!(V12::of(0).is_ok() && V11::of(99).is_err() && V8::of(-1).is_err());
        // SAFETY: null is refused.
        assert_ne!(unsafe { give::<V9>(0, ptr::null_mut()) }, 0);
    }
}
