//! Quantised blocks, held against arithmetic in float64 that shares no code with the kernels.

use proptest::prelude::*;
use proptest::sample::select;
use trib_reduce::blocks::{Seed, count, dequantise, dequantise_on, feed_back, feed_back_on, quantise, quantise_on};
use trib_reduce::{FoldError, Path, fold_as, fold_blocks_on, fold_into};
use trib_wire::{Arithmetic, DataType, INT8_BLOCK, INT8_BLOCK_BYTES, ReduceOp};

const TYPES: [DataType; 3] = [DataType::F32, DataType::F16, DataType::BF16];

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap())).collect()
}

fn quantised(values: &[f32], seed: Seed) -> Vec<u8> {
    let mut blocks = vec![0xee; count(values.len() as u64) as usize * INT8_BLOCK_BYTES];
    quantise(DataType::F32, &bytes(values), seed, 0, &mut blocks);
    blocks
}

fn values_of(blocks: &[u8], len: usize) -> Vec<f32> {
    let mut vector = vec![0xee; 4 * len];
    dequantise(DataType::F32, blocks, &mut vector);
    floats(&vector)
}

/// The scale of a block, as its head tells; `None` for one without numbers.
fn told_scale(block: &[u8]) -> Option<f64> {
    (block[0] <= 247).then(|| 2f64.powi(i32::from(block[0]) - 126))
}

/// The elements of a block, by the words of its definition.
fn reference_values(block: &[u8]) -> Vec<f64> {
    let scale = told_scale(block).unwrap_or(f64::NAN);
    block[4..].iter().map(|code| f64::from(*code as i8) * scale).collect()
}

/// The scale of a block with these elements, found by trying one after the other.
fn reference_scale(values: &[f64]) -> Option<f64> {
    let largest =
        values.iter().fold(0.0, |largest: f64, value| if value.is_nan() { f64::NAN } else { largest.max(value.abs()) });
    let is_number = values.iter().all(|value| value.is_finite());
    (-126..=121).map(|power| 2f64.powi(power)).find(|scale| is_number && 127.0 * scale >= largest)
}

/// Whether the block holds these values as well as it can: with the right scale, each as one of the
/// two codes beside it.
fn holds(block: &[u8], values: &[f64]) -> Result<(), String> {
    let scale = reference_scale(values);
    if told_scale(block) != scale {
        return Err(format!("scale {:?}, not {scale:?}", told_scale(block)));
    }
    let Some(scale) = scale else { return Ok(()) };
    for (at, (found, value)) in reference_values(block).into_iter().zip(values).enumerate() {
        let (low, high) = ((value / scale).floor() * scale, (value / scale).ceil() * scale);
        if found != low && found != high {
            return Err(format!("element {at}: {value} became {found} with scale {scale}"));
        }
    }
    Ok(())
}

/// Numbers of every size, those that a scale can hardly reach, and what is no number.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -1.0f32..1.0,
        4 => any::<f32>().prop_filter("finite", |value| value.is_finite()),
        2 => (-200i32..200).prop_map(|value| value as f32),
        2 => (0i32..252, prop_oneof![Just(127.0f32), Just(127.5), Just(126.9)]).prop_map(|(up, value)| value * 2f32.powi(up - 133)),
        1 => prop_oneof![Just(0.0f32), Just(-0.0), Just(f32::MIN_POSITIVE), Just(1e-45), Just(f32::MAX)],
    ]
}

fn vector() -> impl Strategy<Value = Vec<f32>> {
    let odd = prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)];
    (prop::collection::vec(number(), 1..100), prop::option::weighted(0.2, (any::<prop::sample::Index>(), odd)))
        .prop_map(|(mut values, odd)| {
            if let Some((at, odd)) = odd {
                let at = at.index(values.len());
                values[at] = odd;
            }
            values
        })
}

