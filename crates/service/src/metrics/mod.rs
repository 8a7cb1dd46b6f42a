//! Figures for Prometheus: `/metrics` over plain HTTP, in the text exposition format 0.0.4.
//!
//! ```text
//!   worker, acceptor --mailbox--> counts ---+
//!   jobs, registry, ledger -----> report ---+--> Page --> HTTP, one scrape at a time
//!   /proc/self -----------------> process --+             in a thread of its own
//! ```
//!
//! Map: `table` (every metric, with its name, type, labels and meaning), `manager`, `node`,
//! `process` (from what a daemon reports to samples), `page` (the format), `request` (the HTTP that
//! is understood), `exporter` (the socket), `document` (the table in words).
//!
//! Invariant: a scrape asks threads as `trib status` does, between two rounds of their work.
//! Nothing on the way of a vector waits for it or reads a clock for it.

#[cfg(test)]
mod document;
mod exporter;
mod manager;
mod node;
mod page;
mod process;
mod request;
mod table;

pub use exporter::{Exporter, ExporterError};
pub use manager::manager_page;
pub use node::node_page;
pub use process::About;
pub use table::{METRICS, Metric, Type};
