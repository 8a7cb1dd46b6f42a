//! The handshake that opens a stream connection: both ends prove that they hold the key of the
//! edge, over fresh nonces and everything that was said. With its proof the node hands over the key
//! of the datagrams that it sends down.
//!
//! `child` is the calling end (blocking, with a deadline; ranks and nodes alike use it), `caller`
//! the answering end (non-blocking, many at once). The messages stand in `trib_wire::hello`.

mod caller;
mod child;

pub use caller::{Admission, Admitted, Caller, Denied, Progress};
pub use child::{Connected, Identity, connect, connect_from, connect_once};

use std::io;
use std::time::Duration;

use hkdf::hmac::{Hmac, Mac as _};
use sha2::Sha256;
use trib_keys::HelloKey;
use trib_wire::hello::{Challenge, Hello, Mac, Nonce, Status};
use trib_wire::{ParseError, Placement};

use crate::ucx::{Stub, UcxWorker};

/// The answering end gives up a handshake that takes longer.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection was not opened.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection was not made, or it broke.
    #[error("cannot reach the far end: {0}")]
    Io(#[from] io::Error),
    /// The far end said nothing for too long.
    #[error("the far end did not finish the handshake in time")]
    TimedOut,
    /// The far end hung up.
    #[error("the far end closed the connection during the handshake")]
    Closed,
    /// The far end speaks another protocol.
    #[error("the far end does not speak Tributary's handshake: {0}")]
    Malformed(ParseError),
    /// The two ends are of different releases.
    #[error(
        "protocol version mismatch: this side speaks version {ours}, the far end version {theirs}; install the same release on both"
    )]
    Version {
        /// Our release's version.
        ours: u8,
        /// The far end's version.
        theirs: u8,
    },
    /// The node said no.
    #[error("the node refused the connection: {0}")]
    Refused(Status),
    /// The node is in another process, as the far end has proven.
    #[error("the node of the job's tree is in another process now")]
    Moved(Placement),
    /// The far end could not prove that it holds the key of the edge.
    #[error("the far end does not hold the key of this edge of the job")]
    BadKey,
}

impl HandshakeError {
    /// Whether a later attempt may succeed: the node may just not have heard of the job yet.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            HandshakeError::Io(_)
                | HandshakeError::Closed
                | HandshakeError::Refused(Status::UnknownJob | Status::UnknownNode | Status::Busy)
        )
    }
}

/// The two ends of the conversation. The proof of one is not valid for the other.
#[derive(Clone, Copy)]
enum End {
    Child,
    Node,
}

/// What a proof covers: all that was said, and what follows it.
#[derive(Clone, Copy)]
struct Said<'a> {
    hello: &'a Hello,
    challenge: &'a Challenge,
    /// What follows the proof: after the child's its offer, if the edge goes by UCX; after the
    /// node's the sealed key, and its offer, or the placement that it may send instead of opening
    /// the connection.
    tail: &'a [u8],
}

fn proof(key: &HelloKey, end: End, said: Said<'_>) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("any key length will do");
    mac.update(match end {
        End::Child => b"child",
        End::Node => b"node ",
    });
    mac.update(&said.hello.to_bytes());
    mac.update(&said.challenge.to_bytes());
    mac.update(said.tail);
    mac
}

fn prove(key: &HelloKey, end: End, said: Said<'_>) -> Mac {
    proof(key, end, said).finalize().into_bytes().into()
}

/// Compares the proof in constant time.
fn is_proven(key: &HelloKey, end: End, said: Said<'_>, mac: &Mac) -> bool {
    proof(key, end, said).verify_slice(mac).is_ok()
}

/// Fresh random bytes.
pub fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    // SAFETY: the pointer and the length are those of `nonce`.
    let got = unsafe { libc::getrandom(nonce.as_mut_ptr().cast(), nonce.len(), 0) };
    match usize::try_from(got) {
        Ok(got) if got == nonce.len() => Ok(nonce),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A stub for an edge over UCX, with a name that nobody can guess.
fn stub_at(worker: &UcxWorker) -> io::Result<Stub> {
    Stub::at(worker, u128::from_ne_bytes(nonce()?) as u64)
}

fn parse_error(error: ParseError) -> HandshakeError {
    match error {
        ParseError::BadVersion(theirs) => HandshakeError::Version { ours: trib_wire::VERSION, theirs },
        other => HandshakeError::Malformed(other),
    }
}