fn padded(values: &[f32]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
    values.resize(INT8_BLOCK, 0.0);
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_element_becomes_one_of_the_two_codes_beside_it(values in vector(), number: u64, rank: u32) {
        let blocks = quantised(&values, Seed::new(number, rank));
        for (block, own) in blocks.chunks(INT8_BLOCK_BYTES).zip(values.chunks(INT8_BLOCK)) {
            prop_assert_eq!(holds(block, &padded(own)), Ok(()));
        }
        let back = values_of(&blocks, values.len());
        let wanted = blocks.chunks(INT8_BLOCK_BYTES).flat_map(reference_values);
        for (found, wanted) in back.iter().zip(wanted) {
            prop_assert!(f64::from(*found) == wanted || (wanted.is_nan() && found.to_bits() == 0x7fc0_0000));
        }
        prop_assert!(back.iter().zip(values_of(&quantised(&back, Seed::new(!number, !rank)), values.len()))
            .all(|(one, other)| one.to_bits() == other.to_bits()), "what came out of a block goes into one exactly");
    }

    #[test]
    fn a_fold_is_the_sum_quantised_once(
        vectors in prop::collection::vec(prop::collection::vec(number(), INT8_BLOCK..=INT8_BLOCK), 2..6), number: u64,
    ) {
        let given: Vec<Vec<u8>> = vectors.iter().zip(0..).map(|(own, rank)| quantised(own, Seed::new(number, rank))).collect();
        let mut folded = given[0].clone();
        let rest: Vec<&[u8]> = given[1..].iter().map(Vec::as_slice).collect();
        fold_as(Arithmetic::Int8Blocks, &mut folded, &rest).unwrap();
        // Its additions are those of float32.
        let sums: Vec<f64> = (0..INT8_BLOCK).map(|at| {
            given.iter().map(|block| reference_values(block)[at] as f32).reduce(|left, right| left + right).unwrap().into()
        }).collect();
        prop_assert_eq!(holds(&folded, &sums), Ok(()));
    }

    #[test]
    fn any_bytes_fold_to_the_same_bits_on_every_path(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 3 * INT8_BLOCK_BYTES), 1..5),
        values in prop::collection::vec(any::<u32>(), 1..100), which in 0usize..3,
    ) {
        let rest: Vec<&[u8]> = blocks[1..].iter().map(Vec::as_slice).collect();
        let dtype = TYPES[which];
        let vector: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..dtype.size()].to_vec()).collect();
        let mut found = Path::available().map(|path| {
            let mut folded = blocks[0].clone();
            fold_blocks_on(path, &mut folded, &rest).unwrap();
            let mut made = vec![1; count(values.len() as u64) as usize * INT8_BLOCK_BYTES];
            quantise_on(path, dtype, &vector, Seed::new(3, 4), 5, &mut made);
            let mut back = vec![2; 70 * dtype.size()];
            dequantise_on(path, dtype, &folded, &mut back);
            (folded, made, back)
        });
        let first = found.next().unwrap();
        prop_assert!(found.all(|other| other == first));
    }
}

#[test]
fn zeros_and_what_has_seven_bits_stay_exact_through_folds() {
    assert_eq!(quantised(&[0.0, -0.0], Seed::new(1, 2))[4..], [0; INT8_BLOCK]);
    let mut folded = quantised(&[0.0; 40], Seed::new(0, 0));
    let other = quantised(&[0.0; 40], Seed::new(0, 1));
    fold_as(Arithmetic::Int8Blocks, &mut folded, &[&other, &other]).unwrap();
    assert!(values_of(&folded, 40).iter().all(|value| value.to_bits() == 0));
    for unit in [1.0f32, 0.125, 2f32.powi(100), 2f32.powi(-100)] {
        let whole: Vec<f32> = (-15..=15).map(|value| value as f32 * unit).collect();
        let mut folded = quantised(&whole, Seed::new(7, 0));
        let others: Vec<Vec<u8>> = (1..8).map(|rank| quantised(&whole, Seed::new(7, rank))).collect();
        let rest: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
        fold_as(Arithmetic::Int8Blocks, &mut folded, &rest).unwrap();
        assert_eq!(values_of(&folded, 31), whole.iter().map(|value| value * 8.0).collect::<Vec<_>>());
    }
}

