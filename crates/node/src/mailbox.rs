//! Messages to a thread that sleeps in `poll`.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use mio::{Registry, Token, Waker};

/// The sending end. Every thread that has something to say has a clone of it.
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

    /// Puts a message in. If the owner has ended, the message is lost.
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
