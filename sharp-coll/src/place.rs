//! The table of the things that C holds. Each thing lies in a place with a lock of its own, and is
//! found without a lock over the whole table.
//!
//! ```text
//!   chunk 0          chunk 1                 chunk 2
//!   64 places        128 places              256 places ...
//! ```
//! A chunk is made when all places before it are taken. No chunk ever moves or is freed.
//!
//! A place counts its tenants: the count is odd while it has one. Things stay in their places when
//! these are given back, so that the next tenant can use what they own.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::handle::{Handle, Kind, PLACES_MAX, TENANTS_MASK};

/// The places for things of one kind.
pub struct Places<T> {
    kind: Kind,
    chunks: [OnceLock<Box<[Place<T>]>>; CHUNKS],
    free: Mutex<Free>,
}

struct Place<T>(Mutex<Content<T>>);

#[derive(Default)]
struct Content<T> {
    tenant: u64,
    thing: T,
}

struct Free {
    places: Vec<u32>,
    /// The number of chunks that exist.
    chunks: usize,
}

/// A place, locked.
pub struct Held<'a, T> {
    places: &'a Places<T>,
    at: u32,
    content: MutexGuard<'a, Content<T>>,
}

impl<T: Default> Places<T> {
    pub const fn new(kind: Kind) -> Places<T> {
        let free = Mutex::new(Free { places: Vec::new(), chunks: 0 });
        Places { kind, chunks: [const { OnceLock::new() }; CHUNKS], free }
    }

    /// Gives a place to a new tenant, with the thing of the last one in it; `None` when there are
    /// too many.
    pub fn take(&self) -> Option<Held<'_, T>> {
        let at = {
            let mut free = lock(&self.free);
            match free.places.pop() {
                Some(at) => at,
                None => self.grow(&mut free)?,
            }
        };
        let mut held = self.at(at)?;
        held.content.tenant = (held.content.tenant + 1) & TENANTS_MASK;
        Some(held)
    }

    /// The place that has the tenant with this handle.
    pub fn find(&self, handle: *const c_void) -> Option<Held<'_, T>> {
        let handle = Handle::read(handle, self.kind)?;
        self.at(handle.place).filter(|held| held.content.tenant == handle.tenant && held.is_let())
    }

    /// The place with this number, whether or not it has a tenant.
    pub fn at(&self, at: u32) -> Option<Held<'_, T>> {
        let (chunk, within) = split(at);
        let place = self.chunks.get(chunk)?.get()?.get(within)?;
        Some(Held { places: self, at, content: lock(&place.0) })
    }

    /// The place with this number, which must have been taken before.
    pub fn held(&self, at: u32) -> Held<'_, T> {
        self.at(at).expect("a place that was taken is there")
    }

    /// All places that have a tenant, one after the other. Only the lock of the current one is
    /// held.
    pub fn tenants(&self) -> impl Iterator<Item = Held<'_, T>> {
        let made: usize = self.chunks.iter().map_while(OnceLock::get).map(|chunk| chunk.len()).sum();
        (0..made as u32).filter_map(|at| self.at(at)).filter(Held::is_let)
    }

    /// Makes one more chunk and takes its first place.
    fn grow(&self, free: &mut Free) -> Option<u32> {
        let chunk = self.chunks.get(free.chunks)?;
        let first = FIRST << free.chunks;
        let start = (first - FIRST) as u32;
        chunk.get_or_init(|| (0..first).map(|_| Place(Mutex::default())).collect());
        free.chunks += 1;
        // With this room, giving a place back never allocates.
        free.places.reserve(start as usize + first);
        free.places.extend((start + 1..start + first as u32).rev());
        Some(start)
    }
}

impl<T> Held<'_, T> {
    /// The handle that C gets.
    pub fn handle(&self) -> *mut c_void {
        Handle { tenant: self.content.tenant, place: self.at }.written(self.places.kind)
    }

    /// The number of the place, by which it can be found again after the handle has become invalid.
    pub fn place(&self) -> u32 {
        self.at
    }

    /// Makes the handle invalid: from now on it finds nothing.
    pub fn end(&mut self) {
        if self.is_let() {
            self.content.tenant = (self.content.tenant + 1) & TENANTS_MASK;
        }
    }

    /// Gives the place back. The next tenant finds the thing as it is left here.
    pub fn vacate(mut self) {
        self.end();
        let Held { places, at, content } = self;
        drop(content);
        lock(&places.free).places.push(at);
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

/// The chunk of a place, and its index in the chunk.
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

/// The number of places in the first chunk. Each further chunk has twice as many as the one before.
const FIRST: usize = 64;
const CHUNKS: usize = (PLACES_MAX / FIRST).ilog2() as usize;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn places_are_numbered_without_gaps() {
        let mut expected = (0..8).flat_map(|chunk| (0..FIRST << chunk).map(move |within| (chunk, within)));
        for at in 0..(FIRST << 8) - FIRST {
            assert_eq!(Some(split(at as u32)), expected.next());
        }
        assert!(split(u32::MAX >> 8).0 >= CHUNKS && (FIRST << CHUNKS) - FIRST <= PLACES_MAX);
    }

    #[test]
    fn every_tenant_has_a_place_and_a_handle_of_its_own() {
        let places = Places::<u32>::new(Kind::Request);
        let mut handles = HashSet::new();
        for round in 0..3_u32 {
            let mut held = Vec::new();
            for count in 0..1000 {
                let mut place = places.take().unwrap();
                *place = round * 1000 + count;
                held.push(place.handle());
            }
            for (count, handle) in held.iter().enumerate() {
                assert_eq!(*places.find(*handle).unwrap(), round * 1000 + count as u32);
                assert!(handles.insert(*handle), "a handle came twice");
            }
            assert_eq!(places.tenants().count(), 1000);
            held.iter().for_each(|handle| places.find(*handle).unwrap().vacate());
            assert!(handles.iter().all(|handle| places.find(*handle).is_none()));
        }
        assert_eq!(places.tenants().count(), 0);
    }

    #[test]
    fn a_place_whose_handle_has_ended_is_nobody_elses_until_it_is_given_back() {
        let places = Places::<u32>::new(Kind::Request);
        let mut first = places.take().unwrap();
        *first = 7;
        let (handle, at) = (first.handle(), first.place());
        first.end();
        drop(first);
        assert!(places.find(handle).is_none());
        assert_ne!(places.take().unwrap().place(), at);
        let first = places.at(at).unwrap();
        assert_eq!(*first, 7);
        first.vacate();
        assert_eq!(places.take().unwrap().place(), at);
    }

    #[test]
    fn places_that_were_never_made_are_nowhere() {
        let places = Places::<u32>::new(Kind::Request);
        assert!(places.at(0).is_none() && places.at(u32::MAX).is_none());
        let first = places.take().unwrap().place();
        assert!(places.at(first).is_some() && places.at(FIRST as u32).is_none());
    }
}
