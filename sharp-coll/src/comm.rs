//! Section "Groups".
//!
//! ```text
//!   gather  world rank of every member, or what is wrong with its call   -> group rank 0
//!   bcast   members and a tag, or an error                                <- group rank 0
//!   every member: the group is made, in band
//!   gather  outcomes, bcast verdict
//! ```
//!
//! A member whose call makes no sense takes part nevertheless, as far as it knows the job, whose callbacks these are.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trib_client::agreement::Agreement;
use trib_client::{Error, Group, RankList};

use crate::abi::CommInitSpec;
use crate::boundary::{given, guard, writable};
use crate::context::{CONTEXTS, Context};
use crate::error::{ENOMEM, Failure};
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

/// What a group and its requests share: the group goes when it is destroyed, its requests when they are freed.
pub struct Shared {
    /// The job that it belongs to.
    pub context: u64,
    pub on_error: OnError,
    closed: AtomicBool,
    /// Buffers that were used before.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Places of requests that were freed while their operation was under way.
    aside: Mutex<Vec<u32>>,
    /// Whether there are any: every post asks.
    has_aside: AtomicBool,
}

impl Shared {
    fn new(context: &Context) -> Shared {
        Shared {
            context: context.number,
            on_error: context.on_error,
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

    /// Keeps a buffer for later, if it is of a size that comes often.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        let mut kept = lock(&self.buffers);
        if buffer.capacity() <= KEPT_BYTES_MAX && kept.len() < KEPT_MAX {
            buffer.clear();
            kept.push(buffer);
        }
    }

    /// Keeps the place of a request until its operation is over.
    pub fn set_aside(&self, place: u32) {
        let mut aside = lock(&self.aside);
        aside.push(place);
        self.has_aside.store(true, Ordering::Relaxed);
    }

    /// Lets go of those that were set aside and are over.
    pub fn tidy(&self) {
        // Who misses one that is set aside just now lets go of it the next time.
        if !self.has_aside.load(Ordering::Relaxed) {
            return;
        }
        let mut places = std::mem::take(&mut *lock(&self.aside));
        places.retain(|place| !retire_if_over(*place));
        let mut aside = lock(&self.aside);
        aside.append(&mut places);
        self.has_aside.store(!aside.is_empty(), Ordering::Relaxed);
    }

    /// From now on it is no surprise that operations fail.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Comm {
    /// Leaves the group.
    pub fn close(self: Arc<Comm>) {
        self.shared.close();
        let shared = self.shared.clone();
        // The last one leaves: a thread that is inside a call now ends it first.
        drop(self);
        shared.tidy();
    }
}

/// Makes a group.
///
/// # Safety
/// As the header says: `spec` points to a spec whose callbacks work, `comm` to a pointer.
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
        // SAFETY: the group is not made where it is null.
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
    // No group is larger than the job: with that much room, a member that was told a wrong size does no harm.
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
    // An objection that was lost on the way is said once more.
    let made = objection.map_or(Ok(()), Err).and_then(|()| make_members(context, &members));
    let outcome = made.as_ref().map(|_| &[][..]).map_err(Clone::clone);
    let verdict = agreement.gather(outcome)?.map(|_| Vec::new());
    agreement.bcast(verdict)??;
    log::info(format_args!("group of {size} of the job's {world} ranks: this is rank {rank} of it"));
    Ok(Comm { group: made?, shared: Arc::new(Shared::new(context)) })
}

/// What rank 0 of the group tells its members: what tells this creation from others, and who they are.
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

/// A group is made in some round trips once all members have come here, and the exchange has just shown that they have.
const MAKE_LIMIT: Duration = Duration::from_secs(30);
/// Buffers kept per group, and the largest that is.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 64 << 10;
