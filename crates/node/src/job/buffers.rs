//! The memory of one job.

use trib_messages::job::NodeGrant;
use trib_messages::memory::{Reservation, SPARE};
use trib_proto::Path;
use trib_proto::node::Part;
use trib_transport::landing::{Landing, Source};
use trib_transport::pool::{Pool, PoolBuffer};

/// All buffers of one logical node.
pub(crate) struct Buffers {
    datagrams: Store,
    segments: Store,
    /// The pieces of a fold while it goes on. Its memory stays, so that no fold allocates.
    pieces: Vec<Part<JobBuffer>>,
}

/// The buffers of one path.
struct Store {
    pool: Pool,
    /// A merge needs a buffer before it frees some. With this one it never fails.
    spare: Option<PoolBuffer>,
}

/// A buffer of a job, which goes back to its pool with its last holder. It belongs to its path for
/// good: a buffer that replaces it comes from the same path's pool, whatever its size.
pub(crate) struct JobBuffer {
    path: Path,
    buffer: PoolBuffer,
}

/// The most bytes that a grant reserves.
pub(crate) fn memory_for(grant: &NodeGrant) -> u64 {
    reservation(grant).bytes(&grant.limits)
}

fn reservation(grant: &NodeGrant) -> Reservation {
    Reservation::of(&grant.limits, grant.children.len() as u64)
}

impl Buffers {
    /// Reserves what the grant needs. Returns `None` if there is not that much memory.
    pub(crate) fn for_grant(grant: &NodeGrant) -> Option<Buffers> {
        let Reservation { datagrams, segments, .. } = reservation(grant);
        let datagrams = Store::new(datagrams, grant.limits.payload)?;
        let segments = Store::new(segments, grant.limits.segment)?;
        Some(Buffers { datagrams, segments, pieces: Vec::with_capacity(grant.children.len()) })
    }

    /// Memory for a payload of `len` bytes that comes in. `None` if the grant is used up, or allows
    /// no such length.
    pub(crate) fn take(&self, path: Path, len: usize) -> Option<JobBuffer> {
        let store = match path {
            Path::Datagram => &self.datagrams,
            Path::Stream => &self.segments,
        };
        Some(JobBuffer { path, buffer: store.pool.take(len)? })
    }

    /// Memory of `len` zeros, of the same path as this buffer.
    ///
    /// # Panics
    /// If the path's buffers are all in use, which the reservation rules out.
    pub(crate) fn zeros_like(&mut self, buffer: &JobBuffer, len: usize) -> JobBuffer {
        let path = buffer.path;
        let Store { pool, spare } = self.store(path);
        let mut buffer = pool
            .take(len)
            .or_else(|| spare.take())
            .expect("the grant covers what the core holds, and the spare buffer comes back with every fold");
        buffer.set_len(len);
        buffer.bytes_mut().fill(0);
        JobBuffer { path, buffer }
    }

    /// Makes the spare buffers ready again, once others have been let go of.
    fn refill(&mut self) {
        for Store { pool, spare } in [&mut self.datagrams, &mut self.segments] {
            if spare.is_none() {
                *spare = pool.take(0);
            }
        }
    }

    /// The empty list for the pieces of a fold. Without `put_pieces` the next list is a new one.
    pub(crate) fn take_pieces(&mut self) -> Vec<Part<JobBuffer>> {
        core::mem::take(&mut self.pieces)
    }

    /// Lets go of the pieces that are left of a fold. This makes the spare buffers ready again.
    pub(crate) fn put_pieces(&mut self, mut pieces: Vec<Part<JobBuffer>>) {
        pieces.clear();
        self.pieces = pieces;
        self.refill();
    }

    fn store(&mut self, path: Path) -> &mut Store {
        match path {
            Path::Datagram => &mut self.datagrams,
            Path::Stream => &mut self.segments,
        }
    }
}

impl Store {
    fn new(count: u64, size: u32) -> Option<Store> {
        let pool = Pool::new(usize::try_from(count).ok()?, size as usize)?;
        let spare = pool.take(0);
        Some(Store { pool, spare })
    }
}

impl JobBuffer {
    /// Another holder of `len` bytes from byte `from` of this buffer on.
    pub(crate) fn share(&self, from: usize, len: usize) -> JobBuffer {
        JobBuffer { path: self.path, buffer: self.buffer.share(from, len) }
    }

    /// Sets how many bytes of it are in use.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.buffer.set_len(len);
    }

    /// The number of bytes in use.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no other holder.
    pub(crate) fn is_sole(&self) -> bool {
        self.buffer.is_sole()
    }
}

impl Source for JobBuffer {
    fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }
}

impl Landing for JobBuffer {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }
}

// SPARE covers the frames that a reader foresees, and a few that are written and not yet let go of.
const _: () = assert!(trib_transport::tcp::FORESEEN_MAX as u64 + 8 <= SPARE);
