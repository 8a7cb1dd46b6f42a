//! Aggregation node: protocol core, kernels and transport wired into a loop