#[test]
fn roundings_are_right_on_average() {
    let values: Vec<f32> = (0..INT8_BLOCK).map(|at| (at as f32 * 0.618).sin() * 3.0).collect();
    let sums = |seeds: u64, members: u32| {
        let mut means = vec![0.0; INT8_BLOCK];
        for number in 0..seeds {
            let given: Vec<Vec<u8>> = (0..members).map(|rank| quantised(&values, Seed::new(number, rank))).collect();
            let mut folded = given[0].clone();
            let rest: Vec<&[u8]> = given[1..].iter().map(Vec::as_slice).collect();
            fold_as(Arithmetic::Int8Blocks, &mut folded, &rest).unwrap();
            values_of(&folded, INT8_BLOCK).iter().zip(&mut means).for_each(|(value, mean)| *mean += f64::from(*value));
        }
        means.iter().map(|mean| mean / seeds as f64).collect::<Vec<_>>()
    };
    let seeds = 20_000;
    // Scales are 2^-5 of a member's block, and at most 2^-3 of the sum of four.
    for (members, deviation) in [(1, 2f64.powi(-5) / 2.0), (4, (4.0 * 2f64.powi(-10) + 2f64.powi(-6)).sqrt() / 2.0)] {
        let within = 6.0 * deviation / (seeds as f64).sqrt();
        for (mean, value) in sums(seeds, members).iter().zip(&values) {
            let wanted = f64::from(*value) * f64::from(members);
            assert!((mean - wanted).abs() < within, "{members} members: {mean} instead of {wanted}, within {within}");
        }
    }
}

#[test]
fn a_block_with_one_that_is_no_number_has_none_and_its_neighbours_have() {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -3.38e38] {
        let mut values = vec![1.0; 3 * INT8_BLOCK];
        values[40] = odd;
        let mut folded = quantised(&[1.0; 3 * INT8_BLOCK], Seed::new(0, 0));
        fold_as(Arithmetic::Int8Blocks, &mut folded, &[&quantised(&values, Seed::new(0, 1))]).unwrap();
        let found = values_of(&folded, values.len());
        for (at, value) in found.iter().enumerate() {
            let bits = if (32..64).contains(&at) { 0x7fc0_0000 } else { 2f32.to_bits() };
            assert_eq!(value.to_bits(), bits, "element {at} beside {odd}");
        }
    }
    // So has a sum that is too large for its scale.
    let large = quantised(&[3e38], Seed::new(0, 0));
    let mut folded = large.clone();
    fold_as(Arithmetic::Int8Blocks, &mut folded, &[&large]).unwrap();
    assert!(values_of(&folded, 1)[0].is_nan());
}

#[test]
fn short_floats_come_back_in_their_type() {
    let quantise_and_back = |dtype: DataType, vector: &[u8]| {
        let mut blocks = vec![0; count((vector.len() / dtype.size()) as u64) as usize * INT8_BLOCK_BYTES];
        quantise(dtype, vector, Seed::new(0, 0), 0, &mut blocks);
        let mut back = vec![0; vector.len()];
        dequantise(dtype, &blocks, &mut back);
        back
    };
    // 1.0, -2.0, 96.0 and infinity as float16, then as bfloat16.
    let half = [0x3c00u16, 0xc000, 0x5600].map(u16::to_le_bytes).concat();
    assert_eq!(quantise_and_back(DataType::F16, &half), half);
    let brain = [0x3f80u16, 0xc000, 0x42c0].map(u16::to_le_bytes).concat();
    assert_eq!(quantise_and_back(DataType::BF16, &brain), brain);
    assert_eq!(quantise_and_back(DataType::F16, &0x7c00u16.to_le_bytes()), 0x7e00u16.to_le_bytes());
    assert_eq!(quantise_and_back(DataType::BF16, &0xff80u16.to_le_bytes()), 0x7fc0u16.to_le_bytes());
    // A sum that float16 has no room for is infinite there.
    let most = 0x7b00u16.to_le_bytes();
    let mut folded = vec![0; INT8_BLOCK_BYTES];
    quantise(DataType::F16, &most, Seed::new(0, 0), 0, &mut folded);
    let other = folded.clone();
    fold_as(Arithmetic::Int8Blocks, &mut folded, &[&other]).unwrap();
    let mut back = [0; 2];
    dequantise(DataType::F16, &folded, &mut back);
    assert_eq!(back, 0x7c00u16.to_le_bytes());
}

