//! How the conversation with the manager ends.
//!
//! The thread that has it may be waiting for a message. The thread that ends it waits for that one,
//! because the program may remove this code from its memory next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use trib_control::Channel;

/// What both threads share.
#[derive(Default)]
pub(crate) struct Ending {
    has_come: AtomicBool,
    channel: Mutex<Weak<Channel>>,
}

impl Ending {
    /// Whether the conversation is to end.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::SeqCst)
    }

    /// From now on, the conversation is over this channel.
    pub(crate) fn talks_over(&self, channel: Weak<Channel>) {
        *self.channel() = channel;
        // A thread that has ended the conversation meanwhile did not know of this channel.
        if self.has_come() {
            self.interrupt();
        }
    }

    /// Ends the conversation. The thread sees it at once, unless it is about to call the manager.
    pub(crate) fn come(&self, talking: Option<&JoinHandle<()>>) {
        self.has_come.store(true, Ordering::SeqCst);
        self.interrupt();
        // It may be between two calls of the manager.
        if let Some(talking) = talking {
            talking.thread().unpark();
        }
    }

    fn interrupt(&self) {
        let channel = self.channel().upgrade();
        if let Some(channel) = channel {
            channel.stop_receiving();
        }
    }

    fn channel(&self) -> MutexGuard<'_, Weak<Channel>> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
