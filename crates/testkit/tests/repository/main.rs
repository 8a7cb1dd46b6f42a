//! What the repository says of itself: which crate uses which, how decisions are told, and whether
//! the specification agrees with the code.

mod decisions;
mod layering;
mod specification;
