//! Messages between two ranks, over one TCP connection for each direction.
//!
//! ```text
//!   sender                                     receiver
//!     |  connect                                 |  listen, then accept until it gives something
//!     |--- magic, the handle's secret ---------->|  who does not know the secret is sent away
//!     |--- length u64 (LE), bytes -------------->|  a message; they come in the order of the calls
//! ```
//!
//! The modules are `listener` (who waits to be connected to), `outgoing` (connections that are
//! being made), `stream` (one end of a connection) and `transfer` (a message on its way).

mod listener;
mod outgoing;
mod stream;
mod transfer;

pub use listener::Listener;
pub use outgoing::Outgoing;
pub use stream::Stream;
