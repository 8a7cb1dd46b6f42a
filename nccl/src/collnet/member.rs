//! A rank of a CollNet communicator.

use std::ffi::c_void;
use std::fmt::Write;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trib_client::{Context, DataType, Group, Input, Params, RankList, ReduceOp, Request, operation};

use super::sums;
use crate::failure::{Code, Failure};
use crate::handle::Secret;
use crate::log;
use crate::ticket::{Owner, REQUESTS_MAX, Tickets};

/// A rank of a job that NCCL's communicator has for itself.
pub struct Member {
    group: Group,
    context: Context,
    state: Mutex<State>,
    tickets: Tickets<Member>,
}

struct State {
    under_way: [Option<UnderWay>; REQUESTS_MAX],
    operations: u64,
    bytes: u64,
}

struct UnderWay {
    request: Request,
    bytes: usize,
}

impl Owner for Member {
    fn tickets(&mut self) -> &mut Tickets<Member> {
        &mut self.tickets
    }
}

impl Member {
    /// Meets the other ranks, which all give the same secret, and makes a group with them. It waits
    /// for them as long as `TRIB_TIMEOUT_MS` says.
    pub fn join(secret: &Secret, rank: u32, size: u32) -> Result<Member, Failure> {
        let mut params = Params::new(rank, size);
        params.rendezvous = Some(meeting_name(secret));
        let context = Context::join(params)?;
        let (group, ready) = context.start_named_group(RankList::world(size), 0, GROUP_NAME)?;
        group.set_sums(sums::kind()?);
        sums::tell()?;
        ready.wait(Some(MAKE_LIMIT))?;
        log::info(&format!("CollNet: rank {rank} of {size} has joined the tree"));
        let state = State { under_way: [const { None }; REQUESTS_MAX], operations: 0, bytes: 0 };
        Ok(Member { group, context, state: Mutex::new(state), tickets: Tickets::new() })
    }

    /// Begins an allreduce; null if there are too many requests.
    ///
    /// # Safety
    /// Both buffers have `count` elements, are the same or do not overlap, and are the member's
    /// until [`Member::test`] says that the request is over or [`Member::abandon`] has returned.
    pub unsafe fn allreduce(
        &self,
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DataType,
        op: ReduceOp,
    ) -> Result<*mut c_void, Failure> {
        let mut state = self.lock();
        let Some(free) = state.under_way.iter().position(Option::is_none) else { return Ok(ptr::null_mut()) };
        let bytes = count.checked_mul(dtype.size()).filter(|bytes| *bytes <= OPERATION_MAX).ok_or_else(|| {
            Failure::argument(format!("an allreduce of {count} elements has more than {OPERATION_MAX} bytes"))
        })?;
        if count > 0 && (input.is_null() || output.is_null()) {
            return Err(Failure::argument("an allreduce has no address"));
        }
        let input = if ptr::eq(input, output) { Input::InPlace } else { Input::At(input) };
        // SAFETY: the caller's contract.
        let request = unsafe { self.group.start(operation::allreduce(count as u64, dtype, op), input, output) }?;
        state.under_way[free] = Some(UnderWay { request, bytes });
        state.operations += 1;
        state.bytes += bytes as u64;
        Ok(self.tickets.request(free))
    }

    /// The bytes of a request's result, if it is there. Then the request is free again.
    pub fn test(&self, index: usize) -> Result<Option<usize>, Failure> {
        let mut state = self.lock();
        let entry = &mut state.under_way[index];
        let Some(under_way) = entry else {
            return Err(Failure::new(Code::Internal, "a request was tested that is over already"));
        };
        let Some(outcome) = under_way.request.test() else { return Ok(None) };
        let bytes = under_way.bytes;
        *entry = None;
        outcome?;
        Ok(Some(bytes))
    }

    /// Ends what is under way, because its memory is about to go. Nothing is, unless NCCL aborts.
    pub fn abandon(&self) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.under_way.iter().all(Option::is_none) {
            return Ok(());
        }
        self.group.leave()?;
        for under_way in state.under_way.iter_mut().filter_map(Option::take) {
            // It fails, because the group was left, and its memory is not touched any more.
            let _ = under_way.request.wait(None);
        }
        Ok(())
    }

    /// Leaves the job.
    pub fn close(self) -> Result<(), Failure> {
        self.abandon()?;
        log::info(&self.told());
        let Member { group, context, .. } = self;
        drop(group);
        Ok(context.finalize()?)
    }

    /// What has gone through the tree.
    fn told(&self) -> String {
        let State { operations, bytes, .. } = *self.lock();
        let mut text = format!("CollNet: {operations} allreduces of {bytes} bytes went through the tree");
        if let Ok(counters) = self.context.counters() {
            let (datagrams, streams) = (counters.operations_llt, counters.operations_sat);
            let sent = counters.stream_bytes_sent;
            let _ = write!(text, ": {datagrams} by datagrams, {streams} by streams with {sent} bytes sent");
            if counters.operations_board > 0 {
                let _ = write!(text, ", {} in memory of the host", counters.operations_board);
            }
            if counters.epochs > 0 {
                let _ = write!(text, "; it went on without a node {} times", counters.epochs);
            }
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name under which ranks meet at the manager.
fn meeting_name(secret: &Secret) -> String {
    let mut name = "nccl-".to_owned();
    for byte in secret {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// The longest vector of one operation; sizes that NCCL gets back are of 31 bits.
pub const OPERATION_MAX: usize = 512 << 20;
/// Making a group takes some round trips once all ranks have joined.
const MAKE_LIMIT: Duration = Duration::from_secs(30);
const GROUP_NAME: &str = "NCCL CollNet";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_is_named_by_the_secret() {
        let mut secret = Secret::default();
        secret[0] = 0xab;
        assert_eq!(meeting_name(&secret), format!("nccl-ab{}", "00".repeat(15)));
    }
}
