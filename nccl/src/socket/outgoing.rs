//! Connections that are being made. NCCL asks for one again and again, each time with the handle of
//! the listener, until it is there.

use std::sync::{Mutex, PoisonError};

use super::stream::Stream;
use crate::failure::Failure;
use crate::handle::{Handle, Secret};

/// Connections by the secret of their listener, which waits for one sender.
pub struct Outgoing(Mutex<Vec<(Secret, Stream)>>);

impl Outgoing {
    pub const fn new() -> Outgoing {
        Outgoing(Mutex::new(Vec::new()))
    }

    /// The connection to this listener, if it is there now. It never waits.
    pub fn ask(&self, to: &Handle) -> Result<Option<Stream>, Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|(secret, _)| *secret == to.secret);
        let (secret, stream) = match known {
            Some(at) => all.remove(at),
            None => (to.secret, Stream::connect(to)?),
        };
        if stream.has_greeted()? {
            return Ok(Some(stream));
        }
        if all.len() == OUTGOING_MAX {
            // NCCL has given up asking for the oldest one long ago.
            all.remove(0);
        }
        all.push((secret, stream));
        Ok(None)
    }
}

/// More than a process makes at a time.
const OUTGOING_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

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
    fn a_listener_of_collnet_has_no_address() {
        assert!(Outgoing::new().ask(&Handle { secret: [1; 16], address: None }).is_err());
    }
}
