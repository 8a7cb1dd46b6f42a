//! The connection of a user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trib_control::{Channel, Error};
use trib_messages::reply::Reply;
use trib_messages::request::Request;
use trib_wire::ids::JobId;

use super::{Shared, deputy};
use crate::conversations::user::{Asker, answer, too_long};

/// Serves one user until its connection ends. The jobs that it still holds are left in `held`. The
/// connection is `engaged` while it holds one or waits for an answer.
pub(super) fn serve(
    shared: &Shared,
    channel: &Arc<Channel>,
    engaged: &AtomicBool,
    held: &mut Vec<JobId>,
) -> Result<(), Error> {
    let fabric = &*shared.fabric;
    let asker = Asker { tenant: channel.peer().tenant(), is_gone: &|| channel.is_closed() };
    loop {
        engaged.store(!held.is_empty(), Ordering::Relaxed);
        // A connection that holds a job may be silent for days. One that holds none has no reason
        // to stay.
        let patience = held.is_empty().then_some(IDLE);
        let request = channel.recv(patience);
        engaged.store(true, Ordering::Relaxed);
        if request.is_ok() {
            thread::sleep(shared.pace.wait(channel.peer().address.ip(), Instant::now()));
        }
        let reply = match request {
            Ok(Request::Serve(request)) => match deputy::serve(fabric, channel, &request) {
                Ok(ended) => return ended,
                // No program goes without anything for it: most often its job has just ended.
                Err(refusal) => Reply::Refused(refusal),
            },
            Ok(request) => match answer(fabric, &asker, request, held) {
                Some(reply) => reply,
                None => return Ok(()),
            },
            Err(Error::Closed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        match channel.send(&reply) {
            Err(Error::TooLong { bytes }) => {
                channel.send(&Reply::Refused(too_long(fabric, &reply, bytes, held)))?;
            }
            sent => sent?,
        }
    }
}

const IDLE: Duration = Duration::from_secs(60);
