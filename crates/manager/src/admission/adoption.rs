//! Jobs that an earlier manager admitted, at nodes that do not come back to say whether they have
//! them.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::ending::end_adopted;
use crate::fabric::Fabric;

/// Starts the thread that gives such nodes up after a while, if there are such jobs. The thread
/// ends by itself.
pub(crate) fn watch(fabric: &Arc<Fabric>) -> io::Result<()> {
    if !fabric.jobs.has_adopted() {
        return Ok(());
    }
    let fabric = Arc::downgrade(fabric);
    thread::Builder::new().name("adoption".into()).spawn(move || give_up(&fabric)).map(drop)
}

fn give_up(fabric: &Weak<Fabric>) {
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        thread::sleep(GLANCE);
        // The manager has stopped, or nothing is left to wait for.
        if fabric.upgrade().is_none_or(|fabric| !fabric.jobs.has_adopted()) {
            return;
        }
    }
    if let Some(fabric) = fabric.upgrade() {
        let here = fabric.registry.all_connected();
        end_adopted(&fabric, fabric.jobs.give_up(&here));
    }
}

/// A node calls again at least every two seconds. One that is away for this long is down, and its
/// jobs with it.
const GRACE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(500);
