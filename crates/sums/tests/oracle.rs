//! Sums of random numbers against exact rational arithmetic, which shares no code with the library.

use num_bigint::BigInt;
use proptest::prelude::*;
use trib_sums::{BLOCK, Kind, Layout, Width, settle, spread, survey};
use trib_wire::DataType;

/// A type by the bits of its fraction and of its exponent.
#[derive(Clone, Copy, Debug)]
struct Type {
    dtype: DataType,
    fraction: u32,
    exponent: u32,
}

const TYPES: [Type; 4] = [
    Type { dtype: DataType::F16, fraction: 10, exponent: 5 },
    Type { dtype: DataType::BF16, fraction: 7, exponent: 8 },
    Type { dtype: DataType::F32, fraction: 23, exponent: 8 },
    Type { dtype: DataType::F64, fraction: 52, exponent: 11 },
];

impl Type {
    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    fn sign(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    /// The value in units of the type's smallest number; that of infinity is the power of two that
    /// would come next.
    fn units(self, magnitude: u64) -> BigInt {
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        match exponent {
            0 => BigInt::from(fraction),
            _ => BigInt::from(fraction | 1 << self.fraction) << (exponent - 1),
        }
    }

    fn value(self, bits: u64) -> BigInt {
        let value = self.units(bits & !self.sign());
        if bits & self.sign() != 0 { -value } else { value }
    }

    /// The number next to a value, ties to even, found by bisection over all numbers.
    fn nearest(self, value: &BigInt) -> u64 {
        let sign = if value < &BigInt::ZERO { self.sign() } else { 0 };
        let value = BigInt::from(value.magnitude().clone());
        let (mut below, mut above) = (0, self.infinity());
        if value >= self.units(above) {
            return above | sign;
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if self.units(middle) <= value { below = middle } else { above = middle }
        }
        let (down, up) = (&value - self.units(below), self.units(above) - &value);
        let is_up = up < down || (up == down && below % 2 == 1);
        (if is_up { above } else { below }) | sign
    }

    /// What IEEE 754 says of the sum, however the numbers are ordered.
    fn sum(self, numbers: &[u64]) -> u64 {
        let magnitude = |bits: &u64| bits & !self.sign();
        let has = |wanted: u64| numbers.contains(&wanted);
        let (plus, minus) = (has(self.infinity()), has(self.infinity() | self.sign()));
        if numbers.iter().any(|bits| magnitude(bits) > self.infinity()) || (plus && minus) {
            return self.infinity() | 1 << (self.fraction - 1);
        }
        if plus || minus {
            return self.infinity() | if minus { self.sign() } else { 0 };
        }
        if numbers.iter().all(|bits| *bits == self.sign()) {
            return self.sign();
        }
        let sum: BigInt = numbers.iter().map(|bits| self.value(*bits)).sum();
        if sum == BigInt::ZERO { 0 } else { self.nearest(&sum) }
    }

    fn bytes(self, numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|bits| bits.to_le_bytes()[..self.dtype.size()].to_vec()).collect()
    }

    fn numbers(self, bytes: &[u8]) -> Vec<u64> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        bytes.chunks_exact(self.dtype.size()).map(number).collect()
    }
}

/// What a tree does with surveys and limbs, in some order of the members.
fn merged<const SIZE: usize>(given: &[Vec<u8>], order: &[usize], merge: impl Fn(i64, i64) -> i64) -> Vec<u8> {
    let load = |bytes: &[u8]| {
        let unsigned = bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        (unsigned << (64 - 8 * SIZE)).cast_signed() >> (64 - 8 * SIZE)
    };
    let mut all = given[order[0]].clone();
    for member in &order[1..] {
        for (target, own) in all.chunks_exact_mut(SIZE).zip(given[*member].chunks_exact(SIZE)) {
            target.copy_from_slice(&merge(load(target), load(own)).to_le_bytes()[..SIZE]);
        }
    }
    all
}

fn sum_by(layout: &Layout, vectors: &[Vec<u8>], order: &[usize]) -> Vec<u8> {
    let limbs: Vec<Vec<u8>> = vectors
        .iter()
        .map(|vector| {
            let mut limbs = vec![0xaa; layout.bytes()];
            spread(layout, vector, &mut limbs);
            limbs
        })
        .collect();
    let add = i64::wrapping_add;
    let sums = match layout.width() {
        Width::Two => merged::<2>(&limbs, order, add),
        Width::Four => merged::<4>(&limbs, order, add),
        Width::Eight => merged::<8>(&limbs, order, add),
    };
    let mut result = vec![0x55; vectors[0].len()];
    settle(layout, &sums, &mut result);
    result
}

fn total(kind: Kind, of: Type, vectors: &[Vec<u8>], members: u32, order: &[usize]) -> (Layout, Vec<u8>) {
    let count = vectors[0].len() / of.dtype.size();
    let surveys: Vec<Vec<u8>> = vectors
        .iter()
        .map(|vector| {
            let mut surveys = vec![0; kind.survey_bytes(count)];
            survey(kind, of.dtype, vector, &mut surveys);
            surveys
        })
        .collect();
    let layout = Layout::new(kind, of.dtype, members, count, &merged::<2>(&surveys, order, i64::max));
    let result = sum_by(&layout, vectors, order);
    (layout, result)
}

