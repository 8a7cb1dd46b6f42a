//! Messages to a thread that sleeps in `poll`.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use mio::{Registry, Token, Waker};

/// The sending end; clones go to every thread that has something to say.
pub(crate) struct Mailbox<T> {
    queue: Sender<T>,
    waker: Arc<Waker>,
}

impl<T> Mailbox<T> {
    /// A mailbox whose owner polls with this registry and is woken with this token.
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<(Mailbox<T>, Receiver<T>)> {
        let (queue, receiver) = mpsc::channel();
        let waker = Arc::new(Waker::new(registry, token)?);
        Ok((Mailbox { queue, waker }, receiver))
    }

    /// Puts a message in. One for a thread that has ended goes nowhere.
    pub(crate) fn post(&self, message: T) {
        if self.queue.send(message).is_ok()
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "cannot wake a thread");
        }
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Mailbox { queue: self.queue.clone(), waker: self.waker.clone() }
    }
}
