//! Drivers that move bytes: UDP and TCP
