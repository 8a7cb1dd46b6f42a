//! What the tables of all versions call for all ranks: NCCL's "CollNet".

use std::ffi::{c_int, c_void};
use std::ptr;

use trib_client::boundary::{given, writable};

use crate::boundary::{give, guard};
use crate::collnet::{self, Member};
use crate::failure::{Code, Failure};
use crate::handle::{Handle, secret};
use crate::log;
use crate::ticket::{hand_out, redeem, take};

pub use crate::collnet::OPERATION_MAX;
pub use crate::net::register;

/// A rank that wants to be found: nothing is open, because the ranks meet at the manager.
struct Invitation;

pub fn init(logger: Option<log::Logger>) -> c_int {
    log::keep(logger);
    Code::Success as c_int
}

/// One device where there is a fabric: the tree takes the routes of the host, whatever devices NCCL
/// sees. It has the properties of the first interface.
///
/// # Safety
/// NCCL's contract of `devices`.
pub unsafe extern "C" fn devices(count: *mut c_int) -> c_int {
    guard("CollNet devices", || {
        let has_manager = collnet::has_manager();
        if !has_manager {
            log::info("CollNet is absent, because TRIB_MANAGER is not set; messages between ranks go by TCP");
        }
        // SAFETY: NCCL's contract.
        unsafe { give(count, "ndev", c_int::from(has_manager)) }
    })
}

/// # Safety
/// NCCL's contract of `listen`.
pub unsafe extern "C" fn listen(_device: c_int, handle: *mut c_void, comm: *mut *mut c_void) -> c_int {
    guard("CollNet listen", || {
        let own = Handle { secret: secret()?, address: None };
        // SAFETY: NCCL's contract.
        unsafe {
            own.give(handle)?;
            give(comm, "listenComm", Box::into_raw(Box::new(Invitation)).cast())
        }
    })
}

/// # Safety
/// NCCL's contract of `connect`: `handles` has as many handles as there are ranks.
pub unsafe extern "C" fn connect(
    handles: *mut *mut c_void,
    size: c_int,
    rank: c_int,
    _listener: *mut c_void,
    comm: *mut *mut c_void,
) -> c_int {
    guard("CollNet connect", || {
        writable(comm, "collComm")?;
        let numbers = u32::try_from(rank).ok().zip(u32::try_from(size).ok()).filter(|(rank, size)| rank < size);
        let (rank, size) = numbers.ok_or_else(|| Failure::argument(format!("rank {rank} of {size} makes no sense")))?;
        // SAFETY: NCCL's contract; a communicator has at least one rank.
        let first = *unsafe { given(handles, "handles") }?;
        // SAFETY: NCCL's contract.
        let meeting = unsafe { Handle::given(first) }?;
        let member = Member::join(&meeting.secret, rank, size)?;
        // SAFETY: checked above.
        unsafe { give(comm, "collComm", hand_out(Box::new(member))) }
    })
}

/// # Safety
/// NCCL's contract of `reduceSupport`.
pub unsafe extern "C" fn reduce_support(dtype: c_int, op: c_int, supported: *mut c_int) -> c_int {
    guard("reduceSupport", || {
        let is_supported = collnet::is_supported(dtype, op)?;
        // SAFETY: NCCL's contract.
        unsafe { give(supported, "supported", c_int::from(is_supported)) }
    })
}

/// Memory goes: what is still under way over it ends here. NCCL 2.20 to 2.22 also give the handle
/// of a registration that had failed, none, while operations over other memory are under way.
///
/// # Safety
/// NCCL's contract of `deregMr`.
pub unsafe extern "C" fn deregister(comm: *mut c_void, handle: *mut c_void) -> c_int {
    guard("CollNet deregMr", || {
        if handle.is_null() {
            return Ok(());
        }
        // SAFETY: NCCL's contract.
        unsafe { given(comm.cast::<Member>(), "collComm") }?.abandon()
    })
}

/// # Safety
/// NCCL's contract of `iallreduce`.
pub unsafe extern "C" fn allreduce(
    comm: *mut c_void,
    input: *mut c_void,
    output: *mut c_void,
    count: usize,
    dtype: c_int,
    op: c_int,
    input_handle: *mut c_void,
    output_handle: *mut c_void,
    request: *mut *mut c_void,
) -> c_int {
    guard("iallreduce", || {
        writable(request, "request")?;
        // SAFETY: NCCL's contract.
        let member = unsafe { given(comm.cast::<Member>(), "collComm") }?;
        if input_handle.is_null() || output_handle.is_null() {
            // NCCL 2.20 to 2.22 go on with a program's buffers in memory of a GPU, of a CUDA graph,
            // after the plugin has refused to register them.
            return Err(Failure::argument(
                "an allreduce of memory that was not registered, which may be a GPU's: set NCCL_GRAPH_REGISTER=0, or use a later NCCL",
            ));
        }
        let both = collnet::data_type(dtype).zip(collnet::operator(op));
        let (dtype, op) =
            both.ok_or_else(|| Failure::argument(format!("the tree has no operator {op} for type {dtype}")))?;
        // SAFETY: NCCL's contract.
        let begun = unsafe { member.allreduce(input.cast(), output.cast(), count, dtype, op) }?;
        // SAFETY: checked above.
        unsafe { give(request, "request", begun) }
    })
}

/// What the host has received is in memory already.
///
/// # Safety
/// NCCL's contract of `iflush`.
pub unsafe extern "C" fn flush(
    _comm: *mut c_void,
    _data: *mut c_void,
    _size: c_int,
    _handle: *mut c_void,
    request: *mut *mut c_void,
) -> c_int {
    // SAFETY: NCCL's contract. No request means that it is over.
    guard("CollNet iflush", || unsafe { give(request, "request", ptr::null_mut()) })
}

/// # Safety
/// NCCL's contract of `test`: a request of a communicator that was not closed.
pub unsafe extern "C" fn test(request: *mut c_void, done: *mut c_int, size: *mut c_int) -> c_int {
    guard("CollNet test", || {
        writable(done, "done")?;
        // SAFETY: NCCL's contract.
        let Some((member, index)) = (unsafe { redeem::<Member>(request) }) else {
            return Err(Failure::argument("a request is NULL"));
        };
        let bytes = member.test(index)?;
        if let Some(bytes) = bytes.filter(|_| !size.is_null()) {
            // SAFETY: NCCL's contract; an operation has at most `OPERATION_MAX` bytes.
            unsafe { size.write(bytes as c_int) };
        }
        // SAFETY: checked above.
        unsafe { give(done, "done", c_int::from(bytes.is_some())) }
    })
}

/// # Safety
/// NCCL's contract of `closeColl`.
pub unsafe extern "C" fn close(comm: *mut c_void) -> c_int {
    guard("closeColl", || {
        // SAFETY: NCCL's contract: a communicator that was not closed.
        match unsafe { take::<Member>(comm) } {
            Some(member) => (*member).close(),
            None => Ok(()),
        }
    })
}

/// # Safety
/// NCCL's contract of `closeListen`.
pub unsafe extern "C" fn close_listener(comm: *mut c_void) -> c_int {
    guard("CollNet closeListen", || {
        // SAFETY: NCCL's contract: a listener that was not closed.
        drop(unsafe { take::<Invitation>(comm) });
        Ok(())
    })
}
