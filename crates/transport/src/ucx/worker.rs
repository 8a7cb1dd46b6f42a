//! UCX's worker, and the edges over it.
//!
//! One thread drives a worker and looks for what comes, others visit it: who opens an edge, and who
//! says the last words over one. Each takes the turn for it, a lock that is free unless two meet.

use std::ffi::c_void;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::LONGEST;
use super::abi::{
    self, Begun, Context, EndpointParams, HandlerParam, OnReceived, OnSent, ReceiveParam, Status, Worker, WorkerParams,
};
use super::context::open_context;
use super::edge::{Edge, Line};
use super::library::{Library, NoUcx};
use super::message::{Head, Kind};
use super::outgoing::Post;
use super::request::{hold, on_closed, on_error, on_flushed, on_received, on_sent, request};

/// A worker of UCX; clones are the same.
#[derive(Clone)]
pub struct UcxWorker {
    shared: Arc<Shared>,
}

/// What has gone through a worker.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UcxCounters {
    /// Messages sent.
    pub sent: u64,
    /// The bytes in them, without their heads.
    pub sent_bytes: u64,
    /// Messages taken.
    pub received: u64,
    /// The bytes in them, without their heads.
    pub received_bytes: u64,
    /// Messages that were for no edge, or that an edge could not take.
    pub rejected: u64,
}

struct Shared {
    library: &'static Library,
    context: *mut Context,
    worker: *mut Worker,
    bell: RawFd,
    address: Box<[u8]>,
    /// Who has it may call UCX.
    turn: Mutex<()>,
    desk: Mutex<Desk>,
    /// There is something for `attend`.
    attention: Arc<AtomicBool>,
    tally: Tally,
}

// SAFETY: the pointers are UCX's, which may be used from any thread that has the turn.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[derive(Default)]
struct Tally {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
    rejected: AtomicU64,
}

#[derive(Default)]
struct Desk {
    edges: FxHashMap<u64, Arc<Edge>>,
    parcels: Vec<Parcel>,
    leaving: Vec<Leaving>,
}

/// A payload that is to be fetched from the sender.
struct Parcel {
    edge: Arc<Edge>,
    description: *mut c_void,
    at: u64,
    len: usize,
}

/// An edge that nobody has any more, and whose last bytes are still to be sent.
struct Leaving {
    edge: Arc<Edge>,
    until: Instant,
    flushed: Flushed,
}

#[derive(Clone)]
enum Flushed {
    No,
    Soon(Arc<AtomicBool>),
    Yes,
}

/// The turn to call UCX.
pub(super) struct Turn<'a> {
    _guard: MutexGuard<'a, ()>,
}

// SAFETY: the descriptions in parcels are UCX's, and used by who has the turn.
unsafe impl Send for Desk {}

impl UcxWorker {
    /// Opens UCX as its environment says.
    pub fn open() -> Result<UcxWorker, NoUcx> {
        UcxWorker::with(&[])
    }

    /// Opens UCX with these settings, by their names without `UCX_`, besides its environment's.
    pub(super) fn with(settings: &[(&str, &str)]) -> Result<UcxWorker, NoUcx> {
        let library = Library::get()?;
        let context = open_context(library, settings)?;
        let mut shared = Shared {
            library,
            context,
            worker: core::ptr::null_mut(),
            bell: -1,
            address: Box::default(),
            turn: Mutex::new(()),
            desk: Mutex::default(),
            attention: Arc::default(),
            tally: Tally::default(),
        };
        shared.open_worker()?;
        let shared = Arc::new(shared);
        shared.take_messages()?;
        Ok(UcxWorker { shared })
    }

    /// The descriptor on which who drives the worker sleeps.
    pub fn bell(&self) -> RawFd {
        self.shared.bell
    }

    /// What has gone through.
    pub fn counters(&self) -> UcxCounters {
        let Tally { sent, sent_bytes, received, received_bytes, rejected } = &self.shared.tally;
        let [sent, sent_bytes, received, received_bytes, rejected] =
            [sent, sent_bytes, received, received_bytes, rejected].map(|count| count.load(Relaxed));
        UcxCounters { sent, sent_bytes, received, received_bytes, rejected }
    }

