//! Section "Requests": operations in flight.
//!
//! A request is one collective of the API. It may consist of several operations of the client
//! library, and it holds what has to happen when all of them are done. It stays in its entry until
//! it ends; the next request there takes over its memory instead of allocating.
//!
//! ```text
//!   take an entry --> post --> handle --> test, wait --> free --> entry given back
//!                                                        |                  ^
//!                 set aside while parts use our buffers: `--> set aside ----'
//! ```

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use trib_client::Error;
use trib_waiting::Courtesy;

use crate::boundary::{caught, guard};
use crate::collective::Landing;
use crate::comm::Shared;
use crate::entries::{Entries, Held};
use crate::error::{EINVAL, ENOMEM, ERROR, Failure};
use crate::handle::Kind;
use crate::log;

/// Requests that C holds, and those of blocking calls.
pub static REQUESTS: Entries<Request> = Entries::new(Kind::Request);

/// The entry of a request.
pub type Entry = Held<'static, Request>;

/// One operation in flight.
#[derive(Default)]
pub struct Request {
    /// `None` only while its entry is free.
    shared: Option<Arc<Shared>>,
    /// The operations of which it consists; those before `done` have ended well.
    parts: SmallVec<[trib_client::Request; 1]>,
    done: usize,
    courtesy: Courtesy,
    /// A thread waits for the parts and has taken them out.
    is_waited_for: bool,
    /// Buffers of ours from which the parts read and to which they write.
    input: Option<Vec<u8>>,
    output: Option<Landing>,
    outcome: Option<c_int>,
}

/// A request without parts, in an entry of its own.
pub fn begin(shared: &Arc<Shared>, input: Option<Vec<u8>>, output: Option<Landing>) -> Result<Entry, Failure> {
    let mut request =
        REQUESTS.take().or_else(taken_from_others).ok_or_else(|| Failure::new(ENOMEM, "too many requests"))?;
    // The fields are set one by one, because most requests need only some of them.
    request.shared = Some(shared.clone());
    if input.is_some() {
        request.input = input;
    }
    if output.is_some() {
        request.output = output;
    }
    Ok(request)
}

impl Request {
    /// One operation more of it.
    pub fn add(&mut self, part: trib_client::Request) {
        self.parts.push(part);
    }

