//! What went wrong on the way to the other side, and whose fault it is.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use trib_wire::control::hello::Role;
use trib_wire::control::reply::Refusal;

/// A failure of the control channel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This side's configuration: nobody said where the manager is.
    #[error("no manager given: set TRIB_MANAGER=tls://HOST:PORT?credentials=DIR (`trib fabric up` prints it)")]
    NoManager,
    /// This side's configuration: the manager's address cannot be read.
    #[error("`{url}` is not a manager address: {cause}; expected tls://HOST:PORT?credentials=DIR")]
    BadUrl {
        /// The text.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The manager, or the network to it.
    #[error("cannot reach the manager at {address}: {cause}; is `trib am` running there?")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// Why not.
        cause: io::Error,
    },
    /// This side's configuration: a credentials file cannot be read.
    #[error(
        "no credentials of role {role} at {}: {cause}; copy the fabric's credentials folder here or name it with TRIB_CREDENTIALS",
        path.display()
    )]
    NoCredentials {
        /// The role wanted.
        role: Role,
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// This side's configuration: a credentials file holds something else.
    #[error("{} holds no usable credentials: {cause}; make a new folder with `trib credentials`", path.display())]
    BadCredentials {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// This side's disk: new credentials cannot be written.
    #[error("cannot write credentials to {}: {cause}", path.display())]
    CannotWrite {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// This side's caller: no name for a tenant.
    #[error(
        "`{0}` is no name for a tenant: write 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or a digit"
    )]
    BadTenant(String),
    /// One side's certificate was not accepted: another fabric's, or another role's.
    #[error("certificate not accepted: {0}; both sides need credentials of the same fabric, each of its own role")]
    BadCertificate(String),
    /// The two sides speak different versions.
    #[error(
        "protocol version mismatch: this side speaks {ours}, the other side {theirs} (software {software}); install the same release of Tributary on both"
    )]
    VersionMismatch {
        /// This side's version.
        ours: u8,
        /// The other side's version.
        theirs: u8,
        /// The other side's software version.
        software: String,
    },
    /// The other side refused, with its reason.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The other side did not answer in time.
    #[error("no answer from {address} within {} ms; it is stopped, overloaded or unreachable", waited.as_millis())]
    Timeout {
        /// Who.
        address: String,
        /// How long this side waited.
        waited: Duration,
    },
    /// The other side closed the channel.
    #[error("{address} closed the connection")]
    Closed {
        /// Who.
        address: String,
    },
    /// The other side broke the protocol.
    #[error("{address} sent something that is not a control message: {cause}")]
    Malformed {
        /// Who.
        address: String,
        /// What is wrong with it.
        cause: String,
    },
    /// This side's caller: a message is longer than any receiver takes.
    #[error("a message of {bytes} bytes is too long: at most {max} bytes travel at once", max = crate::MESSAGE_MAX)]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// This side's socket.
    #[error("cannot {what}: {cause}")]
    Socket {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
}