    /// Lets UCX work, unless another thread does.
    #[inline]
    pub fn drive(&self) {
        if let Ok(guard) = self.shared.turn.try_lock() {
            self.shared.progress(&Turn { _guard: guard });
        }
    }

    /// Lets UCX work in a thread that does not look for what comes. Who sleeps on the bell looks,
    /// which would not hear of it otherwise.
    pub(super) fn visit(&self) {
        let worked = self.shared.progress(&self.turn());
        if worked {
            self.ring();
        }
    }

    /// Says that this thread is about to sleep until the bell is rung. Returns false if it should
    /// not, because UCX is not at rest. What has come has to be looked for afterwards.
    pub fn fall_asleep(&self) -> bool {
        let turn = self.turn();
        for _ in 0..ROUNDS {
            if self.shared.progress(&turn) {
                continue;
            }
            // SAFETY: the turn is ours.
            match unsafe { (self.shared.library.worker_arm)(self.shared.worker) } {
                abi::BUSY => {}
                status => return status == abi::OK,
            }
        }
        false
    }

    /// Wakes who sleeps on the bell.
    pub fn ring(&self) {
        // SAFETY: UCX lets any thread do this at any time.
        unsafe { (self.shared.library.worker_signal)(self.shared.worker) };
    }

    /// Lets UCX work until all that was written is sent, for as long as this at most.
    pub fn see_off(&self, span: Duration) {
        let end = Instant::now() + span;
        let turn = self.turn();
        while self.shared.is_sending() && Instant::now() < end {
            if !self.shared.progress(&turn) {
                std::thread::yield_now();
            }
        }
    }

    pub(super) fn address(&self) -> &[u8] {
        &self.shared.address
    }

    /// Waits for the turn.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn { _guard: self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// A new edge with this name. Messages for it are taken from now on.
    pub(super) fn stub(&self, name: u64) -> io::Result<Arc<Edge>> {
        let edge = Arc::new(Edge::new(name, self.shared.attention.clone())?);
        self.shared.desk().edges.insert(name, edge.clone());
        Ok(edge)
    }

    /// Finds the way to the far end, which has this name and address.
    pub(super) fn connect(&self, edge: &Arc<Edge>, far: u64, address: &[u8]) -> Result<(), NoUcx> {
        let _turn = self.turn();
        let params = EndpointParams {
            field_mask: abi::EP_PARAM_FIELD_REMOTE_ADDRESS
                | abi::EP_PARAM_FIELD_ERR_HANDLING_MODE
                | abi::EP_PARAM_FIELD_ERR_HANDLER,
            address: address.as_ptr().cast(),
            err_mode: abi::ERR_HANDLING_MODE_PEER,
            err_handler: Some(on_error),
            err_handler_arg: Arc::as_ptr(edge).cast_mut().cast(),
            user_data: core::ptr::null_mut(),
            flags: 0,
            sockaddr: [0; 2],
            conn_request: core::ptr::null_mut(),
            name: core::ptr::null(),
            local_sockaddr: [0; 2],
        };
        let mut endpoint = core::ptr::null_mut();
        // SAFETY: the turn is ours, and the address is copied before the call returns. The edge
        // outlives its endpoint, because `leave` keeps it until that is closed.
        let status =
            unsafe { (self.shared.library.ep_create)(self.shared.worker, &raw const params, &raw mut endpoint) };
        self.shared.library.check("find the way to the far end", status)?;
        edge.connect(far, endpoint);
        Ok(())
    }

    /// Gives a message to UCX.
    pub(super) fn post(&self, turn: &Turn<'_>, edge: &Arc<Edge>, line: Line, post: Post) {
        self.shared.post(turn, edge, line, post);
    }

    /// Sends a word of how much was read, if it is due.
    pub(super) fn say_word(&self, edge: &Arc<Edge>) {
        let turn = self.turn();
        self.shared.say_word(&turn, edge);
    }

