//! Bytes that cannot be guessed.

use std::fs::File;
use std::io::{self, Read};

/// `N` bytes from the kernel.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
