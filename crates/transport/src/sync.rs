//! What threads and processes share without a lock, by names of this crate: `models/` compiles the
//! same files with the types of a checker, which tries every order of steps.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::Arc;
