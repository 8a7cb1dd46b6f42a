//! What binds this process to its job.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use trib_node::Serving;

use super::Hold;
use crate::engine::Shared;
use crate::error::Error;

/// The engine, its helper thread, and at rank 0 the connection to the manager. Dropping it leaves
/// the job.
pub(crate) struct Ties {
    pub(crate) shared: Arc<Shared>,
    /// Taken when the job is left. A forked child owns none of this and must not drop it.
    owned: ManuallyDrop<Owned>,
    left: bool,
}

struct Owned {
    helper: JoinHandle<()>,
    /// Rank 0's connection to the manager, with which the job ends.
    manager: Option<Hold>,
    /// What this rank hosts of its job.
    serving: Option<Serving>,
}

impl Ties {
    pub(super) fn new(shared: Arc<Shared>, helper: JoinHandle<()>, serving: Option<Serving>) -> Ties {
        Ties { shared, owned: ManuallyDrop::new(Owned { helper, manager: None, serving }), left: false }
    }

    /// Keeps rank 0's connection to the manager.
    pub(super) fn hold(&mut self, manager: Hold) {
        self.owned.manager = Some(manager);
    }

    /// Tells the manager that the program goes on without the tree.
    pub(crate) fn fall_back(&self, why: &str) -> Result<(), Error> {
        self.shared.fork.check()?;
        if let Some(hold) = &self.owned.manager {
            hold.fall_back(why);
        }
        Ok(())
    }

    /// Leaves the job: it leaves all groups, waits at most a second for frames that are still
    /// queued, and closes the connections. If this process hosts nodes, it waits as long for ranks
    /// below them to leave the job, too.
    pub(crate) fn leave(&mut self) -> Result<(), Error> {
        self.shared.fork.check()?;
        if std::mem::replace(&mut self.left, true) {
            return Ok(());
        }
        let stopped = self.shared.stop(LINGER);
        // SAFETY: `left` makes sure that these are taken once.
        let Owned { helper, manager, serving } = unsafe { ManuallyDrop::take(&mut self.owned) };
        let helped = helper.join();
        // Nodes in this process serve others, who leave about now if the program ends.
        serving.iter().for_each(|serving| serving.see_out(LINGER));
        drop(serving);
        if let Some(hold) = manager {
            hold.end();
        }
        stopped?;
        helped.map_err(|_| Error::broken("the helper thread panicked"))
    }
}

impl Drop for Ties {
    fn drop(&mut self) {
        // Errors on the way out are lost here; a caller that wants to know them calls `leave`.
        let _ = self.leave();
    }
}

const LINGER: Duration = Duration::from_secs(1);
