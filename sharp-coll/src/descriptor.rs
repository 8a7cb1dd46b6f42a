//! Where the bytes of a message are: one buffer or a list of pieces, in the host's memory or a
//! GPU's.
//!
//! The collectives below want one piece of host memory. The bytes of any other region go through a
//! buffer of ours, which is filled before posting and emptied when the operation is done.

use smallvec::SmallVec;

use crate::abi::{DATA_BUFFER, DATA_IOV, DataDesc, MAX_IOV, MEM_CUDA, MEM_HOST};
use crate::cuda;
use crate::error::Failure;

/// One run of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub start: *mut u8,
    pub len: usize,
}

/// The memory that a descriptor names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pieces: SmallVec<[Piece; 1]>,
    on_gpu: bool,
    /// No handle came with the region, so its owner may free small buffers as soon as the call
    /// returns.
    is_unregistered: bool,
}

// SAFETY: the memory is the library's until the request is done, whichever thread completes the
// request.
unsafe impl Send for Region {}

impl Region {
    /// Reads a descriptor of a message of `need` bytes. It may name more memory than that, and
    /// never less: a client whose elements have another size than the library takes them to have
    /// would make it read or write beyond the buffer. Memory of a GPU is refused unless the job
    /// takes it.
    ///
    /// # Safety
    /// A list of pieces is as long as the descriptor says.
    pub unsafe fn read(desc: &DataDesc, need: usize, name: &str, takes_gpu_memory: bool) -> Result<Region, Failure> {
        let invalid = |what: &str| Err(Failure::invalid(format!("{name}: {what}")));
        let short = |what: &str, len: usize| {
            Err(Failure::invalid(format!("{name}: {what} {len} bytes, and the message has {need}")))
        };
        let mut pieces: SmallVec<[Piece; 1]> = SmallVec::new();
        let is_unregistered;
        match desc.kind {
            DATA_BUFFER => {
                // SAFETY: any bits are valid values of the fields of this variant.
                let buffer = unsafe { desc.data.buffer };
                if need > 0 && buffer.ptr.is_null() {
                    return invalid("the buffer is NULL");
                }
                if buffer.length < need {
                    return short("the buffer has", buffer.length);
                }
                is_unregistered = buffer.mem_handle.is_null();
                pieces.push(Piece { start: buffer.ptr.cast(), len: need });
            }
            DATA_IOV => {
                // SAFETY: as above.
                let list = unsafe { desc.data.iov };
                let count = list.count as usize;
                if count == 0 || count > MAX_IOV || list.vector.is_null() {
                    return invalid("a list of pieces has 1 to 15 of them");
                }
                // SAFETY: the caller's contract.
                let all = unsafe { core::slice::from_raw_parts(list.vector, count) };
                is_unregistered = all.iter().any(|one| one.mem_handle.is_null());
                let mut left = need;
                for one in all {
                    let len = one.length.min(left);
                    if len > 0 && one.ptr.is_null() {
                        return invalid("a piece is NULL");
                    }
                    left -= len;
                    if len > 0 {
                        pieces.push(Piece { start: one.ptr.cast(), len });
                    }
                }
                if left > 0 {
                    return short("the pieces have together", need - left);
                }
            }
            _ => return invalid("the type is neither a buffer nor a list of pieces"),
        }
        let first = pieces.iter().find(|piece| piece.len > 0);
        let on_gpu = match (first, desc.mem_type) {
            (None, _) | (_, MEM_HOST) => false,
            // Memory that is marked so may still be the host's.
            (Some(piece), MEM_CUDA) => cuda::is_on_gpu(piece.start, takes_gpu_memory)?,
            // Some clients leave the type as their stack was.
            (Some(piece), _) => cuda::turns_out_on_gpu(piece.start, takes_gpu_memory)?,
        };
        Ok(Region { pieces, on_gpu, is_unregistered })
    }

    /// Its start, if it is one piece of host memory; null if it is empty.
    pub fn direct(&self) -> Option<*mut u8> {
        match &self.pieces[..] {
            [] => Some(std::ptr::null_mut()),
            [one] if !self.on_gpu => Some(one.start),
            _ => None,
        }
    }

    /// Whether its owner may take it back before the operation is done.
    pub fn may_vanish(&self) -> bool {
        self.is_unregistered && self.len() <= COPIED_MAX
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len).sum()
    }

    /// Whether it shares any byte with the `len` bytes from `start`.
    pub fn overlaps(&self, start: *const u8, len: usize) -> bool {
        let (from, to) = (start.addr(), start.addr().saturating_add(len));
        self.pieces
            .iter()
            .any(|piece| piece.len > 0 && piece.start.addr() < to && from < piece.start.addr() + piece.len)
    }

    /// Appends its bytes.
    ///
    /// # Safety
    /// The memory is readable.
    pub unsafe fn gather(&self, into: &mut Vec<u8>) -> Result<(), Failure> {
        // An empty piece may have any address.
        for piece in self.pieces.iter().filter(|piece| piece.len > 0) {
            if !self.on_gpu {
                // SAFETY: the caller's contract.
                into.extend_from_slice(unsafe { core::slice::from_raw_parts(piece.start, piece.len) });
                continue;
            }
            let at = into.len();
            into.resize(at + piece.len, 0);
            cuda::from_gpu(piece.start, into[at..].as_mut_ptr(), piece.len)?;
        }
        Ok(())
    }

    /// Copies these bytes into the region, at most as many as it has.
    ///
    /// # Safety
    /// The memory is writable.
    pub unsafe fn scatter(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut at = 0;
        for piece in self.pieces.iter().filter(|piece| piece.len > 0) {
            let end = at + piece.len;
            let from = bytes[at..end].as_ptr();
            if self.on_gpu {
                cuda::to_gpu(from, piece.start, piece.len)?;
            } else {
                // SAFETY: the caller's contract; slicing checks the length.
                unsafe { core::ptr::copy(from, piece.start, piece.len) };
            }
            at = end;
        }
        Ok(())
    }
}

