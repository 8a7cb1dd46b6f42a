//! Tests of the simulator: fixed seeds, chosen troubles, and whether its checkers notice errors.

mod checkers;
mod datagrams;
mod hosts;
mod recovery;
mod scenarios;
mod seeds;
mod strict;
