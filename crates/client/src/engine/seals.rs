//! Seals of what a rank sends and gets, in a mode that seals payloads.

use trib_seal::{Opener, Sealer};
use trib_transport::landing::Source;
use trib_transport::udp::Datagram;
use trib_wire::Seal;

use super::operation::Outgoing;

/// The ends of one connection: what this rank seals, and what opens the node's datagrams. What
/// comes by stream is opened where it is read.
pub(crate) struct Seals {
    sealer: Sealer,
    opener: Opener,
    /// The datagram that is being sent, and the one that is being taken.
    sending: Vec<u8>,
    taking: Vec<u8>,
    /// Memory of frames that are written, to be used again.
    spares: Vec<Vec<u8>>,
}

impl Seals {
    pub(crate) fn new(sealer: Sealer, opener: Opener) -> Seals {
        Seals { sealer, opener, sending: Vec::new(), taking: Vec::new(), spares: Vec::new() }
    }

    /// Tells the time, by which keys change.
    pub(crate) fn tick(&mut self, now: u64) {
        self.sealer.tick(now);
    }

    /// Seals the payload of a frame of the stream. What is encrypted is not in the caller's memory,
    /// which nothing may write to.
    pub(crate) fn segment(&mut self, clear: Outgoing) -> (Seal, Outgoing) {
        if !self.sealer.encrypts() {
            return (self.sealer.sign(clear.bytes()), clear);
        }
        match clear {
            Outgoing::Copy(mut bytes) => (self.sealer.seal(&mut bytes), Outgoing::Copy(bytes)),
            Outgoing::User(source) => {
                let (clear, mut bytes) = (source.bytes(), self.spares.pop().unwrap_or_default());
                bytes.resize(clear.len(), 0);
                (self.sealer.seal_into(clear, &mut bytes), Outgoing::Copy(bytes))
            }
        }
    }

    /// Takes memory back of a frame that is written.
    pub(crate) fn take_back(&mut self, payload: Outgoing) {
        if let Outgoing::Copy(bytes) = payload
            && self.spares.len() < SPARES_MAX
        {
            self.spares.push(bytes);
        }
    }

    /// Seals the payload of a datagram.
    pub(crate) fn datagram<'a>(&'a mut self, payload: &'a [u8]) -> (Seal, &'a [u8]) {
        if !self.sealer.encrypts() {
            return (self.sealer.sign(payload), payload);
        }
        self.sending.resize(payload.len(), 0);
        (self.sealer.seal_into(payload, &mut self.sending), &self.sending)
    }

    /// The payload of a datagram whose header is right, if it is what the node has sealed.
    pub(crate) fn open<'a>(&'a mut self, datagram: &Datagram<'a>) -> Option<&'a [u8]> {
        let Some(seal) = datagram.seal() else { return datagram.payload.is_empty().then_some(datagram.payload) };
        if !self.opener.decrypts() {
            return self.opener.verify(&seal, datagram.payload).ok().map(|()| datagram.payload);
        }
        self.taking.clear();
        self.taking.extend_from_slice(datagram.payload);
        self.opener.open(&seal, &mut self.taking).ok()?;
        Some(&self.taking)
    }
}

/// How many buffers are kept.
const SPARES_MAX: usize = 64;
