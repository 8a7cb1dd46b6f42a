//! Locks that outlive a panic of a thread that had them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also after such a panic: whatever is kept under one is whole between two calls.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
