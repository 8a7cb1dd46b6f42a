//! The manager over real connections, with nodes and users made of the messages they send.

mod admission;
mod adoption;
mod backups;
mod check;
mod common;
mod desk;
mod jobs;
mod keys;
mod lengths;
mod levels;
mod ports;
mod rendezvous;
mod tenants;
mod trees;
mod trust;
