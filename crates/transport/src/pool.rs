//! Buffers of one size that are reserved once per job and handed out without locks or allocation.
//!
//! Free buffers are bits in a few words; the lowest free buffer is handed out first, so that a job
//! that uses little touches little of the memory that its grant reserves.

use crate::landing::{Landing, Source};
use crate::mapping::Mapping;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

/// A pool; clones share the buffers.
#[derive(Clone)]
pub struct Pool {
    slab: Arc<Slab>,
}

struct Slab {
    memory: Mapping,
    size: usize,
    free: Box<[AtomicU64]>,
    shares: Box<[AtomicU32]>,
}

impl Pool {
    /// Reserves `count` buffers of `size` bytes each; `None` when the system has not as much
    /// memory. Pages are taken from the system when they are first written.
    pub fn new(count: usize, size: usize) -> Option<Pool> {
        let memory = Mapping::new(count.checked_mul(size)?)?;
        let free = (0..count.div_ceil(64))
            .map(|word| {
                let bits = (count - word * 64).min(64);
                AtomicU64::new(u64::MAX >> (64 - bits))
            })
            .collect();
        let shares = (0..count).map(|_| AtomicU32::new(0)).collect();
        Some(Pool { slab: Arc::new(Slab { memory, size, free, shares }) })
    }

    /// Bytes of one buffer.
    pub fn size(&self) -> usize {
        self.slab.size
    }

    /// Buffers in all.
    pub fn capacity(&self) -> usize {
        self.slab.shares.len()
    }

    /// Buffers not handed out.
    pub fn available(&self) -> usize {
        let ones = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones() as usize;
        self.slab.free.iter().map(ones).sum()
    }

    /// Takes a buffer whose first `len` bytes count; `None` when all are in use or `len` is more
    /// than a buffer holds. The bytes are those of an earlier use.
    pub fn take(&self, len: usize) -> Option<PoolBuffer> {
        if len > self.slab.size {
            return None;
        }
        for (at, word) in self.slab.free.iter().enumerate() {
            let mut seen = word.load(Ordering::Relaxed);
            while seen != 0 {
                let bit = seen & seen.wrapping_neg();
                seen = word.fetch_and(!bit, Ordering::Acquire);
                if seen & bit != 0 {
                    let index = at * 64 + bit.trailing_zeros() as usize;
                    self.slab.shares[index].store(1, Ordering::Relaxed);
                    return Some(PoolBuffer { slab: self.slab.clone(), index: index as u32, from: 0, len: len as u32 });
                }
                seen &= !bit;
            }
        }
        None
    }
}

/// A range of one buffer of a pool, given back when the last holder drops it.
pub struct PoolBuffer {
    slab: Arc<Slab>,
    index: u32,
    from: u32,
    len: u32,
}

impl PoolBuffer {
    /// Another holder of `len` bytes from byte `from` of this range.
    ///
    /// # Panics
    /// If the range does not lie inside this one.
    pub fn share(&self, from: usize, len: usize) -> PoolBuffer {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len as usize));
        self.slab.shares[self.index as usize].fetch_add(1, Ordering::Relaxed);
        PoolBuffer { slab: self.slab.clone(), index: self.index, from: self.from + from as u32, len: len as u32 }
    }

    /// Sets how many bytes count.
    ///
    /// # Panics
    /// If the buffer does not have as many.
    pub fn set_len(&mut self, len: usize) {
        assert!(self.from as usize + len <= self.slab.size);
        self.len = len as u32;
    }

    /// How many bytes count.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no byte counts.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this is the buffer's only holder.
    pub fn is_sole(&self) -> bool {
        self.slab.shares[self.index as usize].load(Ordering::Acquire) == 1
    }

    fn start(&self) -> *mut u8 {
        let at = self.index as usize * self.slab.size + self.from as usize;
        self.slab.memory.at(at)
    }
}

impl Source for PoolBuffer {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies inside the slab; while it is held nothing writes to it, because
        // `bytes_mut` demands that there is one holder only.
        unsafe { core::slice::from_raw_parts(self.start(), self.len as usize) }
    }
}

impl Landing for PoolBuffer {
    /// # Panics
    /// If the buffer has another holder too.
    fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_sole(), "a shared buffer is not written to");
        // SAFETY: the range lies inside the slab, and this is its only holder, borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start(), self.len as usize) }
    }
}

impl Drop for PoolBuffer {
    fn drop(&mut self) {
        if self.slab.shares[self.index as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
            let bit = 1 << (self.index % 64);
            self.slab.free[self.index as usize / 64].fetch_or(bit, Ordering::Release);
        }
    }
}

impl core::fmt::Debug for PoolBuffer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PoolBuffer(#{} {}+{})", self.index, self.from, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_is_handed_out_once_and_comes_back() {
        let pool = Pool::new(130, 16).unwrap();
        let mut held: Vec<PoolBuffer> = (0..130).map(|_| pool.take(16).unwrap()).collect();
        assert!(pool.take(1).is_none());
        assert_eq!(pool.available(), 0);
        for (i, buffer) in held.iter_mut().enumerate() {
            buffer.bytes_mut().fill(i as u8);
        }
        for (i, buffer) in held.iter().enumerate() {
            assert_eq!(buffer.bytes(), [i as u8; 16]);
        }
        held.remove(77);
        let again = pool.take(3).unwrap();
        assert_eq!(again.bytes(), [77; 3]);
        drop((held, again));
        assert_eq!(pool.available(), 130);
    }

    #[test]
    fn a_buffer_lives_as_long_as_its_last_holder() {
        let pool = Pool::new(1, 8).unwrap();
        let mut first = pool.take(8).unwrap();
        first.bytes_mut().copy_from_slice(b"abcdefgh");
        let second = first.share(2, 3);
        assert!(!first.is_sole());
        drop(first);
        assert_eq!(pool.available(), 0);
        assert_eq!(second.bytes(), b"cde");
        drop(second);
        assert_eq!(pool.available(), 1);
    }

    #[test]
    #[should_panic(expected = "a shared buffer is not written to")]
    fn a_shared_buffer_is_not_written_to() {
        let pool = Pool::new(1, 8).unwrap();
        let mut first = pool.take(8).unwrap();
        let _second = first.share(0, 8);
        first.bytes_mut();
    }

    #[test]
    fn a_length_beyond_the_buffer_is_refused() {
        assert!(Pool::new(1, 8).unwrap().take(9).is_none());
        assert!(Pool::new(0, 8).unwrap().take(0).is_none());
        assert!(Pool::new(usize::MAX, 2).is_none());
        assert!(Pool::new(1 << 40, 1 << 20).is_none());
    }

    #[test]
    fn threads_never_get_the_same_buffer() {
        let pool = Pool::new(8, 8).unwrap();
        std::thread::scope(|scope| {
            for thread in 0u8..4 {
                let pool = pool.clone();
                scope.spawn(move || {
                    for _ in 0..2000 {
                        if let Some(mut buffer) = pool.take(8) {
                            buffer.bytes_mut().fill(thread);
                            assert_eq!(buffer.bytes(), [thread; 8]);
                        }
                    }
                });
            }
        });
        assert_eq!(pool.available(), 8);
    }
}
