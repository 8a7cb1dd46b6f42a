//! Seals of payloads: signed, or encrypted (`docs/protocol.md#3.4`).
//!
//! A [`Sealer`] has a key that nobody else seals with, and numbers its seals. An [`Opener`] has the
//! same key, and takes the number from the seal; that the seal belongs to its frame is for the tag
//! of the header to say.
//!
//! ```text
//!  number  0 ........ 2^20 ........ 2 x 2^20 ....      a seal's number is its nonce
//!  phase       0            1             2            each phase has a key of its own
//! ```
//! A sealer goes on to the next phase when one is used up, or has lasted for long: then it leaves
//! out the numbers that are left. So both ends know the phase from the number, and no seal is lost
//! or refused where one follows another.
//!
//! The primitive is AEGIS-128X2, for both modes. Its library uses the processor's AES, and a
//! portable form of its own where there is none. Nothing outside this crate knows it.
#![forbid(unsafe_code)]

mod cipher;
mod phases;

use trib_keys::PayloadKey;
use trib_wire::mode::Seal;
use trib_wire::{Mode, ParseError};

use phases::Phases;

/// The end that seals.
pub struct Sealer {
    mode: Mode,
    phases: Phases,
    /// The number of the next seal.
    next: u64,
    /// When the phase has lasted long enough, in nanoseconds of the caller's clock.
    due: Option<u64>,
}

/// The end that opens.
pub struct Opener {
    mode: Mode,
    phases: Phases,
}

impl Sealer {
    /// A sealer that begins with number 0, so that nobody may ever have sealed with the key.
    pub fn new(mode: Mode, key: PayloadKey) -> Sealer {
        Sealer { mode, phases: Phases::new(key), next: 0, due: None }
    }

    /// Whether sealing changes the payload.
    pub fn encrypts(&self) -> bool {
        self.mode == Mode::Encrypted
    }

    /// The seal of a payload that stays as it is.
    ///
    /// # Panics
    /// If the mode is one that encrypts.
    pub fn sign(&mut self, payload: &[u8]) -> Seal {
        assert!(!self.encrypts(), "a payload that is to be encrypted is not sent as it is");
        let (number, key) = self.take();
        Seal { number, tag: cipher::sign(&key, number, payload) }
    }

    /// Seals a payload in its place.
    pub fn seal(&mut self, payload: &mut [u8]) -> Seal {
        if !self.encrypts() {
            return self.sign(payload);
        }
        let (number, key) = self.take();
        Seal { number, tag: cipher::encrypt(&key, number, payload) }
    }

    /// Seals a payload and writes it to `sealed`, which is as long.
    pub fn seal_into(&mut self, payload: &[u8], sealed: &mut [u8]) -> Seal {
        if !self.encrypts() {
            sealed.copy_from_slice(payload);
            return self.sign(payload);
        }
        let (number, key) = self.take();
        Seal { number, tag: cipher::encrypt_into(&key, number, payload, sealed) }
    }

    /// Tells the time, in nanoseconds of any clock: a phase that has lasted for long ends.
    pub fn tick(&mut self, now: u64) {
        match self.due {
            Some(due) if now < due => {}
            Some(_) if !phases::is_first(self.next) => {
                self.next = phases::after(self.next);
                self.due = Some(now.saturating_add(PHASE_NANOS));
            }
            _ => self.due = Some(now.saturating_add(PHASE_NANOS)),
        }
    }

    fn take(&mut self) -> (u64, [u8; 16]) {
        let number = self.next;
        self.next += 1;
        (number, self.phases.key_of(number))
    }
}

impl Opener {
    /// The end that opens what a [`Sealer`] with the same mode and key has sealed.
    pub fn new(mode: Mode, key: PayloadKey) -> Opener {
        Opener { mode, phases: Phases::new(key) }
    }

    /// Whether opening changes the payload.
    pub fn decrypts(&self) -> bool {
        self.mode == Mode::Encrypted
    }

    /// Checks a payload that stays as it is.
    ///
    /// # Errors
    /// [`ParseError::BadTag`] if it is not the one that was sealed.
    ///
    /// # Panics
    /// If the mode is one that encrypts.
    pub fn verify(&mut self, seal: &Seal, payload: &[u8]) -> Result<(), ParseError> {
        assert!(!self.decrypts(), "what is encrypted is not read as it is");
        let key = self.phases.key_of(seal.number);
        cipher::verify(&key, seal.number, payload, &seal.tag)
    }

    /// Checks a payload, and decrypts it in its place.
    ///
    /// # Errors
    /// [`ParseError::BadTag`] if it is not the one that was sealed. What it holds then may be
    /// anything.
    pub fn open(&mut self, seal: &Seal, payload: &mut [u8]) -> Result<(), ParseError> {
        if !self.decrypts() {
            return self.verify(seal, payload);
        }
        let key = self.phases.key_of(seal.number);
        cipher::decrypt(&key, seal.number, payload, &seal.tag)
    }
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sealer").field("mode", &self.mode).field("next", &self.next).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for Opener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Opener").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// How many seals one phase has.
pub const PHASE_SEALS: u64 = 1 << 20;
/// How long a phase lasts in which anything is sealed, in nanoseconds: ten minutes.
pub const PHASE_NANOS: u64 = 600 * 1_000_000_000;

#[cfg(test)]
mod tests;
