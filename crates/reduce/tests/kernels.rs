//! Every cell of the table, on every path of this processor, must give the bits of the naive
//! reference.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trib_reduce::{FoldError, Path, cells, fold_into, fold_into_on, reference};
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::{DataType, ReduceOp, Scalar};

/// The vectors of one fold, each at its own distance from alignment.
#[derive(Debug)]
struct Case {
    elements: usize,
    /// Bytes in front of each vector; the first is the accumulator's.
    shifts: Vec<usize>,
    seed: u64,
}

impl Case {
    /// Makes the floats of pairs numbers in every other case: kernels fold numbers apart from
    /// chunks that hold something else.
    fn tame(&self, dtype: DataType, mut element: Vec<u8>) -> Vec<u8> {
        if self.seed.is_multiple_of(2) && dtype.index().is_some() && dtype.value().is_float() {
            element[dtype.value().size() - 1] &= !0x40;
        }
        element
    }

    fn check(&self, dtype: DataType, op: ReduceOp) {
        let length = self.elements * dtype.size();
        let mut random = Random(self.seed);
        let buffers: Vec<Vec<u8>> = self
            .shifts
            .iter()
            .map(|shift| {
                let mut buffer = vec![0x5a; *shift];
                (0..self.elements).for_each(|_| buffer.extend(self.tame(dtype, random.element(dtype))));
                buffer
            })
            .collect();
        let vectors: Vec<&[u8]> = buffers.iter().zip(&self.shifts).map(|(buffer, shift)| &buffer[*shift..]).collect();
        let expected = reference::fold(dtype, op, vectors[0], &vectors[1..]).expect("supported");
        for path in Path::available() {
            let mut first = buffers[0].clone();
            first.extend([0xa5; 70]);
            let (vector, behind) = first[self.shifts[0]..].split_at_mut(length);
            fold_into_on(path, dtype, op, vector, &vectors[1..]).expect("supported");
            if let Some(at) = (0..length).find(|&at| vector[at] != expected[at]) {
                let at = at - at % dtype.size();
                let cut = at..at + dtype.size();
                let operands: Vec<_> = vectors.iter().map(|vector| &vector[cut.clone()]).collect();
                panic!(
                    "{path} {dtype} {op}: byte {at} of {length}: {:x?} gave {:x?}, not {:x?}",
                    operands,
                    &vector[cut.clone()],
                    &expected[cut]
                );
            }
            assert!(behind.iter().all(|&byte| byte == 0xa5), "{path} wrote beyond the end");
            assert!(first[..self.shifts[0]].iter().all(|&byte| byte == 0x5a), "or before the start");
        }
    }
}

/// A small generator of test values (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number, or a value that is often one of few, so that pairs meet their equals, with any
    /// index.
    fn element(&mut self, dtype: DataType) -> Vec<u8> {
        let Some(index) = dtype.index() else { return self.number(dtype.value()) };
        let value = dtype.value();
        let few = special(value)[(self.next() % 16) as usize].to_le_bytes()[..value.size()].to_vec();
        let value = if self.next().is_multiple_of(4) { self.number(value) } else { few };
        [value, self.number(index)].concat()
    }

    /// The bits of a number: half of the time any bits, else those of a number that neither
    /// vanishes nor overflows, else a special value.
    fn number(&mut self, dtype: Scalar) -> Vec<u8> {
        let (choice, bits) = (self.next() % 8, self.next());
        let bits = match (dtype, choice) {
            (_, 0..=3) => bits,
            (Scalar::F64, 4..=6) => bits & 0x800f_ffff_ffff_ffff | (0x3f0 + bits % 31) << 52,
            (Scalar::F32, 4..=6) => bits & 0x807f_ffff | (0x70 + bits % 31) << 23,
            (Scalar::BF16, 4..=6) => bits & 0x807f | (0x70 + bits % 31) << 7,
            (Scalar::F16, 4..=6) => bits & 0x83ff | (8 + bits % 15) << 10,
            (_, 4..=6) => bits % 3,
            _ => special(dtype)[(bits % 16) as usize],
        };
        bits.to_le_bytes()[..dtype.size()].to_vec()
    }
}

