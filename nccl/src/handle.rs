//! What NCCL carries from a listener to those who want to reach it: a handle of up to 128 bytes.
//!
//! ```text
//!   0        8                24             26     27      28                  44
//!   | magic  | secret         | port  (BE)   | kind | zero  | address           |
//! ```
//! A listener of the socket transport says where it is, and who connects repeats the secret. A
//! listener of CollNet has no address: under its secret ranks meet at the manager.

use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr};

use crate::failure::{Code, Failure};

/// 128 bits that nobody guesses.
pub type Secret = [u8; 16];

/// The bytes at the start of every handle and of every connection.
pub const MAGIC: [u8; 8] = *b"tribnet1";
/// The bytes of a handle that are used; NCCL has at least 64.
pub const HANDLE_BYTES: usize = 44;

/// A listener, as others know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    pub secret: Secret,
    /// Where the listener is, if it has an address.
    pub address: Option<SocketAddr>,
}

impl Handle {
    pub fn bytes(&self) -> [u8; HANDLE_BYTES] {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.secret);
        match self.address {
            None => {}
            Some(address) => {
                bytes[24..26].copy_from_slice(&address.port().to_be_bytes());
                match address.ip() {
                    IpAddr::V4(ip) => {
                        bytes[26] = 4;
                        bytes[28..32].copy_from_slice(&ip.octets());
                    }
                    IpAddr::V6(ip) => {
                        bytes[26] = 6;
                        bytes[28..44].copy_from_slice(&ip.octets());
                    }
                }
            }
        }
        bytes
    }

    pub fn read(bytes: &[u8; HANDLE_BYTES]) -> Result<Handle, Failure> {
        let part = |from: usize| <[u8; 16]>::try_from(&bytes[from..from + 16]).expect("a handle has 44 bytes");
        let port = u16::from_be_bytes([bytes[24], bytes[25]]);
        let address = match bytes[26] {
            0 => None,
            4 => Some(IpAddr::from([bytes[28], bytes[29], bytes[30], bytes[31]])),
            6 => Some(IpAddr::from(part(28))),
            _ => return Err(not_ours()),
        };
        if bytes[..8] != MAGIC || bytes[27] != 0 {
            return Err(not_ours());
        }
        Ok(Handle { secret: part(8), address: address.map(|ip| SocketAddr::new(ip, port)) })
    }

    /// Writes it where NCCL wants it.
    ///
    /// # Safety
    /// The pointer is null or has room for a handle.
    pub unsafe fn give(&self, pointer: *mut c_void) -> Result<(), Failure> {
        // SAFETY: the caller's contract; no alignment is needed for bytes.
        unsafe { crate::boundary::give(pointer.cast::<[u8; HANDLE_BYTES]>(), "handle", self.bytes()) }
    }

    /// Reads one that NCCL brings.
    ///
    /// # Safety
    /// The pointer is null or points to a handle.
    pub unsafe fn given(pointer: *const c_void) -> Result<Handle, Failure> {
        // SAFETY: the caller's contract; no alignment is needed for bytes.
        Handle::read(unsafe { trib_client::boundary::given(pointer.cast(), "handle") }?)
    }
}

/// A new secret.
pub fn secret() -> Result<Secret, Failure> {
    let mut secret = Secret::default();
    let mut filled = 0;
    while filled < secret.len() {
        filled += rustix::rand::getrandom(&mut secret[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Failure::system("no random numbers", &error.into()))?;
    }
    Ok(secret)
}

fn not_ours() -> Failure {
    let text = "the handle of the other end is not of this plugin: all ranks have to use the same network plugin";
    Failure::new(Code::Usage, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_was() {
        let secret = secret().unwrap();
        for address in [None, Some("10.1.2.3:4567".parse().unwrap()), Some("[2001:db8::7]:80".parse().unwrap())] {
            let handle = Handle { secret, address };
            assert_eq!(Handle::read(&handle.bytes()), Ok(handle));
        }
        assert_ne!(secret, self::secret().unwrap());
    }

    #[test]
    fn garbage_is_refused() {
        let good = Handle { secret: [7; 16], address: Some("1.2.3.4:5".parse().unwrap()) }.bytes();
        for at in [0, 7, 26, 27] {
            let mut bytes = good;
            bytes[at] ^= 0x5a;
            assert_eq!(Handle::read(&bytes).unwrap_err().code, Code::Usage, "byte {at}");
        }
        assert!(Handle::read(&[0; HANDLE_BYTES]).is_err() && Handle::read(&[0xff; HANDLE_BYTES]).is_err());
    }
}
