//! A hook for tests: it makes the datagram path of a real process lose, double and reorder
//! datagrams.
//!
//! `TRIB_FAULT_UDP="loss=0.10,dup=0.05,reorder=0.05,seed=7"` in a process's environment puts these
//! faults on every datagram that the process sends and on every one that it receives, so that
//! between two such processes each fault happens twice as often. It does so only for jobs of a
//! fabric whose operator allows it (`faults = true` in the topology); elsewhere nobody reads the
//! variable, and the only check per datagram is that of an `Option`.

use std::env;

/// The environment variable that switches faults on.
pub const VARIABLE: &str = "TRIB_FAULT_UDP";

/// What goes wrong, as probabilities per datagram.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FaultPlan {
    /// A datagram is lost.
    pub loss: f64,
    /// A datagram is delivered twice.
    pub dup: f64,
    /// A datagram is overtaken by the next one.
    pub reorder: f64,
    /// Where the random numbers start.
    pub seed: u64,
}

/// Why a plan could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{VARIABLE}: {0:?} is not `loss`, `dup` or `reorder` (0..=1) or `seed` (a whole number) with `=` and a value")]
pub struct FaultSyntax(String);

/// What happens to one datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The datagram passes.
    Pass,
    /// The datagram is lost.
    Lose,
    /// The datagram is delivered twice.
    Double,
    /// The datagram is held back until the next one has passed.
    Hold,
}

/// Decides the fates of one direction of one socket.
#[derive(Clone, Debug)]
pub struct Faults {
    plan: FaultPlan,
    state: u64,
}

impl FaultPlan {
    /// The plan in the environment; `None` when the variable is unset or empty.
    pub fn from_env() -> Result<Option<FaultPlan>, FaultSyntax> {
        match env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => FaultPlan::parse(&text).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads `name=value` pairs parted by commas.
    pub fn parse(text: &str) -> Result<FaultPlan, FaultSyntax> {
        let mut plan = FaultPlan::default();
        for pair in text.split(',') {
            let wrong = || FaultSyntax(pair.to_owned());
            let (name, value) = pair.trim().split_once('=').ok_or_else(wrong)?;
            let chance = || {
                let chance: f64 = value.parse().map_err(|_| wrong())?;
                (0.0..=1.0).contains(&chance).then_some(chance).ok_or_else(wrong)
            };
            match name {
                "loss" => plan.loss = chance()?,
                "dup" => plan.dup = chance()?,
                "reorder" => plan.reorder = chance()?,
                "seed" => plan.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(plan)
    }

    /// The fates of one direction; `salt` tells directions and sockets of one process apart.
    pub fn start(self, salt: u64) -> Faults {
        // The salt is mixed, because the generator itself counts in even steps: neighbouring salts
        // would give one sequence, only shifted.
        Faults { plan: self, state: self.seed ^ mix(salt.wrapping_add(1)) }
    }
}

impl Faults {
    /// The fate of the next datagram.
    pub fn next_fate(&mut self) -> Fate {
        let draw = self.draw();
        let FaultPlan { loss, dup, reorder, .. } = self.plan;
        if draw < loss {
            Fate::Lose
        } else if draw < loss + dup {
            Fate::Double
        } else if draw < loss + dup + reorder {
            Fate::Hold
        } else {
            Fate::Pass
        }
    }

    /// The next number of SplitMix64, as a fraction of one.
    fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.state) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finalizer of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_and_nonsense_is_named() {
        assert_eq!(
            FaultPlan::parse("loss=0.10, dup=0.05,reorder=0.05,seed=7"),
            Ok(FaultPlan { loss: 0.10, dup: 0.05, reorder: 0.05, seed: 7 })
        );
        for nonsense in ["loss", "loss=2", "loss=-0.1", "loss=x", "speed=1", "seed=1.5", ""] {
            assert!(FaultPlan::parse(nonsense).is_err(), "{nonsense:?}");
        }
    }

    #[test]
    fn fates_come_as_often_as_planned_and_the_same_for_the_same_seed() {
        let plan = FaultPlan::parse("loss=0.10,dup=0.05,reorder=0.20,seed=7").unwrap();
        let draw = |salt| {
            let mut faults = plan.start(salt);
            (0..20_000).map(|_| faults.next_fate()).collect::<Vec<_>>()
        };
        let fates = draw(1);
        let share = |fate| fates.iter().filter(|f| **f == fate).count() as f64 / 20_000.0;
        assert!((share(Fate::Lose) - 0.10).abs() < 0.01);
        assert!((share(Fate::Double) - 0.05).abs() < 0.01);
        assert!((share(Fate::Hold) - 0.20).abs() < 0.01);
        assert_eq!(fates, draw(1));
        for shift in 0..4 {
            assert_ne!(fates[shift..19_000 + shift], draw(2)[..19_000], "one sequence, shifted by {shift}");
            assert_ne!(fates[..19_000], draw(2)[shift..19_000 + shift], "one sequence, shifted by {shift}");
        }
    }
}
