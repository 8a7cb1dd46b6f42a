//! Connections that are being made. NCCL asks for one again and again, each time with the handle of
//! the listener, until it is there.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::stream::Stream;
use crate::failure::Failure;
use crate::handle::{Handle, Secret};

/// Connections that were asked for and are not there yet.
pub struct Outgoing(Mutex<Vec<Asked>>);

struct Asked {
    /// That of the listener, which waits for one sender.
    secret: Secret,
    stream: Stream,
    /// When it was asked for last.
    last: Instant,
}

impl Outgoing {
    pub const fn new() -> Outgoing {
        Outgoing(Mutex::new(Vec::new()))
    }

    /// The connection to this listener, if it is there now. It never waits.
    pub fn ask(&self, to: &Handle) -> Result<Option<Stream>, Failure> {
        self.ask_at(to, Instant::now())
    }

    fn ask_at(&self, to: &Handle, now: Instant) -> Result<Option<Stream>, Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|asked| asked.secret == to.secret).map(|at| all.remove(at).stream);
        // NCCL has given up asking for these. One that has failed stays until then, so that NCCL
        // learns of that if it asks once more.
        all.retain(|asked| now.saturating_duration_since(asked.last) < GIVEN_UP);
        let stream = known.map_or_else(|| Stream::connect(to), Ok)?;
        if stream.has_greeted()? {
            return Ok(Some(stream));
        }
        all.push(Asked { secret: to.secret, stream, last: now });
        Ok(None)
    }
}

/// NCCL asks for a connection many times a second until it is there.
const GIVEN_UP: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::Listener;
    use super::*;

    #[test]
    fn a_connection_is_there_after_some_questions() {
        let (listener, handle) = Listener::open("127.0.0.1".parse().unwrap()).unwrap();
        let outgoing = Outgoing::new();
        let began = Instant::now();
        let (mut out, mut into) = (None, None);
        while out.is_none() || into.is_none() {
            assert!(began.elapsed() < Duration::from_secs(20));
            out = out.or_else(|| outgoing.ask(&handle).unwrap());
            into = into.or_else(|| listener.accept().unwrap());
        }
        assert!(outgoing.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_connection_that_nobody_asks_for_any_more_is_closed() {
        let open = || Listener::open("127.0.0.1".parse().unwrap()).unwrap();
        let [(_first, given_up), (_second, other)] = [open(), open()];
        let (outgoing, began) = (Outgoing::new(), Instant::now());
        let stream = Stream::connect(&given_up).unwrap();
        outgoing.0.lock().unwrap().push(Asked { secret: given_up.secret, stream, last: began });
        let is_kept = |after: Duration| {
            outgoing.ask_at(&other, began + after).unwrap();
            outgoing.0.lock().unwrap().iter().any(|asked| asked.secret == given_up.secret)
        };
        assert!(is_kept(GIVEN_UP / 2));
        assert!(!is_kept(GIVEN_UP));
    }

    #[test]
    fn a_listener_of_collnet_has_no_address() {
        assert!(Outgoing::new().ask(&Handle { secret: [1; 16], address: None }).is_err());
    }
}
