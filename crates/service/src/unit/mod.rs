//! The daemons as services of systemd.
//!
//! ```text
//!   trib service install an      user tributary
//!                                /etc/tributary/an.toml                     unless there is one
//!                                /etc/systemd/system/tributary-an.service   trib an --config /etc/tributary/an.toml
//!   make install, the package    PREFIX/lib/systemd/system/tributary-an.service
//! ```
//!
//! Map: `text` (what a unit says), `install` (putting files in place and taking them away),
//! `account` (the system user), `supervisor` (calling systemctl).

mod account;
mod install;
mod supervisor;
mod text;

pub use install::{Done, Place, ServiceError};
pub use text::{NameError, Service};
