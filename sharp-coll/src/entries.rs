//! The table of the things that C holds. Each thing is in an entry with a lock of its own, and is
//! found without a lock over the whole table.
//!
//! ```text
//!   chunk 0          chunk 1                 chunk 2
//!   64 entries       128 entries             256 entries ...
//! ```
//! A chunk is made when all entries before it are taken. No chunk ever moves or is freed.
//!
//! An entry counts its tenants: the count is odd while it has one. Things stay in their entries
//! when these are given back, so that the next tenant can use what they own.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::handle::{ENTRIES_MAX, Handle, Kind, TENANTS_MASK};

/// The entries for things of one kind.
pub struct Entries<T> {
    kind: Kind,
    chunks: [OnceLock<Box<[Entry<T>]>>; CHUNKS],
    free: Mutex<Free>,
}

struct Entry<T>(Mutex<Content<T>>);

#[derive(Default)]
struct Content<T> {
    tenant: u64,
    thing: T,
}

struct Free {
    entries: Vec<u32>,
    /// The number of chunks that exist.
    chunks: usize,
}

/// An entry, locked.
pub struct Held<'a, T> {
    entries: &'a Entries<T>,
    at: u32,
    content: MutexGuard<'a, Content<T>>,
}

impl<T: Default> Entries<T> {
    pub const fn new(kind: Kind) -> Entries<T> {
        let free = Mutex::new(Free { entries: Vec::new(), chunks: 0 });
        Entries { kind, chunks: [const { OnceLock::new() }; CHUNKS], free }
    }

    /// Gives an entry to a new tenant, with the thing of the last one in it; `None` when there are
    /// too many.
    pub fn take(&self) -> Option<Held<'_, T>> {
        let at = {
            let mut free = lock(&self.free);
            match free.entries.pop() {
                Some(at) => at,
                None => self.grow(&mut free)?,
            }
        };
        let mut held = self.at(at)?;
        held.content.tenant = (held.content.tenant + 1) & TENANTS_MASK;
        Some(held)
    }

    /// The entry that has the tenant with this handle.
    pub fn find(&self, handle: *const c_void) -> Option<Held<'_, T>> {
        let handle = Handle::read(handle, self.kind)?;
        self.at(handle.entry).filter(|held| held.content.tenant == handle.tenant && held.is_let())
    }

    /// The entry with this number, whether or not it has a tenant.
    pub fn at(&self, at: u32) -> Option<Held<'_, T>> {
        let (chunk, within) = split(at);
        let entry = self.chunks.get(chunk)?.get()?.get(within)?;
        Some(Held { entries: self, at, content: lock(&entry.0) })
    }

    /// The entry with this number, which must have been taken before.
    pub fn held(&self, at: u32) -> Held<'_, T> {
        self.at(at).expect("an entry that was taken is there")
    }

    /// All entries that have a tenant, one after the other. Only the lock of the current one is
    /// held.
    pub fn tenants(&self) -> impl Iterator<Item = Held<'_, T>> {
        let made: usize = self.chunks.iter().map_while(OnceLock::get).map(|chunk| chunk.len()).sum();
        (0..made as u32).filter_map(|at| self.at(at)).filter(Held::is_let)
    }

    /// Makes one more chunk and takes its first entry.
    fn grow(&self, free: &mut Free) -> Option<u32> {
        let chunk = self.chunks.get(free.chunks)?;
        let first = FIRST << free.chunks;
        let start = (first - FIRST) as u32;
        chunk.get_or_init(|| (0..first).map(|_| Entry(Mutex::default())).collect());
        free.chunks += 1;
        // With this room, giving an entry back never allocates.
        free.entries.reserve(start as usize + first);
        free.entries.extend((start + 1..start + first as u32).rev());
        Some(start)
    }
}

impl<T> Held<'_, T> {
    /// The handle that C gets.
    pub fn handle(&self) -> *mut c_void {
        Handle { tenant: self.content.tenant, entry: self.at }.written(self.entries.kind)
    }

    /// The number of the entry, by which it can be found again after the handle has become invalid.
    pub fn entry(&self) -> u32 {
        self.at
    }

    /// Makes the handle invalid: from now on it finds nothing.
    pub fn end(&mut self) {
        if self.is_let() {
            self.content.tenant = (self.content.tenant + 1) & TENANTS_MASK;
        }
    }

    /// Gives the entry back. The next tenant finds the thing as it is left here.
    pub fn vacate(mut self) {
        self.end();
        let Held { entries, at, content } = self;
        drop(content);
        lock(&entries.free).entries.push(at);
    }

    fn is_let(&self) -> bool {
        self.content.tenant % 2 == 1
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content.thing
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content.thing
    }
}

/// The chunk of an entry, and its index in the chunk.
fn split(at: u32) -> (usize, usize) {
    let number = at as usize + FIRST;
    let chunk = (number / FIRST).ilog2() as usize;
    (chunk, number - (FIRST << chunk))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under this lock panics half-way through a change, so a poisoned lock guards a sound
    // state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of entries in the first chunk. Each further chunk has twice as many as the one
/// before.
const FIRST: usize = 64;
const CHUNKS: usize = (ENTRIES_MAX / FIRST).ilog2() as usize;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn entries_are_numbered_without_gaps() {
        let mut expected = (0..8).flat_map(|chunk| (0..FIRST << chunk).map(move |within| (chunk, within)));
        for at in 0..(FIRST << 8) - FIRST {
            assert_eq!(Some(split(at as u32)), expected.next());
        }
        assert!(split(u32::MAX >> 8).0 >= CHUNKS && (FIRST << CHUNKS) - FIRST <= ENTRIES_MAX);
    }

    #[test]
    fn every_tenant_has_an_entry_and_a_handle_of_its_own() {
        let entries = Entries::<u32>::new(Kind::Request);
        let mut handles = HashSet::new();
        for round in 0..3_u32 {
            let mut held = Vec::new();
            for count in 0..1000 {
                let mut entry = entries.take().unwrap();
                *entry = round * 1000 + count;
                held.push(entry.handle());
            }
            for (count, handle) in held.iter().enumerate() {
                assert_eq!(*entries.find(*handle).unwrap(), round * 1000 + count as u32);
                assert!(handles.insert(*handle), "a handle came twice");
            }
            assert_eq!(entries.tenants().count(), 1000);
            held.iter().for_each(|handle| entries.find(*handle).unwrap().vacate());
            assert!(handles.iter().all(|handle| entries.find(*handle).is_none()));
        }
        assert_eq!(entries.tenants().count(), 0);
    }

    #[test]
    fn an_entry_whose_handle_has_ended_is_nobody_elses_until_it_is_given_back() {
        let entries = Entries::<u32>::new(Kind::Request);
        let mut first = entries.take().unwrap();
        *first = 7;
        let (handle, at) = (first.handle(), first.entry());
        first.end();
        drop(first);
        assert!(entries.find(handle).is_none());
        assert_ne!(entries.take().unwrap().entry(), at);
        let first = entries.at(at).unwrap();
        assert_eq!(*first, 7);
        first.vacate();
        assert_eq!(entries.take().unwrap().entry(), at);
    }

    #[test]
    fn entries_that_were_never_made_are_nowhere() {
        let entries = Entries::<u32>::new(Kind::Request);
        assert!(entries.at(0).is_none() && entries.at(u32::MAX).is_none());
        let first = entries.take().unwrap().entry();
        assert!(entries.at(first).is_some() && entries.at(FIRST as u32).is_none());
    }
}