/// Numbers around an exponent, with some that are not ordinary.
fn numbers(of: Type, count: usize) -> impl Strategy<Value = Vec<u64>> {
    let exponents = 1u64 << of.exponent;
    (0..exponents, prop_oneof![Just(1u64), Just(4), Just(40), Just(exponents)], 0u32..60).prop_flat_map(
        move |(middle, spread, odd)| {
            let number = (any::<u64>(), any::<u64>(), 0u32..100).prop_map(move |(bits, at, die)| {
                let exponent = (middle + at % spread).min(exponents - 2);
                let fraction = bits & ((1 << of.fraction) - 1);
                let sign = if bits >> 63 == 1 { of.sign() } else { 0 };
                if odd >= 20 || die > 4 {
                    return sign | exponent << of.fraction | fraction;
                }
                match (odd % 4, die) {
                    (0, 0) => of.infinity() | sign,
                    (0, 1) => of.infinity() | fraction.max(1) | sign,
                    (0 | 1, 2) => of.infinity(),
                    (0..=2, _) => of.sign(),
                    _ => 0,
                }
            });
            prop::collection::vec(number, count)
        },
    )
}

fn case() -> impl Strategy<Value = (Type, Vec<Vec<u64>>, u64)> {
    (prop::sample::select(TYPES.to_vec()), 1usize..9, prop_oneof![1usize..5, BLOCK - 1..BLOCK + 2], any::<u64>())
        .prop_flat_map(|(of, members, count, seed)| {
            (Just(of), prop::collection::vec(numbers(of, count), members), Just(seed))
        })
}

fn shuffled(members: usize, mut seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members).collect();
    for last in (1..members).rev() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(last, (seed >> 33) as usize % (last + 1));
    }
    order
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_exact_sum_is_the_sum_rounded_once((of, vectors, seed) in case(), more in 0u32..5000) {
        let bytes: Vec<Vec<u8>> = vectors.iter().map(|vector| of.bytes(vector)).collect();
        let order = shuffled(vectors.len(), seed);
        let members = vectors.len() as u32 + more * u32::from(seed % 3 == 0);
        // Further members give +0, so nothing is -0.
        let zeros = of.bytes(&vec![0; vectors[0].len()]);
        let all: Vec<Vec<u8>> = bytes.iter().cloned().chain((members as usize > bytes.len()).then_some(zeros)).collect();
        let order: Vec<usize> = order.into_iter().chain(bytes.len()..all.len()).collect();
        let expected: Vec<u64> = (0..vectors[0].len())
            .map(|at| of.sum(&all.iter().map(|vector| of.numbers(vector)[at]).collect::<Vec<_>>()))
            .collect();
        let (_, result) = total(Kind::Exact, of, &all, members, &order);
        prop_assert_eq!(of.numbers(&result), expected.clone());
        let unsurveyed = Layout::unsurveyed(of.dtype, members, vectors[0].len());
        prop_assert_eq!(of.numbers(&sum_by(&unsurveyed, &all, &order)), expected);
    }

    #[test]
    fn a_fixed_sum_is_within_its_bound_in_any_order((of, vectors, seed) in case()) {
        let bytes: Vec<Vec<u8>> = vectors.iter().map(|vector| of.bytes(vector)).collect();
        let members = vectors.len() as u32;
        let plain: Vec<usize> = (0..vectors.len()).collect();
        let (_, result) = total(Kind::Fixed, of, &bytes, members, &plain);
        let (_, other) = total(Kind::Fixed, of, &bytes, members, &shuffled(vectors.len(), seed));
        prop_assert_eq!(&result, &other);
        let result = of.numbers(&result);
        for block in (0..vectors[0].len()).step_by(BLOCK) {
            let columns = block..(block + BLOCK).min(vectors[0].len());
            let column = |at: usize| vectors.iter().map(|vector| vector[at]).collect::<Vec<_>>();
            let is_number = |bits: &u64| bits & !of.sign() < of.infinity();
            let largest = columns.clone().flat_map(column).filter(is_number).map(|bits| of.units(bits & !of.sign())).max();
            let largest = largest.unwrap_or(BigInt::ZERO);
            for at in columns {
                let all = column(at);
                if all.iter().any(|bits| !is_number(bits)) || all.iter().all(|bits| *bits == of.sign()) {
                    prop_assert_eq!(result[at], of.sum(&all));
                    continue;
                }
                // docs/exact-sums.md: each member's element is off by at most half a unit, which is
                // the largest element over two to the power of 62 (30 in limbs of 32 bits) less the
                // counter's bits; the result is rounded once more.
                let sum: BigInt = all.iter().map(|bits| of.value(*bits)).sum();
                let limb = if of.dtype.size() > 2 { 62 } else { 30 };
                let counter = u32::BITS - members.leading_zeros();
                let off = ((BigInt::from(members) * &largest) >> (limb - counter)) + 1;
                let (low, high) = (of.value(of.nearest(&(&sum - &off))), of.value(of.nearest(&(&sum + &off))));
                let own = of.value(result[at]);
                prop_assert!(low <= own && own <= high, "{low} {own} {high}");
            }
        }
    }

    #[test]
    fn whatever_comes_nothing_breaks(
        which in 0usize..4, members in 1u32..1 << 20, count in 0usize..600, seed in any::<u64>(), exact in any::<bool>(),
    ) {
        let (of, kind) = (TYPES[which], if exact { Kind::Exact } else { Kind::Fixed });
        let mut state = seed;
        let mut noise = |len: usize| -> Vec<u8> {
            (0..len).map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            }).collect()
        };
        let layout = Layout::new(kind, of.dtype, members, count, &noise(kind.survey_bytes(count)));
        let vector = noise(count * of.dtype.size());
        let mut limbs = vec![0; layout.bytes()];
        spread(&layout, &vector, &mut limbs);
        let mut result = vec![0; vector.len()];
        settle(&layout, &noise(layout.bytes()), &mut result);
    }
}

