//! The authenticated channel between the manager, aggregation nodes and users.
//!
//! Map: `url` (the manager's address), `credentials` (which roles may speak), `named` (and in which
//! tenant's or node's name), `channel` (messages over mutual TLS 1.3), `listener` (the manager's
//! end), `notify` (telling a supervisor that a daemon is ready), `watchdog` (and that it is still
//! well), `histogram` (and how long its work takes), `clock` (the time of day), `error` (what went
//! wrong, and whose fault it is).
//!
//! ```text
//!   user, node                                      manager
//!   ManagerUrl::from_env()                          Listener::bind(address, credentials)
//!   Channel::connect(url, role, timeout)  ------->  listener.accept() -> Pending
//!   channel.send(&Request)                          pending.establish(timeout) -> Channel
//!   channel.recv::<Reply>(timeout)                  channel.peer().role: from the certificate
//! ```
//!
//! Invariants: a role and a tenant come from the certificate, never from what a peer says; a
//! message's length is checked before memory is taken for it; nothing waits without a limit unless
//! the caller says so.
#![forbid(unsafe_code)]

mod channel;
pub mod clock;
mod credentials;
mod error;
mod frame;
mod handshake;
mod histogram;
mod listener;
mod named;
pub mod notify;
mod secure;
mod unfinished;
mod url;
mod watchdog;

pub use channel::{Channel, HANDSHAKE, Peer};
pub use credentials::Credentials;
pub use error::Error;
pub use frame::MESSAGE_MAX;
pub use handshake::software_version;
pub use histogram::Histogram;
pub use listener::{Listener, Pending};
pub use named::is_tenant_name;
pub use url::{CREDENTIALS_ENV, MANAGER_ENV, ManagerUrl};
pub use watchdog::Watchdog;