#[test]
fn what_is_no_whole_number_of_blocks_is_refused_and_left() {
    let mut first = [7; INT8_BLOCK_BYTES + 1];
    let error = fold_as(Arithmetic::Int8Blocks, &mut first, &[]).unwrap_err();
    assert_eq!(error, FoldError::PartialBlock { length: 37 });
    assert_eq!(error.to_string(), "37 bytes are not a whole number of blocks of 36 bytes");
    let error = fold_as(Arithmetic::Int8Blocks, &mut first[..36], &[&[0; 72]]).unwrap_err();
    assert_eq!(error, FoldError::LengthMismatch { index: 0, expected: 36, found: 72 });
    assert!(first.iter().all(|byte| *byte == 7));
    fold_as(Arithmetic::Int8Blocks, &mut first[..36], &[]).unwrap();
    assert_eq!(first[0], 7, "what nobody adds to stays as it is");
    let mut elements = [0; 8];
    fold_as(Arithmetic::Elements(DataType::F32, ReduceOp::Sum), &mut elements, &[&bytes(&[1.0, 2.0])]).unwrap();
    let mut plain = [0; 8];
    fold_into(DataType::F32, ReduceOp::Sum, &mut plain, &[&bytes(&[1.0, 2.0])]).unwrap();
    assert_eq!(elements, plain);
}

/// By the words of the definition, in float64: the vector and the residual after error feedback.
fn reference_feedback(factor: f32, vector: &[f32], residual: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut rounded, mut rest) = (Vec::new(), Vec::new());
    for (vector, residual) in vector.chunks(INT8_BLOCK).zip(residual.chunks(INT8_BLOCK)) {
        let sums: Vec<f32> = vector.iter().zip(residual).map(|(own, other)| own * factor + other).collect();
        let largest = sums.iter().fold(0.0, |largest: f64, sum| largest.max(f64::from(*sum).abs()));
        let is_odd = sums.iter().any(|sum| !sum.is_finite()) || largest > 127.0 * 2f64.powi(121);
        let scale = (-126..=121).map(|exponent| 2f64.powi(exponent)).find(|scale| 127.0 * scale >= largest);
        for sum in sums {
            let own = (f64::from(sum) / scale.unwrap_or(1.0)).round_ties_even() * scale.unwrap_or(1.0);
            rounded.push(if is_odd { f32::NAN } else { own as f32 });
            rest.push(if is_odd { 0.0 } else { (f64::from(sum) - own) as f32 });
        }
    }
    (rounded, rest)
}

proptest! {
    #[test]
    fn error_feedback_rounds_to_the_nearest_and_keeps_the_rest(
        (vector, residual) in prop::collection::vec((any::<f32>(), any::<f32>(), -40i32..4), 1..100).prop_map(|drawn| {
            let near = |value: f32, exponent: i32| f32::from_bits(value.to_bits() & 0x807f_ffff | 0x3f80_0000) * 2f32.powi(exponent);
            let any = drawn.len() % 7 == 0;
            drawn.into_iter().map(|(one, other, exponent)| match any {
                true => (one, other),
                false => (near(one, exponent), near(other, exponent - 8)),
            }).unzip::<_, _, Vec<_>, Vec<_>>()
        }),
        factor in select(vec![1.0f32, 0.125, 1.0 / 6.0]),
    ) {
        let (rounded, rest) = reference_feedback(factor, &vector, &residual);
        for path in Path::available() {
            let (mut own, mut other) = (bytes(&vector), bytes(&residual));
            feed_back_on(path, DataType::F32, factor, &mut own, &mut other);
            let same = |found: &[f32], wanted: &[f32]| {
                found.iter().zip(wanted).all(|(found, wanted)| found == wanted || found.is_nan() && wanted.is_nan())
            };
            prop_assert!(same(&floats(&own), &rounded), "{path}: {own:?}");
            prop_assert!(same(&floats(&other), &rest), "{path}: {other:?}");
            // What is rounded so travels as it is.
            let blocks = quantised(&floats(&own), Seed::new(1, 2));
            prop_assert!(same(&values_of(&blocks, vector.len()), &rounded));
        }
    }
}

