//! The protocol core: leaves and nodes with no network between them.

mod board;
mod flight;
mod numbers;
mod parts;
mod recovery;
mod replay;
mod replayed;
mod tree;
