//! The memory of one job, and the names by which the core knows it.

use trib_proto::{Path, Token};
use trib_transport::landing::Landing;
use trib_transport::pool::{Pool, PoolBuffer};
use trib_wire::control::job::NodeGrant;
use trib_wire::control::memory::{Reservation, SPARE};

/// All buffers of one logical node.
pub(crate) struct Buffers {
    datagrams: Pool,
    segments: Pool,
    /// One buffer of each, so that a merge, which needs a buffer before it frees some, never fails.
    spare: [Option<PoolBuffer>; 2],
    held: Vec<Option<PoolBuffer>>,
    free: Vec<u32>,
}

/// Bytes that a grant reserves, at most.
pub(crate) fn memory_for(grant: &NodeGrant) -> u64 {
    reservation(grant).bytes(&grant.limits)
}

fn reservation(grant: &NodeGrant) -> Reservation {
    Reservation::of(&grant.limits, grant.children.len() as u64)
}

impl Buffers {
    /// Reserves what the grant needs; `None` when there is no such amount of memory.
    pub(crate) fn for_grant(grant: &NodeGrant) -> Option<Buffers> {
        let Reservation { datagrams, segments } = reservation(grant);
        let datagrams = Pool::new(usize::try_from(datagrams).ok()?, grant.limits.payload as usize)?;
        let segments = Pool::new(usize::try_from(segments).ok()?, grant.limits.segment as usize)?;
        let spare = [datagrams.take(0), segments.take(0)];
        Some(Buffers { datagrams, segments, spare, held: Vec::new(), free: Vec::new() })
    }

    /// Memory for a payload that comes in; `None` when the grant is used up or does not know such lengths.
    pub(crate) fn take(&self, path: Path, len: usize) -> Option<PoolBuffer> {
        match path {
            Path::Datagram => self.datagrams.take(len),
            Path::Stream => self.segments.take(len),
        }
    }

    /// Memory of the same kind as a buffer of `size` bytes: `len` zeros.
    pub(crate) fn zeros(&mut self, size: usize, len: usize) -> PoolBuffer {
        let kind = usize::from(size == self.segments.size());
        let mut buffer = [&self.datagrams, &self.segments][kind]
            .take(len)
            .or_else(|| self.spare[kind].take())
            .expect("the grant covers what the core holds, and the spare buffer comes back with every fold");
        buffer.set_len(len);
        buffer.bytes_mut().fill(0);
        buffer
    }

    /// Puts the spare buffers back, once some have been let go of.
    pub(crate) fn refill(&mut self) {
        for (spare, pool) in self.spare.iter_mut().zip([&self.datagrams, &self.segments]) {
            if spare.is_none() {
                *spare = pool.take(0);
            }
        }
    }

    /// Gives a buffer a name.
    pub(crate) fn insert(&mut self, buffer: PoolBuffer) -> Token {
        match self.free.pop() {
            Some(index) => {
                self.held[index as usize] = Some(buffer);
                Token(index)
            }
            None => {
                self.held.push(Some(buffer));
                Token(self.held.len() as u32 - 1)
            }
        }
    }

    /// The buffer of this name.
    ///
    /// # Panics
    /// If the core uses a token that is not its own: an error in this program, not in what came in.
    pub(crate) fn get(&self, token: Token) -> &PoolBuffer {
        self.held[token.0 as usize].as_ref().expect("a token of the core's")
    }

    /// Takes the buffer back from the core.
    pub(crate) fn remove(&mut self, token: Token) -> PoolBuffer {
        let buffer = self.held[token.0 as usize].take().expect("a token of the core's");
        self.free.push(token.0);
        buffer
    }

    /// Tokens that the core holds.
    pub(crate) fn tokens(&self) -> usize {
        self.held.len() - self.free.len()
    }
}

// What a reader holds for frames it foresees, and a few that are written and not yet let go of.
const _: () = assert!(trib_transport::tcp::FORESEEN_MAX as u64 + 8 <= SPARE);
