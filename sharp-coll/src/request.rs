//! Section "Requests": operations in flight.
//!
//! A request is one collective of the API, which may be several of the client library, and what has to happen when all of them
//! are done. Its objects are used again and again: a post allocates nothing once there are enough of them.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use trib_client::Error;

use crate::boundary::{caught, guard};
use crate::collective::Landing;
use crate::comm::Shared;
use crate::error::{EINVAL, ERROR, Failure};
use crate::handle::{Kind, Table};
use crate::log;
use crate::settings::OnError;

/// Requests that C holds.
pub static REQUESTS: Table<Request> = Table::new(Kind::Request);

/// One operation in flight.
pub struct Request {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// None only while it lies in the pool.
    shared: Option<Arc<Shared>>,
    /// What it consists of; those before `done` have ended well.
    parts: SmallVec<[trib_client::Request; 1]>,
    done: usize,
    /// Looks in vain since the last step.
    misses: u32,
    /// A thread waits with the parts in its hands.
    is_waited_for: bool,
    /// Buffers of ours that the parts read from and write to.
    input: Option<Vec<u8>>,
    output: Option<Landing>,
    outcome: Option<c_int>,
}

/// What a request is made of.
pub struct Parts {
    pub parts: SmallVec<[trib_client::Request; 1]>,
    pub input: Option<Vec<u8>>,
    pub output: Option<Landing>,
}

impl Request {
    /// Takes an object from the pool, or makes one.
    pub fn new(shared: Arc<Shared>, Parts { parts, input, output }: Parts) -> Arc<Request> {
        let request = pool().pop().unwrap_or_else(|| Arc::new(Request { state: Mutex::default() }));
        let mut state = request.lock();
        // Field by field, and only what there is: most of it stays empty.
        state.shared = Some(shared);
        state.parts = parts;
        if input.is_some() {
            state.input = input;
        }
        if output.is_some() {
            state.output = output;
        }
        drop(state);
        request
    }

    /// Whether it belongs to this job.
    pub fn belongs_to(&self, context: u64) -> bool {
        self.lock().shared.as_ref().is_some_and(|shared| shared.context == context)
    }

