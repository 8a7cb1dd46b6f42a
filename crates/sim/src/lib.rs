//! Deterministic simulator: the protocol core under simulated time, network and faults
