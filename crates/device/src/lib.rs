//! Memory of GPUs, through the CUDA driver if there is one at run time: whether an address is a
//! device's, pinned memory of the host, and copies between the two in the order of streams.
//!
//! Nothing is linked against the driver. The modules are `driver` (the functions of the driver, and
//! where they come from), `error` (what they return, in words), `context` (where an address lies,
//! and what has to be current for a call), `relaxed` (calls beside a graph that is captured),
//! `program_copies` (copies of the program's that name no stream), `stream` and `event` (the order
//! of copies), `pinned` (memory of the host that a device reads
//! and writes by itself), `memory` (memory of a device that several processes of a host reach, by
//! an `ipc_handle`) and `kernel` (what a device computes).
//!
//! ```text
//!   driver --> context --> current --> stream, event, pinned, memory, kernel
//! ```
//! Each value needs the one before.
//!
//! Invariants: no call waits for a device as a whole, or goes through the stream on which all
//! others wait; every code of the driver becomes an error with the call's name; what a copy under
//! way touches is owned by something whose drop waits for the copy, which is the caller's to
//! arrange ([`Event::wait`]).

mod context;
mod driver;
mod error;
mod event;
mod ipc_handle;
mod kernel;
mod memory;
mod pinned;
mod program_copies;
mod relaxed;
mod stream;

pub use context::{Context, Current, locate};
pub use driver::{Driver, LIBRARY, SWITCH, driver};
pub use error::Error;
pub use event::Event;
pub use ipc_handle::IpcHandle;
pub use kernel::Kernel;
pub use memory::{Imported, Memory};
pub use pinned::Pinned;
pub use program_copies::complete_program_copies;
pub use relaxed::Relaxed;
pub use stream::{Stream, UserStream};
