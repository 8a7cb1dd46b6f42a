//! Fixtures, generators and reference collectives shared by the tests.
//!
//! Map: `reference` (what a collective over a tree must give, computed plainly), `reference_fold`
//! (the arithmetic behind it), `reference_input` (vectors that distinguish a wrong fold from a
//! right one), `stand_in` (a CUDA driver for machines without a GPU).
//!
//! Invariant: nothing here uses the kernels, the protocol or any other code that the tests check.
#![deny(unsafe_code)]

mod reference;
mod reference_fold;
mod reference_input;
#[expect(unsafe_code, reason = "it calls a library in C")]
mod stand_in;

pub use reference::{Tree, expected};
pub use reference_fold::fold;
pub use reference_input::input;
pub use stand_in::StandIn;
