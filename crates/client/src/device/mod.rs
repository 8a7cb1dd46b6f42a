//! Operations over memory of a GPU, in the order of its streams.
//!
//! A vector is cut into chunks, each of which is an operation of the group. Two threads of the
//! group move them, through buffers of pinned memory:
//!
//! ```text
//!   caller                  feeder                         drainer
//!   records an event  -->   device --> buffer, on a stream
//!   in its stream           posts the chunk when it    --> waits for the chunk's result
//!                           is there, in order             buffer --> device, on another stream
//!   its stream waits  <----------------------------------- the event behind the last chunk
//! ```
//!
//! While a chunk travels, the next ones are copied out and the results of earlier ones back. How
//! large chunks and how many buffers there are follows from the job's grant alone, so all members
//! cut alike (`plan`). What is done to an element does not depend on where its vector is cut, so
//! the bits are those of one operation over memory of the host.
//!
//! The modules are `plan` (chunks, and the rows of memory that each has), `buffer` (pinned memory
//! for a chunk), `streams` (our streams of a context), `work` (a collective under way), `chunk` (a
//! part of it), `feeder` and `drainer` (the two threads), `behind` (operations over memory of the
//! host that come behind it), `peers` (GPUs of a host that combine what they have) and `delivery`
//! (what the caller holds). The feeder also takes the
//! group's sums that nobody waits for in the call (`crate::sums`): they are operations one after
//! another, too, and what is called later comes behind them.
//!
//! Invariants: chunks and what comes behind them are posted in the order of the calls, whatever a
//! stream does; a buffer is freed or used again only when it is known that no copy from or to it is
//! under way; an operation is over only when none of its copies is; the caller's progress function
//! is never called by these threads.

mod behind;
mod buffer;
mod chunk;
mod delivery;
mod drainer;
mod feeder;
mod peers;
mod plan;
mod streams;
mod work;

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use trib_device::{Context, Relaxed, UserStream, driver, locate};
use trib_proto::window;
use trib_wire::Signature;

use crate::engine::{Shared, SignalMask};
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::params::Params;
use crate::posting::{Posting, lacks_buffer};
use crate::sums::{self, Part, Sum, Taking};
pub(crate) use behind::Behind;
use buffer::ChunkBuffers;
pub(crate) use delivery::Delivery;
use drainer::Drainer;
use feeder::{Feeder, Item, PeersOfHost};
use plan::Plan;
use streams::Streams;
use work::{Ends, Work};

/// What does the operations of one group over memory of GPUs.
pub(crate) struct Pipeline {
    shared: Arc<Shared>,
    group: Arc<GroupState>,
    plan: Plan,
    /// How many calls have something that is not posted yet.
    queued: Arc<AtomicUsize>,
    /// The ranks of the host with which this one combines, for as long as the threads run.
    peers: ManuallyDrop<Arc<PeersOfHost>>,
    queue: ManuallyDrop<Sender<Item>>,
    threads: ManuallyDrop<Vec<JoinHandle<()>>>,
    streams: ManuallyDrop<Mutex<Vec<Arc<Streams>>>>,
}

impl Pipeline {
    /// Starts the threads of a group.
    pub(crate) fn start(shared: &Arc<Shared>, group: &Arc<GroupState>) -> Result<Pipeline, Error> {
        let plan = Plan::new(&shared.limits()?, group.size);
        let queued = Arc::new(AtomicUsize::new(0));
        let peers = Arc::new(PeersOfHost::new(plan, Params::combines_devices()?));
        let (queue, items) = channel();
        let (to_drainer, passed) = channel();
        let (buffers, returned) = ChunkBuffers::new(plan);
        let feeder =
            Feeder::new(shared.clone(), group.clone(), items, buffers, to_drainer, (queued.clone(), peers.clone()));
        let drainer = Drainer::new(shared.clone(), passed, returned);
        let mut threads = Vec::new();
        for (name, run) in [
            ("trib-feeder", Box::new(move || feeder.run()) as Box<dyn FnOnce() + Send>),
            ("trib-drainer", Box::new(move || drainer.run())),
        ] {
            // A thread inherits its creator's mask, and signals are for the application's threads.
            let _mask = SignalMask::block_all();
            let thread = Builder::new().name(name.into()).stack_size(STACK_LEN).spawn(run);
            threads
                .push(thread.map_err(|cause| Error::Memory(format!(
                    "cannot make the threads that post for a group (over memory of a GPU, and sums that are not plain): \
                     {cause}; raise the limit of threads"
                )))?);
        }
        Ok(Pipeline {
            shared: shared.clone(),
            group: group.clone(),
            plan,
            queued,
            peers: ManuallyDrop::new(peers),
            queue: ManuallyDrop::new(queue),
            threads: ManuallyDrop::new(threads),
            streams: ManuallyDrop::default(),
        })
    }

    /// Whether something is still to be posted.
    pub(crate) fn is_busy(&self) -> bool {
        self.queued.load(Ordering::Acquire) > 0
    }