    /// Nobody has the edge any more. What was written is still sent, by who drives.
    pub(super) fn leave(&self, edge: &Arc<Edge>) {
        edge.leave();
        let mut desk = self.shared.desk();
        desk.edges.remove(&edge.name);
        if !edge.endpoint().is_null() {
            let until = Instant::now() + FAREWELL;
            desk.leaving.push(Leaving { edge: edge.clone(), until, flushed: Flushed::No });
        }
        drop(desk);
        self.shared.attention.store(true, Release);
        self.ring();
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_worker(&mut self) -> Result<(), NoUcx> {
        let library = self.library;
        let params = WorkerParams {
            field_mask: abi::WORKER_PARAM_FIELD_THREAD_MODE,
            thread_mode: abi::THREAD_MODE_SERIALIZED,
            cpu_mask: [0; 16],
            events: 0,
            user_data: core::ptr::null_mut(),
            event_fd: -1,
            flags: 0,
            name: core::ptr::null(),
            am_alignment: 0,
            client_id: 0,
        };
        // SAFETY: the structures live across the calls, and nobody else knows the worker yet.
        unsafe {
            let status = (library.worker_create)(self.context, &raw const params, &raw mut self.worker);
            library.check("make a worker", status)?;
            library.check("make a wake-up event", (library.worker_get_efd)(self.worker, &raw mut self.bell))?;
            let (mut address, mut len) = (core::ptr::null_mut(), 0);
            let status = (library.worker_get_address)(self.worker, &raw mut address, &raw mut len);
            library.check("tell its address", status)?;
            self.address = core::slice::from_raw_parts(address.cast_const().cast::<u8>(), len).into();
            (library.worker_release_address)(self.worker, address);
        }
        Ok(())
    }

    fn take_messages(self: &Arc<Self>) -> Result<(), NoUcx> {
        let param = HandlerParam {
            field_mask: abi::HANDLER_FIELD_ID
                | abi::HANDLER_FIELD_FLAGS
                | abi::HANDLER_FIELD_CB
                | abi::HANDLER_FIELD_ARG,
            id: MESSAGE,
            flags: abi::FLAG_WHOLE_MSG,
            cb: Some(on_message),
            arg: Arc::as_ptr(self).cast_mut().cast(),
        };
        // SAFETY: the worker, and with it the handler, ends before what `arg` points to.
        let status = unsafe { (self.library.worker_set_am_recv_handler)(self.worker, &raw const param) };
        self.library.check("take messages", status)
    }

    /// Lets UCX work. Returns whether it had anything to do.
    fn progress(&self, turn: &Turn<'_>) -> bool {
        let mut rounds = 0;
        // SAFETY: the turn is the caller's.
        while rounds < ROUNDS && unsafe { (self.library.worker_progress)(self.worker) } > 0 {
            rounds += 1;
        }
        if self.attention.load(Acquire) {
            self.attend(turn);
        }
        rounds > 0
    }

    /// Does what a callback may not, or what has to be looked after again and again.
    fn attend(&self, turn: &Turn<'_>) {
        self.attention.store(false, Release);
        let mut desk = self.desk();
        let leaving = std::mem::take(&mut desk.leaving);
        let owing: Vec<Arc<Edge>> =
            desk.edges.values().filter(|edge| edge.with(|state| state.come.owes_word())).cloned().collect();
        drop(desk);
        while let Some(parcel) = self.next_parcel() {
            self.fetch(turn, parcel);
        }
        owing.iter().for_each(|edge| self.say_word(turn, edge));
        let left: Vec<Leaving> = leaving.into_iter().filter_map(|leaving| self.see_out(turn, leaving)).collect();
        if !left.is_empty() {
            self.desk().leaving.extend(left);
            self.attention.store(true, Release);
        }
    }

    fn next_parcel(&self) -> Option<Parcel> {
        self.desk().parcels.pop()
    }

    fn say_word(&self, turn: &Turn<'_>, edge: &Arc<Edge>) {
        if let Some(word) = edge.put_word() {
            self.post(turn, edge, Line::Words, word);
        }
    }

    fn post(&self, _turn: &Turn<'_>, edge: &Arc<Edge>, line: Line, post: Post) {
        let endpoint = edge.endpoint();
        if endpoint.is_null() {
            return edge.is_sent(line, post.number);
        }
        let flags = if line == Line::Bytes { 0 } else { abi::SEND_FLAG_EAGER };
        let param = request(on_sent as OnSent as *const c_void, Arc::as_ptr(edge), flags);
        // SAFETY: the turn is the caller's. Head and payload lie in the edge's memory, which stays
        // as it is until the message is sent, and the edge lives as long, because the request
        // counts as one of its holders.
        let begun = Begun::of(unsafe {
            let send = self.library.am_send_nbx;
            send(endpoint, MESSAGE, post.head, Head::LEN, post.payload, post.len, &raw const param)
        });
        self.tally.sent.fetch_add(1, Relaxed);
        self.tally.sent_bytes.fetch_add(post.len as u64, Relaxed);
        match begun {
            Begun::Done => edge.is_sent(line, post.number),
            Begun::UnderWay(request) => {
                hold(edge);
                edge.is_requested(line, post.number, request);
            }
            Begun::Failed(status) => {
                edge.fail(&self.library.words(status));
                edge.is_sent(line, post.number);
            }
        }
    }

    /// Fetches the payload of a long message.
    fn fetch(&self, _turn: &Turn<'_>, Parcel { edge, description, at, len }: Parcel) {
        let Some(address) = edge.with(|state| state.come.address_of(at)) else { return };
        let param = request(on_received as OnReceived as *const c_void, Arc::as_ptr(&edge), 0);
        // SAFETY: the turn is the caller's. There is room for `len` bytes, which nothing
        // touches until they are there, and the edge lives as long, as above.
        let begun = Begun::of(unsafe {
            (self.library.am_recv_data_nbx)(self.worker, description, address.cast(), len, &raw const param)
        });
        match begun {
            Begun::Done => edge.with(|state| state.come.is_there(at)),
            Begun::UnderWay(request) => {
                hold(&edge);
                edge.with(|state| state.come.is_requested(at, request));
            }
            Begun::Failed(status) => edge.fail(&self.library.words(status)),
        }
    }

    /// Goes on with closing an edge that nobody has any more. Returns it if it is not closed yet.
    fn see_out(&self, _turn: &Turn<'_>, mut leaving: Leaving) -> Option<Leaving> {
        let edge = &leaving.edge;
        let is_over = Instant::now() >= leaving.until || edge.with(|state| state.failure().is_some());
        if let Flushed::Soon(done) = &leaving.flushed
            && done.load(Acquire)
        {
            leaving.flushed = Flushed::Yes;
        }
        if matches!(leaving.flushed, Flushed::No) && !edge.with(|state| state.is_sending()) && !is_over {
            let done = Arc::new(AtomicBool::new(false));
            let param = request(on_flushed as OnSent as *const c_void, Arc::as_ptr(&done), 0);
            // SAFETY: the turn is the caller's, and a flush under way holds the flag.
            leaving.flushed = match Begun::of(unsafe { (self.library.ep_flush_nbx)(edge.endpoint(), &raw const param) })
            {
                Begun::UnderWay(_) => {
                    hold(&done);
                    Flushed::Soon(done)
                }
                Begun::Done | Begun::Failed(_) => Flushed::Yes,
            };
        }
        if !matches!(leaving.flushed, Flushed::Yes) && !is_over {
            return Some(leaving);
        }
        self.close(edge);
        None
    }

    /// Closes the way to the far end. Requests under way end with it.
    fn close(&self, edge: &Arc<Edge>) {
        let endpoint = edge.take_endpoint();
        if endpoint.is_null() {
            return;
        }
        let param = request(on_closed as OnSent as *const c_void, Arc::as_ptr(edge), abi::CLOSE_FLAG_FORCE);
        // SAFETY: the turn is the caller's. The edge, to which the endpoint's handler points, is
        // held until the endpoint is closed.
        if let Begun::UnderWay(_) = Begun::of(unsafe { (self.library.ep_close_nbx)(endpoint, &raw const param) }) {
            hold(edge);
        }
    }

    fn is_sending(&self) -> bool {
        let desk = self.desk();
        let open = desk.edges.values().any(|edge| edge.with(|state| state.is_sending()));
        open || !desk.leaving.is_empty()
    }

    /// Takes a message. Returns what becomes of it at UCX.
    fn on_message(&self, head: &[u8], data: *mut c_void, len: usize, is_long: bool) -> Status {
        let reject = || self.tally.rejected.fetch_add(1, Relaxed);
        let Some(head) = Head::parse(head) else {
            reject();
            return abi::OK;
        };
        let Some(edge) = self.desk().edges.get(&head.name).cloned() else {
            reject();
            return abi::OK;
        };
        edge.on_taken(head.taken);
        self.tally.received.fetch_add(1, Relaxed);
        self.tally.received_bytes.fetch_add(len as u64, Relaxed);
        match head.kind {
            Kind::Taken => {}
            Kind::Record if is_long || len > LONGEST => {
                edge.fail("the far end sent a datagram that is too long");
                reject();
            }
            Kind::Record => {
                // SAFETY: UCX hands over `len` bytes, which last until the call returns.
                let bytes = unsafe { bytes(data, len) };
                edge.on_datagram(bytes);
            }
            Kind::Bytes => match edge.with(|state| state.come.expect(head.at, len)) {
                Err(why) => {
                    edge.fail(why);
                    reject();
                }
                Ok(_) if is_long => {
                    self.desk().parcels.push(Parcel { edge, description: data, at: head.at, len });
                    self.attention.store(true, Release);
                    return abi::IN_PROGRESS;
                }
                Ok(address) => {
                    // SAFETY: UCX hands over `len` bytes, and there is room for as many, which
                    // nothing touches until they are there.
                    unsafe { core::ptr::copy_nonoverlapping(data.cast_const().cast(), address, len) };
                    edge.with(|state| state.come.is_there(head.at));
                }
            },
        }
        abi::OK
    }
}

/// # Safety
/// There are `len` bytes at `data` for as long as the slice is used.
unsafe fn bytes<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(data.cast(), len) }
}

