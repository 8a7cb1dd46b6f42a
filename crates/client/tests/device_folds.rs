//! Folds of a device beside those of the host: the same bits, for every type and operator. A
//! stand-in driver does the text that a device would compile.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use trib_device::{Driver, Kernel, Pinned, Stream, locate};
use trib_reduce::ptx;
use trib_testkit::StandIn;
use trib_wire::{DataType, ReduceOp};

/// Numbers that rounding, signs and what is no number make special, by their upper bits, beside
/// any others.
fn bytes(len: usize) -> impl Strategy<Value = Vec<u8>> {
    let special =
        prop_oneof![Just(0u8), Just(0x80), Just(0x7f), Just(0xff), Just(0x7c), Just(0xfc), Just(0x3f), Just(1)];
    proptest::collection::vec(prop_oneof![3 => any::<u8>(), 2 => special], len)
}

/// A device, on which vectors are folded into pinned memory.
struct Device {
    stand_in: StandIn,
    driver: &'static Driver,
}

impl Device {
    fn new() -> Device {
        let stand_in = StandIn::new();
        stand_in.set("STAND_IN_DELAY_US", "0");
        let driver = Driver::load(stand_in.path().as_os_str()).expect("the stand-in is a driver");
        Device { stand_in, driver: Box::leak(Box::new(driver)) }
    }

    fn fold(&self, dtype: DataType, op: ReduceOp, vectors: &[Vec<u8>]) -> Vec<u8> {
        let (len, count) = (vectors[0].len(), (vectors[0].len() / dtype.size()) as u64);
        let addresses: Vec<*mut u8> = vectors.iter().map(|_| self.stand_in.allocate(len.max(1))).collect();
        for (address, vector) in addresses.iter().zip(vectors) {
            self.stand_in.write(*address, vector);
        }
        // What is written on the default stream has come when something is read there.
        let _ = self.stand_in.read(addresses[0], 1);
        let current = locate(self.driver, addresses[0]).unwrap().unwrap().enter().unwrap();
        let text = ptx::fold(dtype, op, vectors.len()).unwrap();
        let (kernel, stream) = (Kernel::new(&current, &text, ptx::NAME).unwrap(), Stream::new(&current).unwrap());
        let result = Pinned::new(&current, len.max(1)).unwrap();
        let mut arguments = vec![result.start().addr() as u64, count];
        arguments.extend(addresses.iter().map(|address| address.addr() as u64));
        // SAFETY: all vectors have so many elements and live until the event has come.
        unsafe { kernel.launch(&current, &stream, &mut arguments, count) }.unwrap();
        stream.record(&current).unwrap().wait().unwrap();
        for address in addresses {
            self.stand_in.free(address);
        }
        // SAFETY: the fold is over, and nothing else writes to the buffer.
        unsafe { core::slice::from_raw_parts(result.start(), len) }.to_vec()
    }
}

fn on_host(dtype: DataType, op: ReduceOp, vectors: &[Vec<u8>]) -> Vec<u8> {
    let (mut first, rest) = (vectors[0].clone(), vectors[1..].iter().map(Vec::as_slice).collect::<Vec<_>>());
    trib_reduce::fold_into(dtype, op, &mut first, &rest).unwrap();
    first
}

#[test]
fn devices_fold_all_numbers_to_the_bits_of_the_host() {
    let device = Device::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cells: Vec<_> = trib_reduce::cells().filter(|(dtype, op)| ptx::is_known(*dtype, *op)).collect();
    assert_eq!(cells.len(), trib_reduce::cells().filter(|(dtype, _)| dtype.index().is_none()).count());
    for (dtype, op) in cells {
        for vectors in [2, 3, 16] {
            let strategy = proptest::collection::vec(bytes(300 * dtype.size()), vectors);
            let vectors = strategy.new_tree(&mut runner).unwrap().current();
            let (ours, theirs) = (device.fold(dtype, op, &vectors), on_host(dtype, op, &vectors));
            for at in 0..300 {
                let element = at * dtype.size()..(at + 1) * dtype.size();
                let given: Vec<&[u8]> = vectors.iter().map(|vector| &vector[element.clone()]).collect();
                assert_eq!(ours[element.clone()], theirs[element], "{dtype} {op} of {given:x?}");
            }
        }
    }
}

#[test]
fn what_the_tree_does_not_reduce_has_no_fold() {
    let known: Vec<_> = trib_reduce::cells().collect();
    for dtype in DataType::ALL {
        for op in ReduceOp::ALL {
            let has_fold = ptx::is_known(*dtype, *op);
            assert!(!has_fold || known.contains(&(*dtype, *op)), "{dtype} {op}");
        }
    }
}

#[test]
fn every_element_is_folded_once_however_many_threads_there_are() {
    let device = Device::new();
    for count in [0usize, 1, 255, 257, 1024 * 256 + 3] {
        let vectors = [1u8, 2].map(|step| (0..4 * count).map(|at| (at as u8).wrapping_mul(step)).collect::<Vec<u8>>());
        let ours = device.fold(DataType::U32, ReduceOp::Sum, &vectors);
        assert!(ours == on_host(DataType::U32, ReduceOp::Sum, &vectors), "{count} elements");
    }
}
