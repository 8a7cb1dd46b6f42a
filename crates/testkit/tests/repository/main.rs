//! What the repository says of itself: who uses whom, and whether the specification is the code's.

mod layering;
mod specification;
