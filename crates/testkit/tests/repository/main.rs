//! What the repository says of itself: who uses whom, how decisions are told, and whether the
//! specification is the code's.

mod decisions;
mod layering;
mod specification;
