//! The protocol core: state machines without I/O
