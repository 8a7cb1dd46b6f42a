//! The buffers of one simulated node, which hold symbolic values, and the ledger that counts them.

use std::cell::RefCell;
use std::rc::Rc;

use trib_proto::Path;

use crate::checkers::Holdings;
use crate::symbol::Value;

/// What a node holds, as those see it that watch it from outside.
#[derive(Clone, Default)]
pub struct Ledger(Rc<RefCell<Entries>>);

#[derive(Default)]
struct Entries {
    held: Holdings,
    /// Whether each buffer still lives. Numbers are never used again.
    lives: Vec<bool>,
}

/// A buffer of a node. It leaves the ledger when it is dropped.
pub struct Buffer {
    /// What it holds.
    pub value: Rc<Value>,
    /// How its bytes, or those of which it was folded, have come.
    pub path: Path,
    /// Its number, which no other buffer of its node ever has.
    pub number: u32,
    ledger: Ledger,
}

impl Ledger {
    /// A new buffer.
    pub fn enter(&self, value: Rc<Value>, path: Path) -> Buffer {
        let mut entries = self.0.borrow_mut();
        *entries.count(path) += 1;
        entries.lives.push(true);
        Buffer { value, path, number: entries.lives.len() as u32 - 1, ledger: self.clone() }
    }

    /// What the node holds now.
    pub fn held(&self) -> Holdings {
        self.0.borrow().held
    }

    /// Whether the buffer with this number still lives.
    pub fn has(&self, number: u32) -> bool {
        self.0.borrow().lives.get(number as usize).is_some_and(|lives| *lives)
    }
}

impl Entries {
    fn count(&mut self, path: Path) -> &mut usize {
        match path {
            Path::Datagram => &mut self.held.datagrams,
            Path::Stream => &mut self.held.segments,
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut entries = self.ledger.0.borrow_mut();
        *entries.count(self.path) -= 1;
        entries.lives[self.number as usize] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_counts_what_lives_by_path() {
        let ledger = Ledger::default();
        let value = Rc::new(Value::uniform(0, 0, 8));
        let fragment = ledger.enter(Rc::clone(&value), Path::Datagram);
        let segment = ledger.enter(Rc::clone(&value), Path::Stream);
        assert_eq!(ledger.held(), Holdings { datagrams: 1, segments: 1, kept: 0 });
        let number = fragment.number;
        drop(fragment);
        assert_eq!(ledger.held(), Holdings { datagrams: 0, segments: 1, kept: 0 });
        assert!(!ledger.has(number) && ledger.has(segment.number));
        assert_ne!(ledger.enter(value, Path::Datagram).number, number);
    }
}
