//! Section "Groups".
//!
//! ```text
//!   gather  world rank of every member        -> group rank 0
//!   bcast   members and a tag, or an error     <- group rank 0
//!   every member: the group is made, in band
//!   gather  outcomes, bcast verdict
//! ```

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trib_client::{Group, RankList};

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
        writable(comm, "comm")?;
        // SAFETY: the caller's contract.
        let spec = unsafe { given(spec, "spec") }?;
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        let made = make(&context, spec)?;
        let handle = COMMS.insert(Arc::new(made)).ok_or_else(|| Failure::new(ENOMEM, "too many groups"))?;
        // SAFETY: checked above.
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

fn make(context: &Arc<Context>, spec: &CommInitSpec) -> Result<Comm, Failure> {
    let world = context.job.size();
    let size = u32::try_from(spec.size).ok().filter(|size| (1..=world).contains(size));
    let size = size.ok_or_else(|| Failure::invalid(format!("a group of {} in a job of {world}", spec.size)))?;
    // A member that does not know its rank takes part nevertheless, and tells the others so.
    let rank = u32::try_from(spec.rank).ok().filter(|rank| *rank < size);
    let mut exchange = Exchange::new(&context.oob_calls, spec.oob_ctx, size)?;
    let (members, tag) = agree(context, &mut exchange, rank, size)?;
    let made = match rank {
        Some(_) => make_members(context, members, tag),
        None => Err(Failure::invalid(format!("rank {} of a group of {size} makes no sense", spec.rank))),
    };
    let own = made.as_ref().map_or_else(|failure| failure.code, |_| 0);
    if let Err(failure) = &made {
        log::error(format_args!("sharp_coll_comm_init: {}", failure.text));
    }
    match verdict(&mut exchange, rank, own)? {
        0 => {
            log::info(format_args!("group of {size} of the job's {world} ranks: this is rank {} of it", spec.rank));
            Ok(Comm { group: made?, shared: Arc::new(Shared::new(context)) })
        }
        code => Err(Failure::new(code, "the group could not be made at all of its members")),
    }
}

fn make_members(context: &Context, members: RankList, tag: u64) -> Result<Group, Failure> {
    let (group, ready) = context.job.start_group(members, tag)?;
    ready.wait(Some(MAKE_LIMIT))?;
    Ok(group)
}

/// Who the members are, and what tells this creation from others.
fn agree(context: &Context, exchange: &mut Exchange, rank: Option<u32>, size: u32) -> Result<(RankList, u64), Failure> {
    let own = rank.map_or(u32::MAX, |_| context.job.rank());
    let gathered = exchange.gathered(&own.to_le_bytes())?;
    // code i32 | 0 u32 | tag u64 | ranks u32 each
    let mut message = vec![0; HEAD_LEN + 4 * size as usize];
    if rank == Some(0) {
        let mut ranks: Vec<u32> = words(&gathered).collect();
        message[HEAD_LEN..].copy_from_slice(&gathered);
        message[8..HEAD_LEN].copy_from_slice(&context.next_tag.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        ranks.sort_unstable();
        let is_list = ranks.windows(2).all(|two| two[0] < two[1]) && ranks.last() < Some(&context.job.size());
        let code = if is_list { 0 } else { crate::error::EINVAL };
        message[..4].copy_from_slice(&code.to_le_bytes());
    }
    exchange.broadcast(&mut message)?;
    let code = words(&message[..4]).next().unwrap_or(0).cast_signed();
    if code != 0 {
        return Err(Failure::new(code, "the members are not different ranks of one job"));
    }
    let mut tag = [0; 8];
    tag.copy_from_slice(&message[8..HEAD_LEN]);
    Ok((RankList::from_ranks(words(&message[HEAD_LEN..])), u64::from_le_bytes(tag)))
}

/// The first member's failure, everywhere; 0 if there is none.
fn verdict(exchange: &mut Exchange, rank: Option<u32>, own: c_int) -> Result<c_int, Failure> {
    let gathered = exchange.gathered(&own.to_le_bytes())?;
    let mut code = [0; 4];
    if rank == Some(0) {
        let failed = words(&gathered).map(u32::cast_signed).find(|code| *code != 0);
        code = failed.unwrap_or(0).to_le_bytes();
    }
    exchange.broadcast(&mut code)?;
    // Whatever came over: never a positive code.
    Ok(match i32::from_le_bytes(code) {
        positive if positive > 0 => ERROR,
        code => code,
    })
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const HEAD_LEN: usize = 16;
/// A group is made in some round trips once all members have come here, and the exchange has just shown that they have.
const MAKE_LIMIT: Duration = Duration::from_secs(30);
/// Buffers kept per group, and the largest that is.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 64 << 10;