/// Zeros, smallest and largest denormals and normals, infinities, quiet and signalling NaN with
/// payloads; for integers the extremes.
fn special(dtype: Scalar) -> [u64; 16] {
    let (fraction, exponent) = match dtype {
        Scalar::F64 => (52, 11),
        Scalar::F32 => (23, 8),
        Scalar::BF16 => (7, 8),
        Scalar::F16 => (10, 5),
        _ => {
            return [
                0,
                1,
                2,
                3,
                0x7f,
                0x80,
                0xff,
                0x7fff,
                0x8000,
                0xffff,
                1 << 31,
                (1 << 31) - 1,
                1 << 63,
                (1 << 63) - 1,
                u64::MAX,
                u64::MAX - 1,
            ];
        }
    };
    let infinity = ((1 << exponent) - 1) << fraction;
    let one = ((1 << (exponent - 1)) - 1) << fraction;
    let minus = 1 << (fraction + exponent);
    let quiet = infinity | 1 << (fraction - 1);
    [
        0,
        minus,
        1,
        minus | 1,
        (1 << fraction) - 1,
        1 << fraction,
        infinity - 1,
        minus | (infinity - 1),
        infinity,
        minus | infinity,
        quiet,
        minus | quiet | 3,
        infinity | 1,
        minus | infinity | 5,
        one,
        minus | one,
    ]
}

fn case(elements: impl Strategy<Value = usize>) -> impl Strategy<Value = Case> {
    (elements, prop::collection::vec(0..70_usize, 2..=10), any::<u64>()).prop_map(|(elements, shifts, seed)| Case {
        elements,
        shifts,
        seed,
    })
}

fn same_cases_each_run(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x7472_6962),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(same_cases_each_run(96))]

    #[test]
    fn short_vectors_agree_on_every_cell(case in case(0..140_usize)) {
        cells().for_each(|(dtype, op)| case.check(dtype, op));
    }
}

proptest! {
    #![proptest_config(same_cases_each_run(8))]

    #[test]
    fn vectors_of_several_blocks_agree_on_every_cell(case in case(500..5000_usize)) {
        cells().for_each(|(dtype, op)| case.check(dtype, op));
    }
}

/// Half precision has few enough values to try each of them with every special one.
#[test]
fn every_half_value_meets_every_special_one() {
    for dtype in [DataType::F16, DataType::BF16] {
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        for op in [ReduceOp::Max, ReduceOp::Min, ReduceOp::Sum, ReduceOp::Prod] {
            for value in special(dtype.value()) {
                let source = (value as u16).to_le_bytes().repeat(1 << 16);
                let expected = reference::fold(dtype, op, &all, &[&source]).expect("supported");
                for path in Path::available() {
                    let mut first = all.clone();
                    fold_into_on(path, dtype, op, &mut first, &[&source]).expect("supported");
                    assert!(first == expected, "{path} {dtype} {op} {value:#x}");
                }
            }
        }
    }
}

#[test]
fn half_precision_rounds_once_at_the_end() {
    // 2048 + 1 + 1: rounded after each step in half precision, each 1 is lost; in single precision
    // none is.
    let half = |value: f32| half::f16::from_f32(value).to_le_bytes();
    let mut first = half(2048.0);
    fold_into(DataType::F16, ReduceOp::Sum, &mut first, &[&half(1.0), &half(1.0)]).unwrap();
    assert_eq!(first, half(2050.0));
}

#[test]
fn floats_fold_from_the_left() {
    let mut first = 1e30_f32.to_le_bytes();
    let rest = [(-1e30_f32).to_le_bytes(), 1_f32.to_le_bytes()];
    fold_into(DataType::F32, ReduceOp::Sum, &mut first, &[&rest[0], &rest[1]]).unwrap();
    assert_eq!(f32::from_le_bytes(first), 1.0);
}

