//! Sealing what a logical node sends, in a mode that seals payloads.
//!
//! A result is sealed once, and one buffer serves all children over the network. What goes over
//! memory stays as it is.

use trib_keys::{PayloadKey, Session};
use trib_proto::Path;
use trib_seal::Sealer;
use trib_transport::landing::{Landing, Source};
use trib_wire::Mode;
use trib_wire::mode::Seal;

use super::{Buffers, JobBuffer};

/// The sealing ends of a logical node.
pub(crate) struct Sealing {
    mode: Mode,
    /// For all children.
    down: Sealer,
    /// For the parent, once the connection to it is open and not over memory.
    up: Option<Sealer>,
    /// The datagram that is being sent.
    scratch: Vec<u8>,
}

/// Where a payload goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Sealing {
    pub(crate) fn new(mode: Mode, results: PayloadKey) -> Sealing {
        Sealing { mode, down: Sealer::new(mode, results), up: None, scratch: Vec::new() }
    }

    /// The connection to the parent is open.
    pub(crate) fn open_up(&mut self, session: &Session) {
        self.up = Some(Sealer::new(self.mode, session.data_up.clone()));
    }

    /// Tells the time, by which keys change.
    pub(crate) fn tick(&mut self, now: u64) {
        self.down.tick(now);
        if let Some(up) = &mut self.up {
            up.tick(now);
        }
    }

    /// Seals `len` bytes of a buffer from byte `from` on for a stream. The answer holds what is
    /// sent: the same bytes where they are only signed, and others where they are encrypted.
    /// `None` if there is no buffer for these, which the grant rules out, or no connection.
    pub(crate) fn segment(
        &mut self,
        direction: Direction,
        buffers: &Buffers,
        buffer: &JobBuffer,
        (from, len): (usize, usize),
    ) -> Option<(Seal, JobBuffer)> {
        let sealer = self.sealer(direction)?;
        let clear = &buffer.bytes()[from..from + len];
        if !sealer.encrypts() {
            return Some((sealer.sign(clear), buffer.share(from, len)));
        }
        let mut sealed = buffers.take(Path::Stream, len)?;
        let seal = sealer.seal_into(clear, sealed.bytes_mut());
        Some((seal, sealed))
    }

    /// Seals the payload of a datagram. `None` without a connection.
    pub(crate) fn datagram<'a>(&'a mut self, direction: Direction, payload: &'a [u8]) -> Option<(Seal, &'a [u8])> {
        let Sealing { down, up, scratch, .. } = self;
        let sealer = match direction {
            Direction::Down => down,
            Direction::Up => up.as_mut()?,
        };
        if !sealer.encrypts() {
            return Some((sealer.sign(payload), payload));
        }
        scratch.resize(payload.len(), 0);
        let seal = sealer.seal_into(payload, scratch);
        Some((seal, scratch))
    }

    fn sealer(&mut self, direction: Direction) -> Option<&mut Sealer> {
        match direction {
            Direction::Down => Some(&mut self.down),
            Direction::Up => self.up.as_mut(),
        }
    }
}
