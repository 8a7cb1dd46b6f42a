//! The first messages of both sides: which version each speaks, and in which role.

use trib_messages::Message;
use trib_messages::hello::{Hello, Role};
use trib_messages::reply::{Refusal, Reply, Resource};

use crate::certificate::Certificate;
use crate::secure::{Limit, Secure};
use crate::{Error, frame};

/// This build's version, as it stands in `Hello`.
pub fn software_version() -> &'static str {
    concat!("tributary ", env!("CARGO_PKG_VERSION"))
}

/// The hello of this build.
pub(crate) fn ours(role: Role) -> Hello {
    Hello { version: trib_wire::VERSION, software: software_version().into(), role }
}

/// The connecting side: reads the manager's hello, then introduces itself.
pub(crate) fn introduce(secure: &Secure, name: &str, hello: &Hello, limit: Limit) -> Result<Hello, Error> {
    secure.handshake(limit)?;
    let theirs = hear(secure, name, limit)?;
    secure.send(&frame::encode(hello)?, limit)?;
    agree(hello, theirs)
}

/// The accepting side: it sends first, but only after it has accepted the other side's certificate.
pub(crate) fn welcome(secure: &Secure, name: &str, hello: &Hello, limit: Limit) -> Result<Hello, Error> {
    secure.handshake(limit)?;
    let role = certificate(secure)?.holder.role();
    secure.send(&frame::encode(hello)?, limit)?;
    let theirs = agree(hello, hear(secure, name, limit)?)?;
    if theirs.role == role {
        return Ok(theirs);
    }
    let refusal = wrong_role(role, theirs.role);
    // `Refused` reads the same in both conversations, so a node understands it as well as a user.
    secure.send(&frame::encode(&Reply::Refused(refusal.clone()))?, limit)?;
    Err(Error::Refused(refusal))
}

/// What stands in the other side's certificate. It is known, and verified, after the handshake.
pub(crate) fn certificate(secure: &Secure) -> Result<Certificate, Error> {
    let tls = secure.tls();
    match tls.peer_certificates() {
        Some([certificate, ..]) => Certificate::read(certificate),
        _ => Err(Error::BadCertificate("the other side showed none".into())),
    }
}

fn hear(secure: &Secure, name: &str, limit: Limit) -> Result<Hello, Error> {
    Hello::read(&secure.recv(Some(limit))?).map_err(|cause| Error::Malformed { address: name.into(), cause })
}

fn agree(ours: &Hello, theirs: Hello) -> Result<Hello, Error> {
    if theirs.version == ours.version {
        return Ok(theirs);
    }
    Err(Error::VersionMismatch { ours: ours.version, theirs: theirs.version, software: theirs.software })
}

fn wrong_role(certified: Role, claimed: Role) -> Refusal {
    Refusal {
        resource: Resource::Role,
        asked: 1,
        available: 0,
        holder: Some(certified.word().into()),
        since_ms: None,
        text: format!("a {certified} certificate cannot speak as {claimed}: use the fabric's {claimed} credentials"),
    }
}
