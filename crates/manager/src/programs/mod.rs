//! Programs before and beside their jobs, by the text under which their ranks meet.
//!
//! ```text
//!   rendezvous   ranks that find each other here, for programs without an MPI
//!   launches     which job came from which launcher
//! ```

pub(crate) mod launches;
pub(crate) mod rendezvous;
