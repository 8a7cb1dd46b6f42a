//! What C holds instead of pointers: a place in a table, with the number of its tenant.
//!
//! ```text
//!   bit 63 ......... 32 31 ......... 4 3 .. 0
//!       tenant          place         kind        never 0, and never a pointer that anybody follows
//! ```
//! A handle that was freed, belongs to something else, or was never given out finds nothing.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a table holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Kind {
    Context = 1,
    Comm = 2,
    Request = 3,
    Region = 4,
}

/// All things of one kind.
pub struct Table<T> {
    kind: Kind,
    places: Mutex<Places<T>>,
}

struct Places<T> {
    all: Vec<Place<T>>,
    free: Vec<u32>,
}

struct Place<T> {
    tenant: u32,
    thing: Option<Arc<T>>,
}

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Table<T> {
        Table { kind, places: Mutex::new(Places { all: Vec::new(), free: Vec::new() }) }
    }

    /// Gives a thing its handle; none when there are too many.
    pub fn insert(&self, thing: Arc<T>) -> Option<*mut c_void> {
        let mut places = self.lock();
        let at = match places.free.pop() {
            Some(at) => at,
            None if places.all.len() < PLACES_MAX => {
                places.all.push(Place { tenant: 0, thing: None });
                (places.all.len() - 1) as u32
            }
            None => return None,
        };
        let place = &mut places.all[at as usize];
        place.tenant = place.tenant.wrapping_add(1);
        place.thing = Some(thing);
        let number = u64::from(place.tenant) << 32 | u64::from(at) << 4 | self.kind as u64;
        Some(std::ptr::without_provenance_mut(number as usize))
    }

    /// The thing with this handle.
    pub fn get(&self, handle: *const c_void) -> Option<Arc<T>> {
        let (tenant, at) = self.split(handle)?;
        let places = self.lock();
        let place = places.all.get(at).filter(|place| place.tenant == tenant)?;
        place.thing.clone()
    }

    /// Takes the thing with this handle out; the handle finds nothing from now on.
    pub fn remove(&self, handle: *const c_void) -> Option<Arc<T>> {
        let (tenant, at) = self.split(handle)?;
        let mut places = self.lock();
        let place = places.all.get_mut(at).filter(|place| place.tenant == tenant)?;
        let thing = place.thing.take()?;
        places.free.push(at as u32);
        Some(thing)
    }

    /// Takes all things out that are meant.
    pub fn drain(&self, is_meant: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut places = self.lock();
        let Places { all, free } = &mut *places;
        let mut taken = Vec::new();
        for (at, place) in all.iter_mut().enumerate() {
            if place.thing.as_ref().is_some_and(|thing| is_meant(thing)) {
                taken.extend(place.thing.take());
                free.push(at as u32);
            }
        }
        taken
    }

    fn split(&self, handle: *const c_void) -> Option<(u32, usize)> {
        let number = handle.addr() as u64;
        (number & 0xf == self.kind as u64).then_some(((number >> 32) as u32, (number as u32 >> 4) as usize))
    }

    fn lock(&self) -> MutexGuard<'_, Places<T>> {
        // Nothing in here panics half-way through a change.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PLACES_MAX: usize = 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_finds_its_thing_until_it_is_removed() {
        let table = Table::new(Kind::Comm);
        let (a, b) = (table.insert(Arc::new('a')).unwrap(), table.insert(Arc::new('b')).unwrap());
        assert_ne!(a, b);
        assert_eq!((table.get(a).as_deref(), table.get(b).as_deref()), (Some(&'a'), Some(&'b')));
        assert_eq!(table.remove(a).as_deref(), Some(&'a'));
        let c = table.insert(Arc::new('c')).unwrap();
        // The place is used again, the handle is not.
        assert_ne!(a, c);
        assert!(table.get(a).is_none() && table.remove(a).is_none());
        assert_eq!(table.drain(|thing| *thing == 'c').len(), 1);
        assert!(table.get(c).is_none() && table.get(b).is_some());
    }

    #[test]
    fn numbers_that_were_never_given_out_find_nothing() {
        let table = Table::new(Kind::Request);
        let handle = table.insert(Arc::new(())).unwrap();
        let other = Table::<()>::new(Kind::Comm);
        for number in [0, 1, 3, usize::MAX, handle.addr() ^ 1, handle.addr() + 16, handle.addr() + (1 << 32)] {
            let pointer = std::ptr::without_provenance(number);
            assert!(table.get(pointer).is_none() && other.get(pointer).is_none(), "{number:x}");
        }
        assert!(other.get(handle).is_none());
    }
}
