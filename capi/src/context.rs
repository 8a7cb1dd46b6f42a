//! Sections "Life" and "Counters": joining a job, progress, leaving it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::sync::Arc;
use std::time::Duration;

use trib_client::{Context, Counters, Error, OutOfBand, Params};

use crate::boundary::{given, guard, put, value_or, writable};

/// `trib_context`.
pub struct TribContext {
    pub(crate) context: Context,
}

type Gather = unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, usize) -> c_int;
type Bcast = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> c_int;
type ProgressCall = unsafe extern "C" fn(*mut c_void);

/// `trib_oob`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TribOob {
    ctx: *mut c_void,
    gather: Option<Gather>,
    bcast: Option<Bcast>,
}

/// `trib_params`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TribParams {
    struct_size: usize,
    rank: u32,
    size: u32,
    manager: *const c_char,
    host: *const c_char,
    oob: *const TribOob,
    timeout_ms: c_int,
    progress: Option<ProgressCall>,
    progress_ctx: *mut c_void,
    quota: *const c_char,
    calls: *const c_char,
}

/// `trib_counters`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TribCounters {
    struct_size: usize,
    counts: [u64; COUNTS],
}

/// Joins the job.
///
/// # Safety
/// The header's contract: `params` points to a `trib_params` with its size in `struct_size`, `ctx`
/// to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_init(params: *const TribParams, ctx: *mut *mut TribContext) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        let mut params = unsafe { read_params(params) }?;
        if let Err(objection) = writable(ctx, "ctx") {
            params.object(objection);
        }
        let context = Context::join(params)?;
        // SAFETY: no job is joined when the pointer is null.
        unsafe { put(ctx, Box::into_raw(Box::new(TribContext { context }))) };
        Ok(())
    })
}

/// Leaves the job.
///
/// # Safety
/// `ctx` is null or came from `trib_init` and was not finalized; it is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_finalize(ctx: *mut TribContext) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        let Some(context) = (unsafe { ctx.as_ref() }) else { return Ok(()) };
        // A forked child leaves the context as it is.
        context.context.check_process()?;
        // SAFETY: `trib_init` made a box of it, and the caller gives it up.
        unsafe { Box::from_raw(ctx) }.context.finalize()
    })
}

/// Polls everything outstanding once.
///
/// # Safety
/// `ctx` came from `trib_init` and was not finalized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_progress(ctx: *mut TribContext) -> c_int {
    // SAFETY: the caller's contract.
    guard(|| unsafe { given(ctx, "ctx") }?.context.progress())
}

/// Tells the manager why the program goes on without the tree.
///
/// # Safety
/// `ctx` came from `trib_init` and was not finalized; `why` is a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_fall_back(ctx: *mut TribContext, why: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        let context = &unsafe { given(ctx, "ctx") }?.context;
        if why.is_null() {
            return Err(Error::Invalid("why is NULL".into()));
        }
        // SAFETY: the caller's contract. The text is for people, so bytes that are not UTF-8 are
        // replaced.
        context.fall_back(&unsafe { CStr::from_ptr(why) }.to_string_lossy())
    })
}

/// Whether the tree can do this combination.
#[unsafe(no_mangle)]
pub extern "C" fn trib_supports(t: c_int, op: c_int) -> c_int {
    let combination = crate::collective::reduction(t, op);
    value_or(0, || Ok(c_int::from(combination.is_ok_and(|(t, op)| op.is_defined_on(t)))))
}

/// Counters of this rank.
///
/// # Safety
/// `ctx` came from `trib_init`; `counters` points to a `trib_counters` with its size in
/// `struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_get_counters(ctx: *mut TribContext, counters: *mut TribCounters) -> c_int {
    guard(|| {
        writable(counters, "counters")?;
        // SAFETY: the caller's contract; the size is the first field.
        let size = unsafe { counters.cast::<usize>().read() };
        if size < size_of::<usize>() {
            return Err(Error::Invalid("counters->struct_size is not sizeof(trib_counters)".into()));
        }
        // SAFETY: as above.
        let counts = unsafe { given(ctx, "ctx") }?.context.counters()?;
        let ours = TribCounters { struct_size: size, counts: in_order(&counts) };
        let len = size.min(size_of::<TribCounters>());
        // SAFETY: the caller's struct has `size` bytes, ours at least `len`.
        unsafe { core::ptr::copy_nonoverlapping((&raw const ours).cast::<u8>(), counters.cast::<u8>(), len) };
        Ok(())
    })
}

