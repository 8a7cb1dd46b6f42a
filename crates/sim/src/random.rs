//! The simulator's only source of randomness: a SplitMix64 stream that starts from the seed.

/// A stream of random numbers. Streams split from one another, so that drawing one more number for
/// one purpose does not change what is drawn for the others.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { state: mix(seed) }
    }

    /// A stream of its own for one purpose.
    pub fn split(&mut self) -> Rng {
        Rng::new(self.number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number from `low` to `high` with each power of two as likely as the next, so that small
    /// ones are common.
    pub fn scaled(&mut self, low: u64, high: u64) -> u64 {
        let (bottom, top) = ((low.max(1)).ilog2(), (high.max(1)).ilog2());
        let scale = 1u64 << self.between(u64::from(bottom), u64::from(top));
        self.between(scale, 2 * scale - 1).clamp(low, high)
    }

    /// True `parts` times in a thousand.
    pub fn chance(&mut self, parts: u64) -> bool {
        self.below(1000) < parts
    }

    /// One of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// Brings the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Scrambles a number; also the hash of the symbolic values.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_streams_and_bounds_hold() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..1000 {
            assert_eq!(a.number(), b.number());
            let n = a.between(3, 9);
            assert!((3..=9).contains(&n));
            assert_eq!(n, b.between(3, 9));
            let s = a.scaled(5, 1000);
            assert!((5..=1000).contains(&s));
            b.scaled(5, 1000);
        }
        assert_ne!(Rng::new(1).number(), Rng::new(2).number());
    }
}
