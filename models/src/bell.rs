//! A bell on which a thread sleeps: it stays rung until it is waited for, like an eventfd.

use loom::sync::{Condvar, Mutex};

pub(crate) struct Bell {
    rung: Mutex<u32>,
    changed: Condvar,
}

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell { rung: Mutex::new(0), changed: Condvar::new() }
    }

    pub(crate) fn ring(&self) {
        *self.rung.lock().unwrap() += 1;
        self.changed.notify_one();
    }

    /// Sleeps until it is rung. If nobody ever rings it, loom finds that no thread can go on.
    pub(crate) fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while *rung == 0 {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = 0;
    }

    /// How often it was rung since it was last waited for.
    pub(crate) fn rung(&self) -> u32 {
        *self.rung.lock().unwrap()
    }
}
