//! The authenticated channel between the manager, aggregation nodes and users.
//!
//! Map: `url` (the manager's address), `holder` (in whose name one may speak), `certificate` (what
//! proves it), `credentials` (one side's own), `key_folder` (the operator's, with `authority`,
//! `files` and `withdrawn`), `doors` (the manager's credentials while it runs, with `doorman`),
//! `channel` (messages over mutual TLS 1.3), `parties` (and why it did not come about), `listener`
//! (the manager's end), `notify` (telling a supervisor that a daemon is ready), `watchdog` (and
//! that it is still well), `sparing` (what strangers make daemons log), `histogram` (and how long
//! its work takes), `clock` (the time of day), `error` (what went wrong, and whose fault it is).
//!
//! ```text
//!   user, node                                      manager
//!   ManagerUrl::from_env()                          Listener::bind(address, folder)
//!   Channel::connect(url, role, timeout)  ------->  listener.accept() -> Pending
//!   channel.send(&Request)                          pending.establish(timeout) -> Channel
//!   channel.recv::<Reply>(timeout)                  channel.peer().role(): from the certificate
//! ```
//!
//! Invariants: a role, a tenant and a node come from the certificate, never from what a peer says;
//! a message's length is checked before memory is taken for it; nothing waits without a limit
//! unless the caller says so.
#![forbid(unsafe_code)]

mod authority;
mod certificate;
mod channel;
pub mod clock;
mod credentials;
mod doorman;
mod doors;
mod error;
mod files;
mod frame;
mod handshake;
mod histogram;
mod holder;
mod key_folder;
mod listener;
pub mod notify;
mod parties;
mod secure;
mod sparing;
mod unfinished;
mod url;
mod watchdog;
mod withdrawn;

pub use certificate::{Certificate, Serial, WARNING};
pub use channel::{Channel, HANDSHAKE, Peer};
pub use credentials::{Credentials, node_folder};
pub use error::Error;
pub use files::make_folder;
pub use frame::MESSAGE_MAX;
pub use handshake::software_version;
pub use histogram::Histogram;
pub use holder::{Holder, is_tenant_name};
pub use key_folder::{KeyFolder, VALIDITY};
pub use listener::{Listener, Pending};
pub use sparing::Sparing;
pub use url::{CREDENTIALS_ENV, MANAGER_ENV, ManagerUrl};
pub use watchdog::Watchdog;
