//! Section "Jobs": joining, leaving, and what the fabric can do.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trib_client::{Error, Limits, Params, WORLD_MAX};

use crate::abi::{
    Caps, Config, FEATURE_LLT, FEATURE_REPRODUCIBLE, FEATURE_SAT, HIDE_ERRORS, InitSpec, OutOfBandCalls, ProgressCall,
};
use crate::agreed::Agreed;
use crate::boundary::{caught, given, guard, writable};
use crate::comm::COMMS;
use crate::diagnostics;
use crate::error::{ENOMEM, EOOB, Failure};
use crate::exchange::Exchange;
use crate::handle::{Kind, Table};
use crate::log;
use crate::registration::REGIONS;
use crate::request::{REQUESTS, retire};
use crate::settings::{self, OnError};
use crate::statistics::{Mode, Statistics};
use crate::wishes;

/// Jobs that C holds.
pub static CONTEXTS: Table<Context> = Table::new(Kind::Context);

/// A job of which this process is a rank.
pub struct Context {
    /// A number that no other job of this process has.
    pub number: u64,
    pub job: trib_client::Context,
    pub oob_calls: OutOfBandCalls,
    /// The argument of the job's callbacks; each group has its own.
    oob_context: *mut c_void,
    pub statistics: Statistics,
    pub on_error: OnError,
    /// Whether buffers may be memory of GPUs.
    pub takes_gpu_memory: bool,
    /// The next tag, which tells groups of the same members apart.
    pub next_tag: AtomicU64,
    has_streams: bool,
    limits: Limits,
}

impl Context {
    /// The caller's collectives over the job.
    pub fn exchange(&self) -> Result<Exchange, Failure> {
        Exchange::new(&self.oob_calls, self.oob_context, self.job.size())
    }
}

// SAFETY: the callbacks are the caller's functions; they are called on the thread that entered the
// library.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Joins the job.
///
/// # Safety
/// The header's contract: `spec` points to a spec whose callbacks work, `context` to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_init(spec: *const InitSpec, context: *mut *mut c_void) -> c_int {
    log::read_level();
    let joined = caught(|| {
        // SAFETY: the caller's contract.
        let spec = unsafe { given(spec, "spec") }?;
        let joined = join(spec, writable(context, "context").err())?;
        let handle = CONTEXTS.insert(Arc::new(joined)).ok_or_else(|| Failure::new(ENOMEM, "too many jobs"))?;
        // SAFETY: no job is joined when the pointer is null.
        unsafe { context.write(handle) };
        Ok(())
    });
    let Err(failure) = joined else { return 0 };
    let meaning = crate::error::meaning(failure.code).to_string_lossy();
    let text = format_args!("sharp_coll_init: {meaning}: {}", failure.text);
    // SAFETY: the caller's contract; a null pointer was refused before anything was read.
    match unsafe { spec.as_ref() } {
        Some(spec) if spec.config.flags & HIDE_ERRORS == 0 => log::error(text),
        Some(spec) if speaks(spec, &failure) => log::hidden_error(text),
        Some(_) => log::debug(text),
        None => log::error(text),
    }
    failure.code
}

/// Whether this rank reports a failure although the client wants errors hidden. Rank 0 reports for
/// all ranks; a rank reports for itself if its exchange has failed or does not exist.
fn speaks(spec: &InitSpec, failure: &Failure) -> bool {
    let calls = &spec.oob_colls;
    let is_alone = failure.code == EOOB || calls.bcast.is_none() || calls.gather.is_none();
    is_alone || !(1..spec.world_size).contains(&spec.world_rank)
}

/// Leaves the job and ends whatever is left of it.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_finalize(context: *mut c_void) -> c_int {
    guard("sharp_coll_finalize", || {
        let context = CONTEXTS.remove(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        // A failure here does not make leaving fail, because clients take any error of it for
        // fatal.
        if context.statistics.mode != Mode::Off
            && let Err(failure) = diagnostics::write_counters(&context)
        {
            log::warn(format_args!("sharp_coll_finalize: {}", failure.text));
        }
        for comm in COMMS.drain(|comm| comm.shared.context == context.number) {
            comm.close();
        }
        REQUESTS.tenants().filter(|request| request.belongs_to(context.number)).for_each(retire);
        REGIONS.drain(|region| region.context == context.number);
        // If another thread is still inside a call, the job is left when that call returns.
        if let Some(context) = Arc::into_inner(context)
            && let Err(error) = context.job.finalize()
        {
            log::warn(format_args!("sharp_coll_finalize: {error}"));
        }
        Ok(())
    })
}

/// Polls everything outstanding once and never waits.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_progress(context: *mut c_void) -> c_int {
    guard("sharp_coll_progress", || {
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        Ok(context.job.progress()?)
    })
}

