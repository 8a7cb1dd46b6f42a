//! The thread that asks every node for signs of life.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use trib_control::clock::unix_ms;

use super::registry::Registry;

/// Starts the thread that asks. The thread ends by itself when the manager does.
pub(crate) fn watch(registry: &Arc<Registry>) -> io::Result<()> {
    let registry = Arc::downgrade(registry);
    thread::Builder::new().name("silence".into()).spawn(move || ask(&registry)).map(drop)
}

fn ask(registry: &Weak<Registry>) {
    while let Some(registry) = registry.upgrade() {
        registry.beat(unix_ms());
        drop(registry);
        thread::sleep(BEAT);
    }
}

const BEAT: Duration = Duration::from_secs(1);
