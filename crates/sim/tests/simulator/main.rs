//! The simulator: fixed seeds, chosen troubles, and whether its checkers notice.

mod checkers;
mod scenarios;
mod seeds;
