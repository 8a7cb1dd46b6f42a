//! Control messages between manager, nodes, clients and tools: length-prefixed JSON over mutual
//! TLS.
//!
//! `hello` opens every channel; `request` and `reply` are the conversation of applications and
//! tools, `node` that of aggregation nodes; `job` is what a granted job is made of, `memory` what
//! its quota reserves, `explanation` what a job is doing, `jobs` a line about each that is or was,
//! `tenant` whom it counts for and who waits.
//!
//! Both ends speak the same protocol version. Within one, what a message gains has a default, so
//! that the releases before and after understand each other as far as they know the same.

pub mod explanation;
pub mod hello;
pub mod job;
pub mod jobs;
pub mod memory;
pub mod node;
pub mod reply;
pub mod request;
pub mod tenant;
