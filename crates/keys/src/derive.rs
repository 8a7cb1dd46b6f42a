//! One key from another.

use hkdf::Hkdf;
use sha2::Sha256;

/// HKDF-SHA256 without salt. `what` says for what the key is, so that each purpose and each end
/// has one of its own.
pub(crate) fn derive<const N: usize>(from: &[u8], label: &str, what: &[&[u8]]) -> [u8; N] {
    let mut info: [&[u8]; 8] = [&[]; 8];
    info[0] = label.as_bytes();
    info[1] = &[0];
    info[2..2 + what.len()].copy_from_slice(what);
    let mut key = [0; N];
    let derived = Hkdf::<Sha256>::new(None, from).expand_multi_info(&info, &mut key);
    derived.expect("fewer bytes than HKDF-SHA256 can give");
    key
}