/// # Safety
/// UCX calls it with what `take_messages` has given it.
unsafe extern "C" fn on_message(
    arg: *mut c_void,
    head: *const c_void,
    head_len: usize,
    data: *mut c_void,
    len: usize,
    param: *const ReceiveParam,
) -> Status {
    // SAFETY: the worker lives as long as the worker that calls; the head lasts until the call
    // returns.
    let (shared, head, attributes) =
        unsafe { (&*arg.cast_const().cast::<Shared>(), bytes(head, head_len), (*param).recv_attr) };
    shared.on_message(head, data, len, attributes & abi::RECV_FLAG_RNDV != 0)
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.worker.is_null() {
            self.shut();
        }
        // SAFETY: nobody has the context any more.
        unsafe { (self.library.cleanup)(self.context) };
    }
}

impl Shared {
    /// Sends what is still to be sent, for a bounded time, and ends the worker.
    fn shut(&self) {
        let turn = Turn { _guard: self.turn.lock().unwrap_or_else(PoisonError::into_inner) };
        let end = Instant::now() + LAST_WORDS;
        while !self.desk().leaving.is_empty() && Instant::now() < end {
            self.progress(&turn);
        }
        let desk = std::mem::take(&mut *self.desk());
        let left = desk.leaving.into_iter().map(|leaving| leaving.edge);
        let left: Vec<Arc<Edge>> = left.chain(desk.edges.into_values()).collect();
        left.iter().for_each(|edge| self.close(edge));
        // What was under way ends now, and with it UCX's use of the edges' memory.
        for _ in 0..ROUNDS {
            // SAFETY: nobody else has the worker.
            unsafe { (self.library.worker_progress)(self.worker) };
        }
        // SAFETY: as above.
        unsafe { (self.library.worker_destroy)(self.worker) };
    }
}

impl std::fmt::Debug for UcxWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UcxWorker").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl PartialEq for UcxWorker {
    fn eq(&self, other: &UcxWorker) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for UcxWorker {}

impl From<NoUcx> for io::Error {
    fn from(error: NoUcx) -> io::Error {
        io::Error::other(error)
    }
}

/// The number of our messages, of which a worker of ours has no other.
const MESSAGE: u32 = 1;
/// How often UCX may work before it is somebody else's turn.
const ROUNDS: usize = 64;
/// How long an edge that nobody has any more may take to send what was written.
const FAREWELL: Duration = Duration::from_secs(10);
/// The same when the process is about to end.
const LAST_WORDS: Duration = Duration::from_secs(1);