#[test]
fn zeros_are_ordered_and_nan_wins() {
    let fold = |op, left: f64, right: f64| {
        let mut first = left.to_le_bytes();
        fold_into(DataType::F64, op, &mut first, &[&right.to_le_bytes()]).unwrap();
        u64::from_le_bytes(first)
    };
    for (left, right) in [(-0.0, 0.0), (0.0, -0.0)] {
        assert_eq!(fold(ReduceOp::Max, left, right), 0);
        assert_eq!(fold(ReduceOp::Min, left, right), 1 << 63);
    }
    for (left, right) in [(-f64::NAN, 1.0), (1.0, -f64::NAN), (f64::INFINITY, -f64::NAN)] {
        assert_eq!(fold(ReduceOp::Max, left, right), 0x7ff8 << 48);
        assert_eq!(fold(ReduceOp::Min, left, right), 0x7ff8 << 48);
    }
    assert_eq!(fold(ReduceOp::Sum, f64::INFINITY, f64::NEG_INFINITY), 0x7ff8 << 48);
}

/// Checks what the definition says of pairs, on the values where an order could show; the reference
/// is written from the same words.
#[test]
fn pairs_do_not_show_the_order_of_their_operands() {
    let dtype = DataType::pair(Scalar::F32, Scalar::I16).expect("an integer index");
    let pair = |value: f32, index: i16| [&value.to_le_bytes()[..], &index.to_le_bytes()].concat();
    let table = [
        (ReduceOp::MaxLoc, [(1.0, 7), (3.0, 9), (3.0, 8)], (3.0, 8)),
        (ReduceOp::MinLoc, [(1.0, 7), (1.0, -7), (3.0, -9)], (1.0, -7)),
        (ReduceOp::MaxLoc, [(-0.0, 1), (0.0, 5), (-1.0, 0)], (0.0, 1)),
        (ReduceOp::MinLoc, [(0.0, 1), (-0.0, 5), (1.0, 0)], (-0.0, 1)),
        (ReduceOp::MaxLoc, [(f32::INFINITY, 0), (-f32::NAN, 4), (f32::NAN, 3)], (f32::NAN, 3)),
        (ReduceOp::MinLoc, [(f32::NEG_INFINITY, 0), (-f32::NAN, 4), (f32::NAN, 3)], (f32::NAN, 3)),
        (ReduceOp::MinLoc, [(f32::from_bits(1), 2), (f32::from_bits(2), 1), (1.0, 0)], (f32::from_bits(1), 2)),
    ];
    for (op, pairs, (value, index)) in table {
        let pairs = pairs.map(|(value, index)| pair(value, index));
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut first = pairs[order[0]].clone();
            fold_into(dtype, op, &mut first, &[&pairs[order[1]], &pairs[order[2]]]).unwrap();
            assert_eq!(first, pair(value, index), "{op} {pairs:x?} in order {order:?}");
        }
    }
}

#[test]
fn a_fold_of_one_vector_keeps_its_bits() {
    let payload = 0xffc1_2345_u32.to_le_bytes();
    let mut first = payload;
    assert_eq!(fold_into(DataType::F32, ReduceOp::Sum, &mut first, &[]), Ok(()));
    assert_eq!(first, payload);
}

#[test]
fn the_reference_knows_what_is_defined() {
    for &dtype in DataType::ALL {
        for &op in ReduceOp::ALL {
            let zeros = &[0; ELEMENT_MAX][..dtype.size()];
            let known = reference::fold(dtype, op, zeros, &[zeros]).is_some();
            assert_eq!(known, op.is_defined_on(dtype), "{dtype} {op}");
            let folded = fold_into(dtype, op, &mut [0; ELEMENT_MAX][..dtype.size()], &[zeros]);
            let refused = Err(FoldError::Unsupported { dtype, op });
            assert_eq!(folded, if known { Ok(()) } else { refused });
        }
    }
}

/// The tests of whole collectives judge by another oracle, which was written apart from this crate.
/// Both must agree.
#[test]
fn the_reference_collectives_compute_the_same() {
    let mut random = Random(1);
    for (dtype, op) in cells() {
        let ordinary = |rank| trib_testkit::input(dtype, op, 1, rank, 700);
        let mut any = |_| (0..700).flat_map(|_| random.element(dtype)).collect();
        for inputs in [(0..9).map(ordinary).collect::<Vec<_>>(), (0..9).map(&mut any).collect()] {
            let operands: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
            let mut first = inputs[0].clone();
            fold_into(dtype, op, &mut first, &operands[1..]).expect("supported");
            assert!(first == trib_testkit::fold(dtype, op, &operands), "{dtype} {op}");
        }
    }
}
