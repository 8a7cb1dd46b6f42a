//! What the tables of all versions call between two ranks: NCCL's "net".
//!
//! Arguments are as the documentation of the interface has them; where versions differ in a width,
//! the table's own function widens it.

use std::ffi::{c_int, c_void};
use std::ptr;

use trib_client::boundary::{given, writable};

use crate::boundary::{give, guard};
use crate::failure::{Code, Failure};
use crate::handle::Handle;
use crate::socket::{Listener, Outgoing, Stream};
use crate::ticket::{hand_out, redeem, take};
use crate::{interfaces, log};

static OUTGOING: Outgoing = Outgoing::new();

/// Keeps the logger, and says whether there is a network.
pub fn init(logger: Option<log::Logger>) -> c_int {
    log::keep(logger);
    guard("init", || match interfaces::all() {
        [] => Err(Failure::new(
            Code::Usage,
            "no network interface is up and has a link, or NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY leave none",
        )),
        all => {
            let names: Vec<_> =
                all.iter().map(|one| format!("{} {}", one.name.to_string_lossy(), one.address)).collect();
            log::info(&format!("messages between ranks go by TCP over {}", names.join(", ")));
            Ok(())
        }
    })
}

pub unsafe extern "C" fn devices(count: *mut c_int) -> c_int {
    // SAFETY: NCCL's contract of the call.
    guard("devices", || unsafe { give(count, "ndev", interfaces::all().len() as c_int) })
}

/// # Safety
/// NCCL's contract of `listen`.
pub unsafe extern "C" fn listen(device: c_int, handle: *mut c_void, comm: *mut *mut c_void) -> c_int {
    guard("listen", || {
        let (listener, own) = Listener::open(interfaces::numbered(device)?.address)?;
        // SAFETY: NCCL's contract.
        unsafe {
            own.give(handle)?;
            give(comm, "listenComm", Box::into_raw(Box::new(listener)).cast())
        }
    })
}

/// # Safety
/// NCCL's contract of `connect`.
pub unsafe fn connect(handle: *const c_void, comm: *mut *mut c_void) -> c_int {
    guard("connect", || {
        writable(comm, "sendComm")?;
        // SAFETY: NCCL's contract.
        let to = unsafe { Handle::given(handle) }?;
        let stream = OUTGOING.ask(&to)?.map_or(ptr::null_mut(), |stream| hand_out(Box::new(stream)));
        // SAFETY: as above.
        unsafe { give(comm, "sendComm", stream) }
    })
}

/// # Safety
/// NCCL's contract of `accept`.
pub unsafe extern "C" fn accept(listener: *mut c_void, comm: *mut *mut c_void, _device: *mut *mut c_void) -> c_int {
    guard("accept", || {
        writable(comm, "recvComm")?;
        // SAFETY: NCCL's contract: a listener that was not closed.
        let listener = unsafe { given(listener.cast::<Listener>(), "listenComm") }?;
        let stream = listener.accept()?.map_or(ptr::null_mut(), |stream| hand_out(Box::new(stream)));
        // SAFETY: as above.
        unsafe { give(comm, "recvComm", stream) }
    })
}

/// Memory of the host needs no registration, and no other is taken; for CollNet, too.
///
/// # Safety
/// NCCL's contract of `regMr`.
pub unsafe extern "C" fn register(
    comm: *mut c_void,
    _data: *mut c_void,
    _size: usize,
    kind: c_int,
    handle: *mut *mut c_void,
) -> c_int {
    guard("regMr", || {
        if kind != MEMORY_OF_HOST {
            return Err(Failure::new(Code::Internal, "memory that is not the host's is not supported"));
        }
        // NCCL gives back only what is not null.
        // SAFETY: NCCL's contract.
        unsafe { give(handle, "mhandle", comm) }
    })
}

pub unsafe extern "C" fn deregister(_comm: *mut c_void, _handle: *mut c_void) -> c_int {
    Code::Success as c_int
}