    /// Posts an operation over memory of the host when what came before it is posted.
    pub(crate) fn queue(&self, posting: Posting) -> Arc<Behind> {
        let behind = Arc::new(Behind::new(posting.signature()));
        self.send(Item::Host(posting, behind.clone().into()));
        behind
    }

    /// Takes a sum when what came before it is posted.
    pub(crate) fn take(&self, sum: Sum) -> Arc<Taking> {
        let taking = Arc::new(Taking::new(sum));
        self.send(Item::Sum(taking.clone().into()));
        taking
    }

    /// Begins an operation over memory of a GPU, which has been checked and is not empty.
    ///
    /// # Safety
    /// The contract of [`crate::Group::start_on_stream`].
    pub(crate) unsafe fn begin(
        &self,
        signature: Signature,
        input: Input,
        output: *mut u8,
        stream: UserStream,
    ) -> Result<Arc<Delivery>, Error> {
        if let Some(error) = self.group.error() {
            return Err(error.clone());
        }
        let (size, rank) = (self.group.size, self.group.rank);
        let sums = self.group.sums().filter(|kind| kind.concerns(&signature, size));
        if let Some(kind) = sums {
            sums::check(&self.shared, kind, &signature, size)?;
            if !self.plan.cuts_between_blocks(&signature) {
                return Err(Error::Unsupported(format!(
                    "a {} sum over memory of a GPU cannot be cut into blocks in a group of {size} ranks: use memory of \
                     the host, or a plain sum",
                    kind.name()
                )));
            }
        }
        let ends = Ends::new(&signature, rank, input, output);
        let (given, gotten) = window::shares(&signature, size, rank);
        let needs_input = !given.is_empty();
        if (needs_input && ends.input.is_null()) || (!gotten.is_empty() && ends.output.is_null()) {
            return Err(lacks_buffer(signature.collective));
        }
        let mut used = [(needs_input, ends.input), (!gotten.is_empty(), ends.output.cast_const())].into_iter();
        let driver = driver().map_err(from_device)?;
        let _relaxed = Relaxed::enter(driver).map_err(from_device)?;
        let context = used
            .find_map(|(is_used, address)| if is_used { locate(driver, address).transpose() } else { None })
            .ok_or_else(|| Error::Invalid(NO_DEVICE_MEMORY.into()))?
            .map_err(from_device)?;
        let current = context.enter().map_err(from_device)?;
        stream.refuse_capture(&current).map_err(from_device)?;
        let streams = self.streams_of(context)?;
        let entry = stream.record(&current).map_err(from_device)?;
        let delivery = Arc::new(Delivery::new(signature));
        let work = Work::new(
            (self.shared.clone(), self.group.clone()),
            delivery.clone(),
            (self.plan, signature, sums.map(|kind| (kind, Part::whole(&self.group, &signature)))),
            ends,
            entry,
            streams,
        );
        self.send(Item::Device(Arc::new(work)));
        Ok(delivery)
    }

    fn send(&self, item: Item) {
        self.queued.fetch_add(1, Ordering::AcqRel);
        // If the feeder has ended, the item is dropped, and what waits for it learns of that.
        let _ = self.queue.send(item);
    }

    /// Our streams of a context, which are made once.
    fn streams_of(&self, context: Context) -> Result<Arc<Streams>, Error> {
        let mut all = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.iter().find(|streams| streams.context() == context) {
            return Ok(found.clone());
        }
        let made = Arc::new(Streams::new(context).map_err(from_device)?);
        all.push(made.clone());
        Ok(made)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // A child after fork has no such threads, and what they share with it may be locked for
        // ever.
        if !self.shared.fork.is_home() {
            return;
        }
        // SAFETY: none of the fields is used again.
        let threads = unsafe {
            ManuallyDrop::drop(&mut self.queue);
            ManuallyDrop::take(&mut self.threads)
        };
        for thread in threads {
            // One that has panicked has dropped its share of every operation.
            let _ = thread.join();
        }
        // SAFETY: as above. Of what the others of the host have, nothing is read any more: every
        // buffer has settled. What is left to do in these streams goes on.
        unsafe {
            ManuallyDrop::drop(&mut self.peers);
            ManuallyDrop::drop(&mut self.streams);
        };
    }
}

/// An error of the device's as one of the client's.
fn from_device(error: trib_device::Error) -> Error {
    match &error {
        trib_device::Error::Absent(_) | trib_device::Error::Capturing => Error::Unsupported(error.to_string()),
        failed if failed.is_out_of_memory() => Error::Memory(error.to_string()),
        trib_device::Error::Failed { .. } => Error::Device(error.to_string()),
    }
}

const NO_DEVICE_MEMORY: &str = "no buffer of the call is memory of a GPU: use the call without a stream, on every rank";
/// The stack's size in bytes: posting goes through the protocol core, as in the helper thread.
const STACK_LEN: usize = 512 * 1024;
