//! Writes what was refused into the manager's file, while the refused program does not wait.
//!
//! A refusal must not wait for the disk, and a program that asks again and again must not keep the
//! file from the jobs that are admitted. So refusals gather for a moment, and one write takes all
//! of them. A manager that ends writes the last of them first. One that is killed may lose those of
//! that moment. Jobs that ended are written with their own end and need none of this.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::records::store::{Entry, Store};

/// The thread that writes, as long as this value lives.
pub(crate) struct Keeper {
    entries: Option<SyncSender<Entry>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts to write into a file.
    pub(crate) fn start(store: Arc<Store>) -> io::Result<Keeper> {
        let (entries, told) = mpsc::sync_channel(QUEUE);
        let thread = thread::Builder::new().name("refusals".into()).spawn(move || write(&store, &told))?;
        Ok(Keeper { entries: Some(entries), thread: Some(thread) })
    }

    /// Has a refusal written soon. This waits only if as many refusals wait for the disk as fit
    /// into the queue.
    pub(crate) fn keep(&self, entry: Entry) {
        if let Some(entries) = &self.entries {
            // The thread ends only after this value.
            let _ = entries.send(entry);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.entries = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ = thread.join();
        }
    }
}

fn write(store: &Store, told: &Receiver<Entry>) {
    while let Ok(first) = told.recv() {
        let (mut entries, end) = (vec![first], Instant::now() + GATHERING);
        let is_last = loop {
            match told.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(entry) => entries.push(entry),
                Err(RecvTimeoutError::Timeout) => break false,
                Err(RecvTimeoutError::Disconnected) => break true,
            }
            if entries.len() >= QUEUE {
                break false;
            }
        };
        if let Err(error) = store.remember(&entries) {
            tracing::warn!(%error, "refused requests will not be known to the next manager");
        }
        if is_last {
            return;
        }
    }
}

/// How long refusals gather.
const GATHERING: Duration = Duration::from_millis(250);
/// The number of refusals that may wait to be written.
const QUEUE: usize = 512;
