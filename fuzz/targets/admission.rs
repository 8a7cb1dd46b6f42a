//! The manager's admission between hostile tenants, nodes that may say anything, and a clock.
//!
//! An input is a fabric and then steps: connections of three tenants and of the operator ask, end
//! without a word and come again; nodes and deputies register, answer, keep silent, lie and are
//! gone; time passes. What a request waits for happens in further steps, so requests overlap.
//!
//! Asserted: nothing panics; a request is answered, and within the time that it may take; numbers,
//! keys and ranks of jobs are given once; no tenant is told a key or a word of another's; no tenant
//! has more than its limits; what is told is of bounded length; when all connections and nodes are
//! gone and a while has passed, nothing is left of any job, and memory is what it was.
#![no_main]

use std::rc::{Rc, Weak};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use trib_fuzz::fabric::Fabric;
use trib_fuzz::{memory, playing};

fuzz_target!(|bytes: &[u8]| {
    // What is made once for all inputs is there before the first is measured.
    Fabric::warm_up();
    let before = memory::now();
    memory::within(MEMORY_MAX, || {
        let fabric = Fabric::begin(bytes.to_vec());
        let inner: Weak<Fabric> = Rc::downgrade(&fabric);
        playing::begin(move |most| match inner.upgrade() {
            Some(fabric) => fabric.wait(most),
            None => playing::pass(most),
        });
        while fabric.step(Duration::MAX) {}
        fabric.all_leave();
        playing::end();
        fabric.is_empty();
    });
    let left = memory::now() - before;
    assert!(left <= LEFT_MAX, "{left} bytes are left");
});

/// The bytes of a manager with all that the steps of one input can bring there.
const MEMORY_MAX: usize = 24 << 20;
/// What the threads' own values and the machine's tables may have grown by.
const LEFT_MAX: isize = 64 << 10;
