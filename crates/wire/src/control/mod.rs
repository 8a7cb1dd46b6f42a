//! Control messages between manager, nodes, clients and tools: length-prefixed JSON over mutual TLS.
//!
//! `job` is what a granted job is made of; the requests and replies around it stand beside it.

pub mod job;
