//! The daemons as services of systemd.
//!
//! ```text
//!   trib service install an      user tributary-an
//!                                /etc/tributary/an.toml                     unless there is one
//!                                /etc/systemd/system/tributary-an.service   runs trib an --config
//!   make install, the package    PREFIX/lib/systemd/system/tributary-an.service
//! ```
//!
//! Map: `text` (the text of a unit), `install` (putting files in place and removing them),
//! `account` (the system users), `supervisor` (calling systemctl).

mod account;
mod install;
mod supervisor;
mod text;

pub use install::{Done, ServiceError, Target};
pub use text::{HIDDEN, NameError, Service, is_hidden};
