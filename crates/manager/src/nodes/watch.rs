//! The thread that asks every node and every deputy for signs of life.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use trib_control::clock::unix_ms;

use super::deputies::Deputies;
use super::registry::Registry;

/// Starts the thread that asks. The thread ends by itself when the manager does.
pub(crate) fn watch(registry: &Arc<Registry>, deputies: &Arc<Deputies>) -> io::Result<()> {
    let (registry, deputies) = (Arc::downgrade(registry), Arc::downgrade(deputies));
    thread::Builder::new().name("silence".into()).spawn(move || ask(&registry, &deputies)).map(drop)
}

fn ask(registry: &Weak<Registry>, deputies: &Weak<Deputies>) {
    while let (Some(registry), Some(deputies)) = (registry.upgrade(), deputies.upgrade()) {
        registry.beat(unix_ms());
        deputies.beat(unix_ms());
        drop((registry, deputies));
        thread::sleep(BEAT);
    }
}

const BEAT: Duration = Duration::from_secs(1);
