//! The primitive: keys, nonces, bytes.

use aegis::aegis128x2::{Aegis128X2, Aegis128X2Mac};
use trib_wire::ParseError;

type Tag = [u8; 16];

fn nonce(number: u64) -> [u8; 16] {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

pub(crate) fn sign(key: &[u8; 16], number: u64, payload: &[u8]) -> Tag {
    let mut mac = Aegis128X2Mac::<16>::new_with_nonce(key, &nonce(number));
    mac.update(payload);
    mac.finalize()
}

/// Compares in constant time.
pub(crate) fn verify(key: &[u8; 16], number: u64, payload: &[u8], tag: &Tag) -> Result<(), ParseError> {
    let mut mac = Aegis128X2Mac::<16>::new_with_nonce(key, &nonce(number));
    mac.update(payload);
    mac.verify(tag).map_err(|_| ParseError::BadTag)
}

pub(crate) fn encrypt(key: &[u8; 16], number: u64, payload: &mut [u8]) -> Tag {
    Aegis128X2::<16>::new(key, &nonce(number)).encrypt_in_place(payload, &[])
}

pub(crate) fn encrypt_into(key: &[u8; 16], number: u64, payload: &[u8], sealed: &mut [u8]) -> Tag {
    let mut encryptor = Aegis128X2::<16>::new(key, &nonce(number)).encryptor(&[]);
    encryptor.update(payload, sealed);
    encryptor.finalize()
}

pub(crate) fn decrypt(key: &[u8; 16], number: u64, payload: &mut [u8], tag: &Tag) -> Result<(), ParseError> {
    Aegis128X2::<16>::new(key, &nonce(number)).decrypt_in_place(payload, tag, &[]).map_err(|_| ParseError::BadTag)
}
