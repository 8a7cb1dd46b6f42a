//! The protocol core: leaves and nodes with no network between them.

mod flight;
mod recovery;
mod tree;
