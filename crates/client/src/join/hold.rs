//! Rank 0's connection to the manager, which holds the job.
//!
//! After joining, this side asks nothing over it. It may tell the manager something, but it never
//! waits for the answer. So a manager that hangs or dies does not disturb a running job, and a
//! healthy one knows how a job ended, and why it goes on without its tree.

use std::sync::atomic::{AtomicBool, Ordering};

use trib_control::Channel;
use trib_messages::request::Request;
use trib_wire::JobId;

/// The job lives as long as this value. If it is dropped without a message, the job counts as lost.
pub(crate) struct Hold {
    channel: Channel,
    job: JobId,
    told: AtomicBool,
}

impl Hold {
    pub(crate) fn new(channel: Channel, job: JobId) -> Hold {
        Hold { channel, job, told: AtomicBool::new(false) }
    }

    /// Says that the program is done with the job.
    pub(crate) fn end(self) {
        self.say(&Request::EndJob { job: self.job, why: None });
    }

    /// Says that the job was granted and cannot be used.
    pub(crate) fn give_up(self, why: String) {
        self.say(&Request::EndJob { job: self.job, why: Some(why) });
    }

    /// Says that the program goes on without the tree. Only the first reason is sent: nothing reads
    /// the answers, so there must be few.
    pub(crate) fn fall_back(&self, why: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            self.say(&Request::Fallback { job: self.job, why: why.to_owned() });
        }
    }

    fn say(&self, word: &Request) {
        if let Err(error) = self.channel.send(word) {
            tracing::debug!(%error, "the manager is not there to be told");
        }
    }
}
