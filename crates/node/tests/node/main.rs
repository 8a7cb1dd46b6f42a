//! Real nodes on loopback, with ranks made of a leaf core on real sockets.

mod collectives;
mod hostile;
mod keys;
mod lifetime;
mod ports;
mod stepped;
mod support;
mod upgrade;
