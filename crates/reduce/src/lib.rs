//! Reduction kernels: operator x datatype, one table
