//! What the commands print, how they end and what they leave, tested with the binary itself.

mod bench;
mod fabric;
mod lab;
mod lab_end;
mod plan;
mod run;
mod service;
