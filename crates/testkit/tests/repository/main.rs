//! What the repository says of itself: which crate and which module uses which, how comments and
//! decisions are written, what is called a place, and whether the specification agrees with the
//! code.

mod circles;
mod comments;
mod decisions;
mod layering;
mod modules;
mod quota;
mod specification;
mod words;
