//! Rank 0's connection to the manager, which holds the job.
//!
//! After joining nothing is asked over it: what the manager is told goes into the socket, and its answer is not waited for. So a
//! manager that hangs or dies is no affair of a running job, and one that is well knows how a job ended, and why it goes on
//! without its tree.

use std::sync::atomic::{AtomicBool, Ordering};

use trib_control::Channel;
use trib_wire::JobId;
use trib_wire::control::request::Request;

/// The job lives as long as this. Dropped without a word, it counts as lost.
pub(crate) struct Hold {
    channel: Channel,
    job: JobId,
    told: AtomicBool,
}

impl Hold {
    pub(crate) fn new(channel: Channel, job: JobId) -> Hold {
        Hold { channel, job, told: AtomicBool::new(false) }
    }

    /// The program is done with the job.
    pub(crate) fn end(self) {
        self.say(&Request::EndJob { job: self.job, why: None });
    }

    /// The job was granted and cannot be used.
    pub(crate) fn give_up(self, why: String) {
        self.say(&Request::EndJob { job: self.job, why: Some(why) });
    }

    /// The program goes on without the tree. The first reason is told: answers that nobody reads must stay few.
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