#[test]
fn what_plain_sums_lose_is_kept() {
    let of = TYPES[2];
    let sum = |values: &[f32]| {
        let vectors: Vec<Vec<u8>> = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
        let order: Vec<usize> = (0..values.len()).collect();
        let (_, result) = total(Kind::Exact, of, &vectors, values.len() as u32, &order);
        f32::from_bits(of.numbers(&result)[0] as u32)
    };
    let huge = 2f32.powi(127);
    assert_eq!(sum(&[huge, 1.0, -huge]), 1.0);
    assert_eq!(sum(&[huge, huge, -huge, -huge, 1e-45]), 1e-45);
    assert_eq!(sum(&[1.0, 1e-8, 1e-8, 1e-8, 1e-8, 1e-8, 1e-8]), 1.0000001);
    assert_eq!(sum(&[huge, huge]), f32::INFINITY);
    assert!(sum(&[f32::INFINITY, f32::NEG_INFINITY]).is_nan());
    assert_eq!(sum(&[-0.0, -0.0]).to_bits(), (-0f32).to_bits());
    assert_eq!(sum(&[-0.0, 0.0]).to_bits(), 0);
}

#[test]
fn two_hundred_orders_of_512_values_have_one_result() {
    for (number, of) in (0u64..).zip(TYPES) {
        // Values around one exponent, and of both signs: plain sums of them have many results.
        let mut state = number;
        let middle = 1u64 << (of.exponent - 1);
        let values: Vec<u64> = (0..512)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (exponent, fraction) = (middle - 8 + (state >> 40) % 8, state >> 10 & ((1 << of.fraction) - 1));
                let sign = if state >> 63 == 1 { of.sign() } else { 0 };
                sign | exponent << of.fraction | fraction
            })
            .collect();
        let vectors: Vec<Vec<u8>> = values.iter().map(|value| of.bytes(&[*value])).collect();
        for kind in [Kind::Fixed, Kind::Exact] {
            let result = |order: u64| of.numbers(&total(kind, of, &vectors, 512, &shuffled(512, order)).1);
            let first = result(0);
            assert!((1..200).all(|order| result(order) == first), "{kind:?} of {}", of.dtype);
            if kind == Kind::Exact {
                assert_eq!(first, [of.sum(&values)], "{}", of.dtype);
            }
        }
    }
}

#[test]
fn ordinary_gradients_take_few_bytes() {
    // Normally distributed, as gradients are, by the sum of twelve uniform numbers.
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || 1e-3 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0);
    for (of, kind, most) in [
        (TYPES[0], Kind::Exact, 3.0),
        (TYPES[1], Kind::Exact, 3.0),
        (TYPES[2], Kind::Exact, 3.0),
        (TYPES[0], Kind::Fixed, 2.1),
        (TYPES[1], Kind::Fixed, 2.1),
        (TYPES[2], Kind::Fixed, 2.1),
        (TYPES[3], Kind::Fixed, 1.1),
    ] {
        let count = 16 * BLOCK;
        let vectors: Vec<Vec<u8>> = (0..8)
            .map(|_| (0..count).map(|_| of.nearest(&as_units(of, normal()))).collect::<Vec<_>>())
            .map(|numbers| of.bytes(&numbers))
            .collect();
        let order: Vec<usize> = (0..8).collect();
        let (layout, _) = total(kind, of, &vectors, 8, &order);
        let factor = (layout.bytes() + kind.survey_bytes(count)) as f64 / vectors[0].len() as f64;
        assert!(factor <= most, "{:?} {kind:?}: {factor}", of.dtype);
    }
}

/// A value in units of the type's smallest number, rounded down.
fn as_units(of: Type, value: f64) -> BigInt {
    let double = TYPES[3];
    let finest = |of: Type| 2 - (1i64 << (of.exponent - 1)) - i64::from(of.fraction);
    double.value(value.to_bits()) >> (finest(of) - finest(double)) as u64
}