/// The counters in the order of the header's fields.
fn in_order(c: &Counters) -> [u64; COUNTS] {
    [
        c.operations_llt,
        c.operations_sat,
        c.datagrams_sent,
        c.datagrams_received,
        c.datagrams_rejected,
        c.stream_bytes_sent,
        c.stream_bytes_received,
        c.retransmissions,
        c.probes,
        c.groups_created,
        c.groups_freed,
        c.datagrams_repeated,
        c.epochs,
        c.replayed,
        c.operations_board,
        c.operations_combined,
    ]
}

/// Reads the caller's parameters. A caller built against an older header has a shorter struct; the
/// fields that it lacks are zero. A wrong parameter becomes an objection, of which the other ranks
/// hear in the exchange; only where there is no exchange is it an error.
unsafe fn read_params(pointer: *const TribParams) -> Result<Params, Error> {
    // SAFETY: the caller's contract; the size is the first field.
    let size = *unsafe { given(pointer.cast::<usize>(), "params") }?;
    if size < offset_of!(TribParams, timeout_ms) {
        return Err(Error::Invalid("params->struct_size is not sizeof(trib_params)".into()));
    }
    let mut copy = MaybeUninit::<TribParams>::zeroed();
    let len = size.min(size_of::<TribParams>());
    // SAFETY: the caller's struct has `size` bytes; zeros are valid values of every field, and so
    // is what the caller wrote.
    let raw = unsafe {
        core::ptr::copy_nonoverlapping(pointer.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), len);
        copy.assume_init()
    };
    let mut params = Params::new(raw.rank, raw.size);
    // SAFETY: the caller's contract.
    if let Err(objection) = unsafe { read_wishes(&mut params, &raw) } {
        params.object(objection);
    }
    // SAFETY: the caller's contract: null or a `trib_oob`.
    if let Some(oob) = unsafe { raw.oob.as_ref() } {
        let missing = |name: &str| {
            Error::Invalid(format!(
                "params->oob->{name} is NULL: without it this rank cannot tell the others, which wait for it in their exchange"
            ))
        };
        params.oob = Some(Box::new(Callbacks {
            ctx: oob.ctx,
            gather: oob.gather.ok_or_else(|| missing("gather"))?,
            bcast: oob.bcast.ok_or_else(|| missing("bcast"))?,
        }));
    }
    if let Some(call) = raw.progress {
        let target = ProgressTarget { call, ctx: raw.progress_ctx };
        params.progress = Some(Arc::new(move || target.run()));
    }
    Ok(params)
}

/// Reads the parameters that may be wrong without harm to the exchange.
unsafe fn read_wishes(params: &mut Params, raw: &TribParams) -> Result<(), Error> {
    // SAFETY: the caller's contract: null or a terminated string.
    unsafe {
        params.manager = text(raw.manager, "params->manager")?;
        params.host = text(raw.host, "params->host")?;
        if let Some(quota) = text(raw.quota, "params->quota")? {
            params.ask_for(&quota, "params->quota")?;
        }
        if let Some(calls) = text(raw.calls, "params->calls")? {
            params.name_calls(&calls, "params->calls")?;
        }
    }
    params.timeout = match u64::try_from(raw.timeout_ms) {
        Ok(0) => None,
        Ok(ms) => Some(Duration::from_millis(ms)),
        Err(_) => return Err(Error::Invalid("params->timeout_ms is negative".into())),
    };
    Ok(())
}

unsafe fn text(pointer: *const c_char, name: &str) -> Result<Option<String>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's contract.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(|text| Some(text.to_owned())).map_err(|_| Error::Invalid(format!("{name} is not UTF-8")))
}

/// The caller's exchange.
struct Callbacks {
    ctx: *mut c_void,
    gather: Gather,
    bcast: Bcast,
}

impl OutOfBand for Callbacks {
    fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32> {
        let target = all.map_or(core::ptr::null_mut(), <[u8]>::as_mut_ptr);
        // SAFETY: the header's contract of the callback; the buffers are as long as it demands.
        code(unsafe { (self.gather)(self.ctx, mine.as_ptr().cast(), target.cast(), mine.len()) })
    }

    fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32> {
        // SAFETY: as above.
        code(unsafe { (self.bcast)(self.ctx, bytes.as_mut_ptr().cast(), bytes.len()) })
    }
}

fn code(status: c_int) -> Result<(), i32> {
    if status == 0 { Ok(()) } else { Err(status) }
}

/// The caller's progress function.
struct ProgressTarget {
    call: ProgressCall,
    ctx: *mut c_void,
}

// SAFETY: by the header the function runs on whichever of the caller's threads blocks, and the
// caller's context must allow that.
unsafe impl Send for ProgressTarget {}
// SAFETY: as above.
unsafe impl Sync for ProgressTarget {}

impl ProgressTarget {
    fn run(&self) {
        // SAFETY: the header's contract of the callback.
        unsafe { (self.call)(self.ctx) }
    }
}

const COUNTS: usize = 16;
