//! How the key of results comes to a child: in the handshake, under a pad that is used once.
//!
//! The pad has the key's length and follows, by HKDF, from the handshake's key and both nonces.
//! Both ends draw theirs anew for each handshake, so no pad is used twice, and without the
//! handshake's key it cannot be told from random bytes. The MAC of the message covers what is
//! sealed.

use trib_wire::auth::FrameKey;
use trib_wire::hello::{Challenge, Hello, SEALED_LEN};

use crate::derive::derive;
use crate::derived::HelloKey;

/// A key as it travels.
pub type Sealed = [u8; SEALED_LEN];

impl HelloKey {
    /// Seals a key for the handshake in which these two were said.
    pub fn seal(&self, hello: &Hello, challenge: &Challenge, key: &FrameKey) -> Sealed {
        let pad: Sealed = derive(&self.0, "tributary v1 seal", &[&hello.nonce, &challenge.nonce]);
        core::array::from_fn(|at| pad[at] ^ key.0[at])
    }

    /// The key that was sealed.
    pub fn open(&self, hello: &Hello, challenge: &Challenge, sealed: &Sealed) -> FrameKey {
        FrameKey(self.seal(hello, challenge, &FrameKey(*sealed)))
    }
}
