//! What an operator needs to run the daemons, apart from the daemons themselves.
//!
//! ```text
//!   command line > environment > file ---> settings ---> trib am, trib an
//!                                             |
//!   docs, --help, --print-config  <--- one table per daemon
//! ```
//!
//! Map: `settings` (every setting of the daemons, from one table each), `log` (to the terminal, the
//! journal and a file), `unit` (the daemons as services of systemd), `metrics` (figures for
//! Prometheus).
//!
//! Invariant: nothing here decides about a job, and code that carries data waits for nothing here.
#![forbid(unsafe_code)]

pub mod log;
pub mod metrics;
pub mod settings;
pub mod unit;
