//! Section "Groups".
//!
//! ```text
//!   gather  world rank of every member, or what is wrong with its call   -> group rank 0
//!   bcast   members and a tag, or an error                                <- group rank 0
//!   every member: the group is made, in band
//!   gather  outcomes, bcast verdict
//! ```
//!
//! A member whose call makes no sense takes part nevertheless, as far as its context is valid,
//! because the callbacks are the context's.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trib_client::agreement::Agreement;
use trib_client::{Error, Group, RankList};

use crate::abi::CommInitSpec;
use crate::boundary::{given, guard, writable};
use crate::context::{CONTEXTS, Context};
use crate::error::{ENOMEM, ERROR, Failure};
use crate::exchange::Exchange;
use crate::handle::{Kind, Table};
use crate::log;
use crate::request::retire_if_over;
use crate::settings::OnError;

/// Groups that C holds.
pub static COMMS: Table<Comm> = Table::new(Kind::Comm);

/// A group of this rank.
pub struct Comm {
    pub group: Group,
    pub shared: Arc<Shared>,
}

/// What a group and its requests share. The group ends when it is destroyed, each of its requests
/// when it is freed.
pub struct Shared {
    /// The number of the job to which it belongs.
    pub context: u64,
    on_error: OnError,
    /// Whether buffers may be memory of GPUs.
    pub takes_gpu_memory: bool,
    closed: AtomicBool,
    /// Buffers that were used before.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Entries of requests that were freed while their operation was under way.
    aside: Mutex<Vec<u32>>,
    /// Whether `aside` has any. Every post asks this, so it must not take the lock.
    has_aside: AtomicBool,
}

impl Shared {
    fn new(context: &Context) -> Shared {
        Shared {
            context: context.number,
            on_error: context.on_error,
            takes_gpu_memory: context.takes_gpu_memory,
            closed: AtomicBool::new(false),
            buffers: Mutex::default(),
            aside: Mutex::default(),
            has_aside: AtomicBool::new(false),
        }
    }

    /// An empty buffer.
    pub fn buffer(&self) -> Vec<u8> {
        lock(&self.buffers).pop().unwrap_or_default()
    }

    /// Keeps a buffer for later operations, unless it is large or enough are kept.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        let mut kept = lock(&self.buffers);
        if buffer.capacity() <= KEPT_BYTES_MAX && kept.len() < KEPT_MAX {
            buffer.clear();
            kept.push(buffer);
        }
    }

    /// Keeps the entry of a request until its operation is over.
    pub fn set_aside(&self, entry: u32) {
        let mut aside = lock(&self.aside);
        aside.push(entry);
        self.has_aside.store(true, Ordering::Relaxed);
    }

    /// Gives back the entries of set-aside requests whose operation is over.
    pub fn tidy(&self) {
        // If another thread sets one aside just now, the next post finds it.
        if !self.has_aside.load(Ordering::Relaxed) {
            return;
        }
        let mut entries = std::mem::take(&mut *lock(&self.aside));
        entries.retain(|entry| !retire_if_over(*entry));
        let mut aside = lock(&self.aside);
        aside.append(&mut entries);
        self.has_aside.store(!aside.is_empty(), Ordering::Relaxed);
    }

    /// After this, failed operations are expected and are not reported.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Ends the process after a failure of which the caller may not learn, as the settings want it:
    /// a wrong sum must not pass for a right one.
    #[cold]
    pub fn end_process(&self, what: &str, failure: &Failure) {
        if self.on_error == OnError::Complete || self.is_closed() {
            return;
        }
        log::fatal(format_args!(
            "{what}: {}; the process ends. SHARP_COLL_ON_ERROR=complete lets it go on",
            failure.text
        ));
        std::process::abort();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Comm {
    /// Leaves the group after a failure to begin an operation, if this host is at fault: other
    /// members begin what this rank has not, and would take its next operation for that one.
    #[cold]
    pub fn give_up_after(&self, failure: &Failure) {
        if self.group.error().is_none() && matches!(failure.code, ENOMEM | ERROR) {
            // In a finalized context there is nobody to tell.
            let _ = self.group.leave();
        }
    }

    /// Leaves the group.
    pub fn close(self: Arc<Comm>) {
        self.shared.close();
        let shared = self.shared.clone();
        // The group is left when the last reference goes: a thread that is inside a call now ends
        // that call first.
        drop(self);
        shared.tidy();
    }
}

/// Makes a group.
///
/// # Safety
/// The header's contract: `spec` points to a spec whose callbacks work, `comm` to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_comm_init(
    context: *mut c_void,
    spec: *const CommInitSpec,
    comm: *mut *mut c_void,
) -> c_int {
    guard("sharp_coll_comm_init", || {
        // SAFETY: the caller's contract.
        let spec = unsafe { given(spec, "spec") }?;
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        let made = make(&context, spec, writable(comm, "comm").err())?;
        let handle = COMMS.insert(Arc::new(made)).ok_or_else(|| Failure::new(ENOMEM, "too many groups"))?;
        // SAFETY: no group is made when the pointer is null.
        unsafe { comm.write(handle) };
        Ok(())
    })
}

