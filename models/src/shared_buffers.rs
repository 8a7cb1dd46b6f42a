//! Two threads take buffers of a pool, write to them, and one hands its buffer on.

use loom::cell::UnsafeCell;
use loom::thread;

use crate::landing::Landing;
use crate::pool::{Pool, PoolBuffer};
use crate::sync::Arc;

const SIZE: usize = 8;

/// What loom looks at in place of the buffers' bytes: two accesses that are not ordered fail.
struct Cells([UnsafeCell<u32>; 2]);

impl Cells {
    fn new() -> Arc<Cells> {
        Arc::new(Cells([UnsafeCell::new(0), UnsafeCell::new(0)]))
    }

    fn of(&self, start: usize, buffer: &mut PoolBuffer) -> &UnsafeCell<u32> {
        &self.0[(buffer.bytes_mut().as_ptr() as usize - start) / SIZE]
    }
}

/// Each thread reads the buffer that both hold, writes to it if it may, lets go of it, and takes
/// another one.
fn holders(may_write: fn(&PoolBuffer) -> bool) {
    let pool = Pool::new(2, SIZE).unwrap();
    let mut first = pool.take(SIZE).unwrap();
    let start = first.bytes_mut().as_ptr() as usize;
    let cells = Cells::new();
    // SAFETY: loom has checked that no other access is under way, here and below.
    cells.of(start, &mut first).with_mut(|cell| unsafe { *cell = 1 });
    // Both hold it; who drops it last gives it back.
    let second = first.share(0, SIZE);
    let threads = [first, second].map(|held| {
        let (pool, cells) = (pool.clone(), cells.clone());
        thread::spawn(move || {
            // SAFETY: as above.
            cells.0[0].with(|cell| unsafe { *cell });
            if may_write(&held) {
                // SAFETY: as above.
                cells.0[0].with_mut(|cell| unsafe { *cell += 1 });
            }
            drop(held);
            if let Some(mut buffer) = pool.take(SIZE) {
                // SAFETY: as above.
                cells.of(start, &mut buffer).with_mut(|cell| unsafe { *cell += 1 });
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(pool.available(), 2, "a buffer is lost, or was given back twice");
}

pub(crate) fn right() {
    holders(PoolBuffer::is_sole);
}

/// A holder writes although there is another one.
pub(crate) fn wrong() {
    holders(|_| true);
}