    /// Drives progress once: the result, if there is one.
    pub fn test(&self) -> Option<c_int> {
        let mut state = self.lock();
        if state.outcome.is_none() && !state.is_waited_for {
            let State { parts, done, misses, .. } = &mut *state;
            let mut failed = None;
            while let Some(part) = parts.get(*done) {
                match part.test() {
                    None => {
                        *misses += 1;
                        // Clients test in a tight loop. Where there are more of them than cores, what they wait for needs one.
                        if misses.is_multiple_of(MISSES_TO_YIELD) {
                            std::thread::yield_now();
                        }
                        return None;
                    }
                    Some(Ok(())) => (*done, *misses) = (*done + 1, 0),
                    Some(Err(error)) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            state.end(failed);
        }
        state.outcome
    }

    /// Waits for the result. No lock is held meanwhile: the caller's progress may test what it likes. Fails if a thread waits
    /// already.
    pub fn wait(&self) -> Result<c_int, Failure> {
        let (parts, done) = {
            let mut state = self.lock();
            if let Some(code) = state.outcome {
                return Ok(code);
            }
            if state.is_waited_for {
                return Err(Failure::invalid("another thread waits for this request"));
            }
            state.is_waited_for = true;
            (std::mem::take(&mut state.parts), state.done)
        };
        let failed = parts[done..].iter().find_map(|part| part.wait(None).err());
        let mut state = self.lock();
        state.done = parts.iter().filter(|part| part.is_done()).count();
        state.parts = parts;
        state.is_waited_for = false;
        state.end(failed);
        Ok(state.outcome.unwrap_or(ERROR))
    }

    /// Whether the client library may still touch buffers of ours.
    fn is_under_way(&self) -> bool {
        self.lock().is_under_way()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_under_way(&self) -> bool {
        let all_done = || !self.is_waited_for && self.parts.iter().all(trib_client::Request::is_done);
        (self.input.is_some() || self.output.is_some()) && !all_done()
    }

    /// As it lies in the pool, its buffers given back.
    fn clear(&mut self) {
        self.parts.clear();
        (self.done, self.misses, self.is_waited_for, self.outcome) = (0, 0, false, None);
        let (input, output) = (self.input.take(), self.output.take().map(|landing| landing.bytes));
        if let Some(shared) = self.shared.take() {
            input.into_iter().chain(output).for_each(|bytes| shared.give_back(bytes));
        }
    }

    /// All parts are done, or one has failed.
    fn end(&mut self, failed: Option<Error>) {
        let failed = failed.map(Failure::from).or_else(|| {
            let landing = self.output.take()?;
            let moved = landing.land();
            if let Some(shared) = &self.shared {
                shared.give_back(landing.bytes);
            }
            moved.err()
        });
        if let Some(failure) = &failed {
            self.report(failure);
        }
        self.outcome = Some(failed.map_or(0, |failure| failure.code));
    }

    /// `sharp_coll_req_test` cannot tell an error: a wrong sum must not pass for a right one.
    fn report(&self, failure: &Failure) {
        let Some(shared) = &self.shared else { return };
        if shared.is_closed() {
            log::debug(format_args!("an operation ended with its group: {}", failure.text));
        } else if shared.on_error == OnError::Abort {
            log::fatal(format_args!(
                "an operation failed after it was posted, and its buffers are not what they should be: {}; the process ends. \
                 SHARP_COLL_ON_ERROR=complete lets it go on",
                failure.text
            ));
            std::process::abort();
        } else {
            log::error(format_args!("an operation failed after it was posted: {}", failure.text));
        }
    }
}

/// Puts an object that C no longer holds back into the pool, or aside while the client library uses its buffers.
pub fn retire(mut request: Arc<Request>) {
    let state = request.lock();
    if state.is_under_way() {
        let shared = state.shared.clone();
        drop(state);
        if let Some(shared) = shared {
            shared.set_aside(request);
        }
        return;
    }
    drop(state);
    match Arc::get_mut(&mut request) {
        Some(sole) => sole.state.get_mut().unwrap_or_else(PoisonError::into_inner).clear(),
        // A thread that found it before still looks at it. It is not used again, or that thread's last look would end the next operation.
        None => return request.lock().clear(),
    }
    let mut pool = pool();
    if pool.len() < POOL_MAX {
        pool.push(request);
    }
}

/// Those of them whose operation is over.
pub fn retire_all_done(aside: &mut Vec<Arc<Request>>) -> Vec<Arc<Request>> {
    aside.extract_if(.., |request| !request.is_under_way()).collect()
}

fn pool() -> MutexGuard<'static, Vec<Arc<Request>>> {
    static POOL: Mutex<Vec<Arc<Request>>> = Mutex::new(Vec::new());
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 1 when the request is done, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_req_test(request: *mut c_void) -> c_int {
    let tested = caught(|| match REQUESTS.get(request) {
        Some(request) => Ok(c_int::from(request.test().is_some())),
        // Whoever ignored the error of a post would wait for ever.
        None => Err(Failure::invalid("there is no such request: it was freed, or its post failed")),
    });
    tested.unwrap_or_else(|failure| {
        log::error(format_args!("sharp_coll_req_test: {}", failure.text));
        1
    })
}

/// Waits for the request, frees it, and returns its result.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_req_wait(request: *mut c_void) -> c_int {
    guard("sharp_coll_req_wait", || {
        let found = REQUESTS.get(request).ok_or_else(|| Failure::new(EINVAL, "there is no such request"))?;
        let code = found.wait()?;
        drop(found);
        if let Some(found) = REQUESTS.remove(request) {
            retire(found);
        }
        if code == 0 { Ok(()) } else { Err(Failure::new(code, "the operation failed")) }
    })
}

/// Frees a request. One that is no more, as after a failed `sharp_coll_req_wait`, is left alone.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_req_free(request: *mut c_void) -> c_int {
    guard("sharp_coll_req_free", || {
        if let Some(found) = REQUESTS.remove(request) {
            retire(found);
        }
        Ok(())
    })
}

const MISSES_TO_YIELD: u32 = 4;
const POOL_MAX: usize = 4096;