/// Leaves a group.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_comm_destroy(comm: *mut c_void) -> c_int {
    guard("sharp_coll_comm_destroy", || {
        COMMS.remove(comm).ok_or_else(|| Failure::invalid("there is no such group"))?.close();
        Ok(())
    })
}

fn make(context: &Context, spec: &CommInitSpec, objection: Option<Error>) -> Result<Comm, Failure> {
    let world = context.job.size();
    let (rank, size) = (u32::try_from(spec.rank).unwrap_or(u32::MAX), u32::try_from(spec.size).unwrap_or(0));
    // No group is larger than the job. With room for that many, a member that was told a wrong size
    // does no harm.
    let exchange = Exchange::new(&context.oob_calls, spec.oob_ctx, world)?;
    let mut agreement = Agreement::new(Box::new(exchange), rank, size, world);
    let senseless = || {
        let (rank, size) = (spec.rank, spec.size);
        Error::Invalid(format!("rank {rank} of a group of {size} in a job of {world} makes no sense"))
    };
    let makes_sense = rank < size && size <= world;
    let objection = objection.or_else(|| (!makes_sense).then(senseless));
    let own = context.job.rank().to_le_bytes();
    let ranks = agreement.gather(objection.clone().map_or(Ok(&own), Err))?;
    let members = agreement.bcast(ranks.and_then(|ranks| members(context, &ranks)))??;
    // The first gather may have lost this rank's objection, so the rank raises it once more.
    let made = objection.map_or(Ok(()), Err).and_then(|()| make_members(context, &members));
    let outcome = made.as_ref().map(|_| &[][..]).map_err(Clone::clone);
    let verdict = agreement.gather(outcome)?.map(|_| Vec::new());
    agreement.bcast(verdict)??;
    log::info(format_args!("group of {size} of the job's {world} ranks: this is rank {rank} of it"));
    Ok(Comm { group: made?, shared: Arc::new(Shared::new(context)) })
}

/// What rank 0 of the group tells its members: a number that tells this creation from others, and
/// the list of the members.
///
/// ```text
/// tag u64 | ranks u32 each
/// ```
fn members(context: &Context, values: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
    let mut message = context.next_tag.fetch_add(1, Ordering::Relaxed).to_le_bytes().to_vec();
    message.extend(values.iter().flatten());
    let (_, list) = read_members(&message)?;
    if list.len() as usize != values.len() || !list.is_valid(context.job.size()) {
        return Err(Error::Invalid(format!("the members are not different ranks of one job: {list}")));
    }
    Ok(message)
}

fn read_members(message: &[u8]) -> Result<(u64, RankList), Error> {
    let (tag, ranks) = message.split_first_chunk().ok_or_else(|| {
        Error::OutOfBand("the out-of-band bcast brought a list of members that rank 0 did not send".into())
    })?;
    let ranks = ranks.as_chunks().0.iter().map(|rank| u32::from_le_bytes(*rank));
    Ok((u64::from_le_bytes(*tag), RankList::from_ranks(ranks)))
}

fn make_members(context: &Context, message: &[u8]) -> Result<Group, Error> {
    let (tag, members) = read_members(message)?;
    let (group, ready) = context.job.start_group(members, tag)?;
    ready.wait(Some(MAKE_LIMIT))?;
    Ok(group)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Making a group takes some round trips once all members are here, and the exchange has just shown
/// that they are.
const MAKE_LIMIT: Duration = Duration::from_secs(30);
/// The number of buffers that a group keeps, at most; the next constant is the largest size that it
/// keeps, in bytes.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 64 << 10;
