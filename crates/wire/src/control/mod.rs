//! Control messages between manager, nodes, clients and tools: length-prefixed JSON over mutual TLS.
//!
//! `hello` opens every channel; `request` and `reply` are the conversation of applications and tools,
//! `node` that of aggregation nodes; `job` is what a granted job is made of, `memory` what its quota reserves, `explanation`
//! what a job is doing.

pub mod explanation;
pub mod hello;
pub mod job;
pub mod memory;
pub mod node;
pub mod reply;
pub mod request;
