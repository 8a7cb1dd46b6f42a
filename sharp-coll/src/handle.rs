//! What C holds instead of pointers: the number of an entry in a table, with the number of the
//! entry's tenant.
//!
//! ```text
//!   bit 63 ......... 28 27 ......... 4 3 .. 0
//!       tenant          entry         kind        never 0, and never a pointer to follow
//! ```
//! A handle that was freed, belongs to a thing of another kind, or was never given out finds
//! nothing.

use std::ffi::c_void;
use std::sync::Arc;

use crate::entries::Entries;

/// What a table holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Kind {
    Context = 1,
    Comm = 2,
    Request = 3,
    Region = 4,
}

/// A handle, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    pub tenant: u64,
    pub entry: u32,
}

impl Handle {
    /// Reads what C gave; `None` if it is no handle of this kind.
    pub fn read(handle: *const c_void, kind: Kind) -> Option<Handle> {
        let number = handle.addr() as u64;
        let entry = (number >> KIND_BITS) as u32 & ENTRIES_MASK;
        (number & ((1 << KIND_BITS) - 1) == kind as u64).then_some(Handle { tenant: number >> TENANT_SHIFT, entry })
    }

    /// The handle in the form that C gets.
    pub fn written(self, kind: Kind) -> *mut c_void {
        let number = self.tenant << TENANT_SHIFT | u64::from(self.entry) << KIND_BITS | kind as u64;
        std::ptr::without_provenance_mut(number as usize)
    }
}

/// Things of one kind that calls share: one may be taken out of the table while calls still work
/// with it.
pub struct Table<T>(Entries<Option<Arc<T>>>);

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Table<T> {
        Table(Entries::new(kind))
    }

    /// Puts a thing into the table and returns its handle; `None` when there are too many.
    pub fn insert(&self, thing: Arc<T>) -> Option<*mut c_void> {
        let mut entry = self.0.take()?;
        *entry = Some(thing);
        Some(entry.handle())
    }

    /// The thing with this handle.
    pub fn get(&self, handle: *const c_void) -> Option<Arc<T>> {
        self.0.find(handle)?.clone()
    }

    /// Takes the thing with this handle out. From now on the handle finds nothing.
    pub fn remove(&self, handle: *const c_void) -> Option<Arc<T>> {
        let mut entry = self.0.find(handle)?;
        let thing = entry.take();
        entry.vacate();
        thing
    }

    /// Takes out all things for which `is_meant` holds.
    pub fn drain(&self, is_meant: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut taken = Vec::new();
        for mut entry in self.0.tenants() {
            if entry.as_ref().is_some_and(|thing| is_meant(thing)) {
                taken.extend(entry.take());
                entry.vacate();
            }
        }
        taken
    }
}

const KIND_BITS: u32 = 4;
const TENANT_SHIFT: u32 = 28;
const ENTRIES_MASK: u32 = (1 << (TENANT_SHIFT - KIND_BITS)) - 1;
/// Most things of one kind.
pub const ENTRIES_MAX: usize = 1 << (TENANT_SHIFT - KIND_BITS);
/// The mask of a tenant's number, which begins anew above it. It leaves an even number of values,
/// so that odd numbers stay odd.
pub const TENANTS_MASK: u64 = (1 << (64 - TENANT_SHIFT)) - 1;

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
        // The entry is used again, and the handle is another.
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
        let next_tenant = 1 << TENANT_SHIFT;
        for number in [
            0,
            1,
            3,
            usize::MAX,
            handle.addr() ^ 1,
            handle.addr() + 16,
            handle.addr() + next_tenant,
            handle.addr() - next_tenant,
        ] {
            let pointer = std::ptr::without_provenance(number);
            assert!(table.get(pointer).is_none() && other.get(pointer).is_none(), "{number:x}");
        }
        assert!(other.get(handle).is_none());
    }

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        for handle in [Handle { tenant: 1, entry: 0 }, Handle { tenant: TENANTS_MASK, entry: ENTRIES_MASK }] {
            assert_eq!(Handle::read(handle.written(Kind::Region), Kind::Region), Some(handle));
            assert_eq!(Handle::read(handle.written(Kind::Region), Kind::Comm), None);
        }
    }
}
