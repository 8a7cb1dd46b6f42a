//! Hosts and a switch as network namespaces of this machine: real interfaces, real queues, counters that are not ours.
//!
//! ```text
//!   host 0          host 1          host n-1
//!  10.77.0.2       10.77.0.3       10.77.x.y      one namespace each, eth0, mtu 1500
//!      |               |               |          a veth pair each
//!   ---+---------------+---------------+---
//!    h0             bridge br0          hn-1      the switch, a namespace too
//!                   10.77.0.1                     the aggregation nodes' address
//! ```
//!
//! Traffic between hosts is forwarded by the bridge, traffic between a host and the nodes ends at the bridge's own address;
//! so [`Lab::drop_between_hosts`] can cut the hosts off from each other and leave the tree alone.
//!
//! It takes root, `ip` and `nft`; [`Lab::available`] says what is missing. The namespaces carry their owner's process id and
//! start time in their names, so that [`Lab::sweep`] can remove those of owners that were killed.

mod counters;
mod error;
mod ip;
mod lab;
mod netns;
mod owner;
mod switch;

pub use counters::Counters;
pub use error::LabError;
pub use lab::{Lab, Star};
pub use netns::Namespace;
