//! What is drawn when an element is rounded: integers that are stirred, so that they look random
//! and are the same on every machine.

use trib_wire::INT8_BLOCK;

/// From what the seeds of the blocks follow that one member gives to one sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(u32);

impl Seed {
    /// That of the member with this rank, in the sum with this number among those of its group.
    pub fn new(number: u64, rank: u32) -> Seed {
        let mut stir = Stir::new(number as u32);
        stir.add((number >> 32) as u32);
        stir.add(rank);
        Seed(stirred(stir.0))
    }

    /// The seed of a block, 24 bits.
    #[inline(always)]
    pub(super) fn of_block(self, number: u64) -> u32 {
        let number = number as u32 ^ (number >> 32) as u32;
        stirred(self.0.wrapping_add(number.wrapping_mul(STEP))) >> 8
    }
}

/// The seed of a sum of blocks while their heads come.
pub(super) struct Stir(u32);

impl Stir {
    #[inline(always)]
    pub(super) fn new(head: u32) -> Stir {
        Stir(head ^ STEP)
    }

    #[inline(always)]
    pub(super) fn add(&mut self, head: u32) {
        self.0 = self.0.wrapping_mul(STEP).rotate_left(13) ^ head;
    }

    /// The seed, 24 bits.
    #[inline(always)]
    pub(super) fn seed(self) -> u32 {
        stirred(self.0) >> 8
    }
}

/// What is added to each element of a block, in scales, before it is rounded to nearest: 2^16
/// numbers at equal distances around 0, all of them below a half. So an integer stays what it is,
/// and everything else is rounded up as often as its fraction says.
#[inline(always)]
pub(super) fn offsets(seed: u32) -> [f32; INT8_BLOCK] {
    let mut offsets = [0.0; INT8_BLOCK];
    let (low, high) = offsets.split_at_mut(INT8_BLOCK / 2);
    for (at, (low, high)) in low.iter_mut().zip(high).enumerate() {
        let drawn = stirred(seed << 8 | at as u32);
        *low = offset(drawn & 0xffff);
        *high = offset(drawn >> 16);
    }
    offsets
}

#[inline(always)]
fn offset(drawn: u32) -> f32 {
    const UNIT: f32 = 1.0 / 65536.0;
    drawn as i32 as f32 * UNIT + (UNIT / 2.0 - 0.5)
}

/// A one-to-one map of 32 bits in which every bit depends on all (the last step of MurmurHash3, by
/// Austin Appleby, in the public domain).
#[inline(always)]
fn stirred(mut word: u32) -> u32 {
    word ^= word >> 16;
    word = word.wrapping_mul(0x85eb_ca6b);
    word ^= word >> 13;
    word = word.wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

/// An odd number whose multiples are far apart: 2^32 by the golden ratio.
const STEP: u32 = 0x9e37_79b1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_spread_evenly_and_do_not_follow_from_their_neighbours() {
        let seeds = 4000_u32;
        let drawn: Vec<[f32; INT8_BLOCK]> = (0..seeds).map(offsets).collect();
        let n = f64::from(seeds);
        let mean = |of: &dyn Fn(&[f32; INT8_BLOCK], usize) -> f64| {
            (0..INT8_BLOCK).map(|at| drawn.iter().map(|offsets| of(offsets, at)).sum::<f64>() / n).collect::<Vec<_>>()
        };
        // Six standard deviations of a mean of so many that are spread evenly.
        let within = 6.0 / (12.0 * n).sqrt();
        assert!(mean(&|offsets, at| f64::from(offsets[at])).iter().all(|mean| mean.abs() < within));
        let beside = mean(&|offsets, at| f64::from(offsets[at]) * f64::from(offsets[(at + 1) % INT8_BLOCK]));
        let across =
            mean(&|offsets, at| f64::from(offsets[at]) * f64::from(offsets[(at + INT8_BLOCK / 2) % INT8_BLOCK]));
        assert!(beside.iter().chain(&across).all(|mean| mean.abs() < 6.0 / (12.0 * n.sqrt())));
        for (one, next) in drawn.iter().zip(&drawn[1..]) {
            assert_ne!(one, next);
        }
        assert!(drawn.iter().flatten().all(|offset| offset.abs() < 0.5));
    }

    #[test]
    fn blocks_ranks_and_sums_have_other_seeds() {
        let mut seeds: Vec<u32> = Vec::new();
        for (number, rank) in [(0, 0), (1, 0), (0, 1), (1 << 32, 0), (2, 1), (1, 2)] {
            seeds.extend((0..100).map(|block| Seed::new(number, rank).of_block(block)));
        }
        let mut distinct = seeds.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() >= seeds.len() - 2, "two of 600 may be alike by chance");
        let of = |heads: &[u32]| {
            let mut stir = Stir::new(heads[0]);
            heads[1..].iter().for_each(|head| stir.add(*head));
            stir.seed()
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[1, 2]), of(&[1, 2, 0]));
    }
}