/// # Safety
/// NCCL's contract of `isend`.
pub unsafe fn send(comm: *mut c_void, data: *mut c_void, size: usize, request: *mut *mut c_void) -> c_int {
    // SAFETY: NCCL's contract.
    guard("isend", || unsafe { begin(comm, data, size, true, request) })
}

/// # Safety
/// NCCL's contract of `irecv`, with the sizes of the `count` buffers.
pub unsafe fn receive(
    comm: *mut c_void,
    count: c_int,
    data: *mut *mut c_void,
    size: impl FnOnce() -> usize,
    request: *mut *mut c_void,
) -> c_int {
    guard("irecv", || {
        if count != 1 {
            return Err(Failure::new(Code::Internal, "one buffer is received at a time"));
        }
        // SAFETY: NCCL's contract: there is an array of one address.
        let data = *unsafe { given(data, "data") }?;
        // SAFETY: NCCL's contract.
        unsafe { begin(comm, data, size(), false, request) }
    })
}

/// # Safety
/// A connection that was not closed, and the contract of [`Stream::begin`].
unsafe fn begin(
    comm: *mut c_void,
    data: *mut c_void,
    size: usize,
    sends: bool,
    request: *mut *mut c_void,
) -> Result<(), Failure> {
    writable(request, "request")?;
    if size > MESSAGE_MAX {
        return Err(Failure::argument(format!("a message of {size} bytes is longer than {MESSAGE_MAX}")));
    }
    // SAFETY: the caller's contract.
    let stream = unsafe { given(comm.cast::<Stream>(), "comm") }?;
    // SAFETY: the caller's contract.
    let begun = unsafe { stream.begin(data.cast(), size, sends) }?;
    // SAFETY: checked above.
    unsafe { give(request, "request", begun) }
}

/// What the host has received is in memory already.
///
/// # Safety
/// NCCL's contract of `iflush`.
pub unsafe extern "C" fn flush(
    _comm: *mut c_void,
    _count: c_int,
    _data: *mut *mut c_void,
    _sizes: *mut c_int,
    _handles: *mut *mut c_void,
    request: *mut *mut c_void,
) -> c_int {
    // SAFETY: NCCL's contract. No request means that it is over.
    guard("iflush", || unsafe { give(request, "request", ptr::null_mut()) })
}

/// # Safety
/// NCCL's contract of `test`: a request of a connection that was not closed.
pub unsafe extern "C" fn test(request: *mut c_void, done: *mut c_int, sizes: *mut c_int) -> c_int {
    guard("test", || {
        // SAFETY: NCCL's contract.
        let Some((stream, index)) = (unsafe { redeem::<Stream>(request) }) else {
            return Err(Failure::argument("a request is NULL"));
        };
        let moved = stream.test(index)?;
        if let Some(bytes) = moved.filter(|_| !sizes.is_null()) {
            // SAFETY: NCCL's contract; a message has at most `MESSAGE_MAX` bytes.
            unsafe { sizes.write(bytes as c_int) };
        }
        // SAFETY: NCCL's contract.
        unsafe { give(done, "done", c_int::from(moved.is_some())) }
    })
}

/// # Safety
/// NCCL's contract of `closeSend` and `closeRecv`.
pub unsafe extern "C" fn close(comm: *mut c_void) -> c_int {
    guard("close", || {
        // SAFETY: NCCL's contract: a connection that was not closed.
        drop(unsafe { take::<Stream>(comm) });
        Ok(())
    })
}

/// # Safety
/// NCCL's contract of `closeListen`.
pub unsafe extern "C" fn close_listener(comm: *mut c_void) -> c_int {
    guard("closeListen", || {
        // SAFETY: NCCL's contract: a listener that was not closed.
        drop(unsafe { take::<Listener>(comm) });
        Ok(())
    })
}

/// `NCCL_PTR_HOST`.
pub const MEMORY_OF_HOST: c_int = 1;
/// The longest message; sizes that NCCL gets back are of 31 bits.
pub const MESSAGE_MAX: usize = 1 << 30;
/// The buffers of one receive.
pub const RECEIVES_MAX: c_int = 1;
/// Connections that a device can have: there is no limit but that of open files.
pub const CONNECTIONS_MAX: c_int = 65_536;
