//! An end of an edge waits for records, which the far end puts.

use loom::thread;

use crate::asleep;
use crate::bell::Bell;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Arc, AtomicU64};

const RECORDS: u64 = 2;

struct Edge {
    put: AtomicU64,
    asleep: AtomicU64,
    bell: Bell,
}

fn edge(fall_asleep: fn(&Edge, u64) -> bool) {
    let edge = Arc::new(Edge { put: AtomicU64::new(0), asleep: AtomicU64::new(0), bell: Bell::new() });
    let far = edge.clone();
    let thread = thread::spawn(move || {
        for record in 1..=RECORDS {
            far.put.store(record, Release);
            if asleep::is_to_wake(&far.asleep, |_| true) {
                far.bell.ring();
            }
        }
    });
    let mut taken = 0;
    while taken < RECORDS {
        if edge.put.load(Acquire) == taken && fall_asleep(&edge, taken) {
            edge.bell.wait();
            asleep::wake_up(&edge.asleep);
        }
        taken = edge.put.load(Acquire);
    }
    thread.join().unwrap();
}

pub(crate) fn right() {
    edge(|edge, taken| asleep::fall_asleep(&edge.asleep, 1, || edge.put.load(Acquire) != taken));
}

/// It does not look once more.
pub(crate) fn wrong() {
    edge(|edge, _| {
        edge.asleep.store(1, Relaxed);
        true
    });
}