/// What the fabric can do for this job.
///
/// # Safety
/// `caps` points to a `sharp_coll_caps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_caps_query(context: *mut c_void, caps: *mut Caps) -> c_int {
    guard("sharp_coll_caps_query", || {
        writable(caps, "caps")?;
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        let Limits { osts, payload, groups, window, .. } = context.limits;
        let count = |number: u32| c_int::try_from(number).unwrap_or(c_int::MAX);
        let streams = if context.has_streams { FEATURE_SAT } else { 0 };
        let all = Caps {
            sharp_pkt_version: 1,
            padding: 0,
            reserved: [0; 2],
            dtypes: (1 << DATATYPES) - 1,
            tag_dtypes: (1 << DATATYPES) - 1,
            reduce_ops: (1 << OPERATORS) - 1,
            feature_mask: FEATURE_LLT | FEATURE_REPRODUCIBLE | streams,
            mask_reserved: [0; 4],
            max_osts: count(osts),
            user_data_per_ost: count(payload),
            max_groups: count(groups),
            max_group_channels: 1,
            osts_per_group: count(window),
            tail_padding: 0,
        };
        // SAFETY: checked above.
        unsafe { caps.write(all) };
        Ok(())
    })
}

/// Joins the job. An objection to this rank's own arguments goes along, because the other ranks
/// come to the exchange and have to hear of it.
fn join(spec: &InitSpec, objection: Option<Error>) -> Result<Context, Failure> {
    let (rank, size) = (spec.world_rank, spec.world_size);
    log::set_rank(rank);
    note_devices(&spec.config);
    let numbers = u32::try_from(rank).ok().zip(u32::try_from(size).ok());
    let numbers = numbers.filter(|(rank, size)| rank < size && *size <= WORLD_MAX);
    let mut params = match numbers {
        Some((rank, size)) => Params::new(rank, size),
        None => Params::new(u32::MAX, u32::try_from(size).unwrap_or(0)),
    };
    params.objection = objection;
    if numbers.is_none() {
        params.object(Error::Invalid(format!("world_rank {rank} of world_size {size} makes no sense")));
    }
    // Even where the size makes no sense, the exchange needs room for what it brings.
    let room = if (1..=WORLD_MAX).contains(&params.size) { params.size } else { WORLD_MAX };
    params.oob = Some(Box::new(Exchange::new(&spec.oob_colls, spec.oob_ctx, room)?));
    let has_streams = settings::number("SHARP_COLL_ENABLE_SAT") != Some(0);
    wishes::ask(&mut params, has_streams);
    if let Some(call) = spec.progress_func.filter(|_| spec.config.user_progress_num_polls > 0) {
        params.progress = Some(Arc::new(move || run(call)));
    }
    log::info(format_args!(
        "job {:#x}: rank {rank} of {size} asks for [{}] beside the fabric's defaults",
        spec.job_id,
        wishes::told(&params)
    ));
    let job = trib_client::Context::join(params)?;
    let mut statistics = Statistics::from_env();
    let mut exchange = Exchange::new(&spec.oob_colls, spec.oob_ctx, room)?;
    let agreed = Agreed { mode: statistics.mode, has_streams }.by_rank_0(&mut exchange)?;
    statistics.mode = agreed.mode;
    let limits = job.limits()?;
    log::info(format_args!(
        "job {:#x}: {} operations by datagram of {} bytes, {} of one group, {} groups",
        spec.job_id, limits.osts, limits.payload, limits.window, limits.groups
    ));
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    Ok(Context {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        job,
        oob_calls: spec.oob_colls,
        oob_context: spec.oob_ctx,
        statistics,
        on_error: OnError::from_env(),
        takes_gpu_memory: settings::number("SHARP_COLL_ENABLE_CUDA") != Some(0),
        next_tag: AtomicU64::new(0),
        has_streams: agreed.has_streams,
        limits,
    })
}

/// Says in the log that the list of devices is ignored: it names InfiniBand cards, while here
/// routes decide.
fn note_devices(config: &Config) {
    if config.ib_dev_list.is_null() {
        return;
    }
    // SAFETY: by the header's contract the list is null or a terminated string.
    let list = unsafe { CStr::from_ptr(config.ib_dev_list) };
    if !list.is_empty() {
        log::info(format_args!("devices `{}` are a hint: packets take this host's routes", list.to_string_lossy()));
    }
}

fn run(call: ProgressCall) {
    // SAFETY: the header's contract of the callback. What it returns has no meaning.
    let _ = unsafe { call() };
}

/// The number of datatypes, and that of operators.
const DATATYPES: u32 = 12;
const OPERATORS: u32 = 12;