#[test]
fn error_feedback_of_short_floats_keeps_what_they_have_digits_for() {
    // 96.0, 0.3 and the largest number as float16, then as bfloat16.
    for (dtype, given) in [(DataType::F16, [0x5600u16, 0x34cd, 0x7bff]), (DataType::BF16, [0x42c0, 0x3e9a, 0x7f7f])] {
        let (mut vector, mut residual) =
            (given[..2].iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<u8>>(), [0; 4]);
        feed_back(dtype, 1.0, &mut vector, &mut residual);
        assert_eq!(
            vector,
            [given[0].to_le_bytes(), [0, 0]].concat(),
            "96 is a multiple of its scale, and 0.3 is below half"
        );
        assert_eq!(residual, *[[0, 0], given[1].to_le_bytes()].concat());
        let (mut vector, mut residual) = (given[2].to_le_bytes(), [0; 2]);
        feed_back(dtype, 1.0, &mut vector, &mut residual);
        // Of float16 63 scales of 1024, and 992; bfloat16's has no scale.
        let wanted = if dtype == DataType::F16 { [0x7be0u16, 0x63c0] } else { [0x7fc0, 0] };
        assert_eq!([vector, residual].map(u16::from_le_bytes), wanted);
    }
    // The largest number of float16, step by step. With what each leaves it is further beyond the
    // 63 scales of 1024 that the type has, and at last beyond 127 of them: of the next scale it has
    // 31, and has no digits for what that leaves.
    for sign in [0u16, 0x8000] {
        let half = |value: u32| match value.checked_ilog2() {
            Some(exponent) => sign | ((exponent + 15) << 10 | (value << 10 >> exponent) & 0x3ff) as u16,
            None => 0,
        };
        let (mut residual, mut lost) = ([0; 2], 0);
        for step in 0..100 {
            let mut vector = half(65504).to_le_bytes();
            feed_back(DataType::F16, 1.0, &mut vector, &mut residual);
            let wanted = 65504 + lost;
            let rounded = if wanted > 127 * 1024 { 31 * 2048 } else { 63 * 1024 };
            lost = Some(wanted - rounded).filter(|lost| *lost <= 65504).unwrap_or(0);
            let found = [vector, residual].map(u16::from_le_bytes);
            assert_eq!(found, [rounded, lost].map(half), "step {step}");
        }
    }
    // What is beyond the type by far, by the factor alone, is infinite there.
    let (mut vector, mut residual) = (0x7bffu16.to_le_bytes(), [0; 2]);
    feed_back(DataType::F16, 1000.0, &mut vector, &mut residual);
    assert_eq!([vector, residual].map(u16::from_le_bytes), [0x7c00, 0]);
    // 129 is 64 scales of 2 and 1, 256 and that 1 are 64 scales of 4 and 1. 257 is no bfloat16.
    let mut residual = [0; 2];
    for (given, rounded) in [(0x4301u16, 0x4300u16), (0x4380, 0x4380)] {
        let mut vector = given.to_le_bytes();
        feed_back(DataType::BF16, 1.0, &mut vector, &mut residual);
        assert_eq!((u16::from_le_bytes(vector), u16::from_le_bytes(residual)), (rounded, 0x3f80));
    }
}

/// What travelled once has to be understood for ever: these bytes are part of the protocol.
#[test]
fn the_bytes_of_a_block_are_these() {
    let values: Vec<f32> = (0..INT8_BLOCK).map(|at| at as f32 - 10.3).collect();
    let one = quantised(&values, Seed::new(5, 1));
    let mut folded = one.clone();
    fold_as(Arithmetic::Int8Blocks, &mut folded, &[&quantised(&values, Seed::new(5, 2))]).unwrap();
    let text = |block: &[u8]| block.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!((text(&one), text(&folded)), (ONE.into(), FOLDED.into()));
}

const ONE: &str = "7cb37dcad6dbdfe2e7ebeff3f7fbff03070a0f13171b1e22272b2f33363b3f42474b4f53";
const FOLDED: &str = "7df7ac77d6dbdfe2e7ebeff3f7fbff03070a0f13171b1e22262b2e32373b3f43474a4f52";
