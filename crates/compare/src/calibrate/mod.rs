//! What a host and a node of this machine cost, for predictions: the real node and the real client
//! on loopback, and what a host's own algorithms are made of.
//!
//! Map: `tree` (ranks below one node, and what both used), `hosts` (messages and sums between two
//! threads).
//!
//! Processor time is what the kernel counted for a process, so that other work on the machine
//! lengthens nothing but latencies. On loopback the sender pays for the receiver's part of TCP
//! as well: the sum over hosts and node is right, the share of each is moved towards the senders.

mod hosts;
mod tree;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::statistics::median;

/// How to calibrate.
#[derive(Clone, Debug)]
pub struct Calibration<'a> {
    /// The `trib` binary.
    pub program: &'a Path,
    /// The folder of laboratories.
    pub base: &'a Path,
    /// Rounds.
    pub rounds: u32,
    /// Bytes of a long vector.
    pub bytes: u64,
    /// Not 0 once it is to end early, with nothing left of what it started: the signal that asked
    /// for it.
    pub interrupted_by: &'a AtomicUsize,
}

impl Calibration<'_> {
    fn check_interrupted(&self) -> Result<(), String> {
        match self.interrupted_by.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(format!("interrupted by signal {signal}")),
        }
    }
}

/// One figure as it was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The constant's name.
    pub name: &'static str,
    /// Of each round, in the constant's unit.
    pub values: Vec<f64>,
    /// What was measured, in words.
    pub how: String,
}

impl Figure {
    /// The median over the rounds.
    pub fn value(&self) -> f64 {
        median(&self.values)
    }

    /// The largest deviation from the median, as a share of it.
    pub fn spread(&self) -> f64 {
        let middle = self.value();
        let farthest = self.values.iter().map(|value| (value - middle).abs()).fold(0.0, f64::max);
        if middle > 0.0 { farthest / middle } else { 0.0 }
    }
}

/// Measures everything.
///
/// # Errors
/// What went wrong, in words.
pub fn calibrate(calibration: &Calibration<'_>) -> Result<Vec<Figure>, String> {
    let mut figures = tree::measure(calibration)?;
    figures.extend(hosts::measure(calibration)?);
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_the_farthest_round_is_the_spread() {
        let figure = Figure { name: "x", values: vec![2.0, 1.0, 10.0], how: String::new() };
        assert_eq!((figure.value(), figure.spread()), (2.0, 4.0));
        let nothing = Figure { values: vec![0.0, 0.0], ..figure };
        assert_eq!(nothing.spread(), 0.0);
    }
}