/// Unregistered input of up to this many bytes is copied before a call returns.
pub const COPIED_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;
    use crate::abi::{Buffer, Data, Iov, IovList};

    fn desc(kind: i32, data: Data) -> DataDesc {
        DataDesc { kind, mem_type: 0x7777, reserved: MaybeUninit::uninit(), data }
    }

    /// Reads a descriptor of memory of the host.
    ///
    /// # Safety
    /// As for [`Region::read`].
    unsafe fn read(desc: &DataDesc, need: usize, name: &str) -> Result<Region, Failure> {
        // SAFETY: the caller's contract.
        unsafe { Region::read(desc, need, name, true) }
    }

    fn iov(bytes: &mut [u8]) -> Iov {
        Iov { ptr: bytes.as_mut_ptr().cast(), length: bytes.len(), mem_handle: std::ptr::null_mut() }
    }

    #[test]
    fn pieces_are_joined_and_parted_in_order() {
        let (mut a, mut b, mut c) = (*b"ab", *b"", *b"cdefg");
        let list = [iov(&mut a), iov(&mut b), iov(&mut c)];
        let list = desc(DATA_IOV, Data { iov: IovList { count: 3, vector: list.as_ptr() } });
        // SAFETY: the list has three pieces.
        let region = unsafe { read(&list, 6, "sbuf_desc") }.unwrap();
        assert_eq!((region.len(), region.direct()), (6, None));
        let mut all = Vec::new();
        // SAFETY: the arrays are alive.
        unsafe { region.gather(&mut all) }.unwrap();
        assert_eq!(all, b"abcdef");
        // SAFETY: as above.
        unsafe { region.scatter(b"UVWXYZ") }.unwrap();
        assert_eq!((&a, &c), (b"UV", b"WXYZg"));
        // SAFETY: as above.
        assert!(unsafe { read(&list, 8, "sbuf_desc") }.is_err());
    }

    #[test]
    fn garbage_is_refused_and_what_is_not_needed_is_not() {
        let null = Buffer { ptr: std::ptr::null_mut(), length: 7, mem_handle: std::ptr::null_mut() };
        let null = desc(DATA_BUFFER, Data { buffer: null });
        // SAFETY: no list.
        unsafe {
            assert!(read(&null, 0, "x").is_ok_and(|region| region.direct() == Some(std::ptr::null_mut())));
            assert!(read(&null, 1, "x").is_err());
            assert!(read(&desc(9, null.data), 0, "x").is_err());
            for count in [0, 16, u32::MAX] {
                let list = Data { iov: IovList { count, vector: std::ptr::dangling() } };
                assert!(read(&desc(DATA_IOV, list), 4, "x").is_err());
            }
        }
    }

    #[test]
    fn what_is_too_short_is_refused_with_both_lengths() {
        let mut bytes = [0u8; 12];
        let buffer = Buffer { ptr: bytes.as_mut_ptr().cast(), length: 12, mem_handle: std::ptr::null_mut() };
        let list = [iov(&mut bytes[..5]), iov(&mut [0; 2])];
        let buffer = desc(DATA_BUFFER, Data { buffer });
        let list = desc(DATA_IOV, Data { iov: IovList { count: 2, vector: list.as_ptr() } });
        // SAFETY: the list has two pieces.
        unsafe {
            assert!(read(&buffer, 12, "x").is_ok_and(|region| region.len() == 12));
            assert!(read(&buffer, 3, "x").is_ok_and(|region| region.len() == 3));
            let text = |region: Result<Region, Failure>| region.unwrap_err().text;
            let told = text(read(&buffer, 24, "sbuf_desc"));
            assert_eq!(told, "sbuf_desc: the buffer has 12 bytes, and the message has 24");
            let told = text(read(&list, 8, "rbuf_desc"));
            assert_eq!(told, "rbuf_desc: the pieces have together 7 bytes, and the message has 8");
        }
    }

    #[test]
    fn overlaps_are_seen() {
        let mut bytes = [0u8; 8];
        let start = bytes.as_mut_ptr();
        let buffer = Buffer { ptr: start.wrapping_add(2).cast(), length: 4, mem_handle: std::ptr::null_mut() };
        // SAFETY: no list.
        let region = unsafe { read(&desc(DATA_BUFFER, Data { buffer }), 4, "x") }.unwrap();
        let seen: Vec<bool> = (0..8).map(|at| region.overlaps(start.wrapping_add(at), 1)).collect();
        assert_eq!(seen, [false, false, true, true, true, true, false, false]);
    }
}