    /// Whether it belongs to the job with this number.
    pub fn belongs_to(&self, context: u64) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.context == context)
    }

    /// Copies the result to the caller's buffers, once all parts have ended well.
    pub fn land(&mut self) -> Result<(), Failure> {
        let Some(landing) = self.output.take() else { return Ok(()) };
        let landed = landing.land();
        if let Some(shared) = &self.shared {
            shared.give_back(landing.bytes);
        }
        landed
    }

    /// Drives progress once and returns the result, if there is one.
    fn test(&mut self) -> Option<c_int> {
        if self.outcome.is_none() && !self.is_waited_for {
            let mut failed = None;
            while let Some(part) = self.parts.get(self.done) {
                match part.test() {
                    None => return None,
                    Some(Ok(())) => {
                        self.done += 1;
                        self.courtesy.stepped();
                    }
                    Some(Err(error)) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            self.finish(failed);
        }
        self.outcome
    }

    /// Whether the client library may still touch buffers of ours.
    fn is_under_way(&self) -> bool {
        (self.input.is_some() || self.output.is_some()) && !self.parts.iter().all(trib_client::Request::is_done)
    }

    /// Empties the request before its entry is given back.
    fn clear(&mut self) {
        self.release();
        self.outcome = None;
        self.courtesy.stepped();
        self.shared = None;
    }

    /// Drops what only an operation under way needs, and gives its buffers back to the group.
    fn release(&mut self) {
        self.parts.clear();
        self.done = 0;
        let (input, output) = (self.input.take(), self.output.take().map(|landing| landing.bytes));
        if let Some(shared) = &self.shared {
            input.into_iter().chain(output).for_each(|bytes| shared.give_back(bytes));
        }
    }

    /// Ends the request: all parts are done, or one has failed.
    fn finish(&mut self, failed: Option<Error>) {
        let failed = failed.map(Failure::from).or_else(|| self.land().err());
        match &failed {
            Some(failure) => self.report(failure),
            // Some clients never free a request, which must not hold a copy of its input then.
            None => self.release(),
        }
        self.outcome = Some(failed.map_or(0, |failure| failure.code));
    }

    /// Reports a failure, or ends the process, as the settings say. `sharp_coll_req_test` cannot
    /// return an error, and a wrong sum must not pass for a right one.
    #[cold]
    fn report(&self, failure: &Failure) {
        let Some(shared) = &self.shared else { return };
        shared.end_process(
            "an operation failed after it was posted, and its buffers are not what they should be",
            failure,
        );
        if shared.is_closed() {
            log::debug(format_args!("an operation ended with its group: {}", failure.text));
        } else {
            log::error(format_args!("an operation failed after it was posted: {}", failure.text));
        }
    }
}

/// Waits until all parts are done or one has failed. The entry is not locked meanwhile: the
/// caller's progress function may test any request, and the entry is not given back.
pub fn wait_for_parts(mut request: Entry) -> (Entry, Option<Error>) {
    request.is_waited_for = true;
    let (parts, done, entry) = (std::mem::take(&mut request.parts), request.done, request.entry());
    drop(request);
    let failed = parts[done..].iter().find_map(|part| part.wait(None).err());
    let mut request = REQUESTS.held(entry);
    request.done = parts.iter().filter(|part| part.is_done()).count();
    request.parts = parts;
    request.is_waited_for = false;
    (request, failed)
}

/// Ends a request that the caller no longer holds. Its entry is given back, or set aside while the
/// client library uses its buffers. If a thread waits for the request, that thread does this
/// itself.
pub fn retire(mut request: Entry) {
    request.end();
    if request.is_waited_for {
        return;
    }
    if let Some(shared) = request.shared.clone().filter(|_| request.is_under_way()) {
        let entry = request.entry();
        drop(request);
        return shared.set_aside(entry);
    }
    request.clear();
    request.vacate();
}

/// An entry, where all are in use.
#[cold]
fn taken_from_others() -> Option<Entry> {
    retire_over();
    REQUESTS.take()
}

/// Ends requests that the caller knows to be over, and has not freed. A handle of one tests as over
/// nevertheless.
fn retire_over() {
    REQUESTS.tenants().filter(|request| request.outcome == Some(0)).for_each(retire);
}

/// Gives an entry that was set aside back if its operation is over, and returns whether it is.
pub fn retire_if_over(entry: u32) -> bool {
    let request = REQUESTS.held(entry);
    let is_over = !request.is_under_way();
    if is_over {
        retire(request);
    }
    is_over
}

/// Returns 1 when the request is done, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_req_test(request: *mut c_void) -> c_int {
    let tested = caught(|| {
        // A caller that ignored the error of a post would otherwise wait for ever.
        let no_request = || Failure::invalid("there is no such request: it was freed, or its post failed");
        let mut request = REQUESTS.find(request).ok_or_else(no_request)?;
        if request.test().is_some() {
            return Ok(1);
        }
        // Clients test in a tight loop, so this thread pauses. Others may use the entry meanwhile.
        let step = request.courtesy.missed();
        drop(request);
        step.take(NAP);
        Ok(0)
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
        let mut request = REQUESTS.find(request).ok_or_else(|| Failure::new(EINVAL, "there is no such request"))?;
        if request.is_waited_for {
            return Err(Failure::invalid("another thread waits for this request"));
        }
        if request.outcome.is_none() {
            let (waited, failed) = wait_for_parts(request);
            request = waited;
            request.finish(failed);
        }
        let code = request.outcome.unwrap_or(ERROR);
        retire(request);
        if code == 0 { Ok(()) } else { Err(Failure::new(code, "the operation failed")) }
    })
}

/// Frees a request. An invalid one, as after a failed `sharp_coll_req_wait`, is left alone.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_req_free(request: *mut c_void) -> c_int {
    guard("sharp_coll_req_free", || {
        if let Some(request) = REQUESTS.find(request) {
            retire(request);
        }
        Ok(())
    })
}

/// How long a thread sleeps that tests in vain and shares its core. With the kernel's timers this
/// becomes some 70 us, which is little beside the time slice of a busy neighbour.
const NAP: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn with(outcome: Option<c_int>) -> *mut c_void {
        let mut request = REQUESTS.take().unwrap();
        request.outcome = outcome;
        request.handle()
    }

    #[test]
    fn what_is_over_and_was_never_freed_makes_room() {
        let handles = [Some(0), Some(ERROR), None].map(with);
        retire_over();
        assert_eq!(handles.map(|handle| REQUESTS.find(handle).is_some()), [false, true, true]);
        assert_eq!(sharp_coll_req_test(handles[0]), 1);
        for handle in handles {
            assert_eq!(sharp_coll_req_free(handle), 0);
        }
        assert_eq!(REQUESTS.tenants().count(), 0);
    }
}
