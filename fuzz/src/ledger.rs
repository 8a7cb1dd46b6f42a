//! Buffers without bytes, which are counted from outside of the core that owns them.

use std::cell::Cell;
use std::rc::Rc;

use trib_proto::Path;

/// What a core holds, by the path on which it came: datagrams, segments.
#[derive(Clone, Default)]
pub struct Ledger(Rc<[Cell<usize>; 2]>);

/// A buffer, which leaves its ledger when it is dropped.
#[derive(Debug)]
pub struct Buffer {
    /// The number of bytes that it would have.
    pub len: u32,
    /// How they, or those of which it was folded, have come.
    pub path: Path,
    held: Rc<[Cell<usize>; 2]>,
}

impl Ledger {
    /// A new buffer.
    pub fn enter(&self, len: u32, path: Path) -> Buffer {
        let count = &self.0[path as usize];
        count.set(count.get() + 1);
        Buffer { len, path, held: Rc::clone(&self.0) }
    }

    /// The number of datagrams and of segments.
    pub fn held(&self) -> (usize, usize) {
        (self.0[Path::Datagram as usize].get(), self.0[Path::Stream as usize].get())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let count = &self.held[self.path as usize];
        count.set(count.get() - 1);
    }
}
