//! The part of a daemon's command that serves its metrics.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use trib_control::clock::unix_s;
use trib_control::{Certificate, Credentials};
use trib_messages::hello::Role;
use trib_service::metrics::{About, Exporter, ExporterError};

use crate::failure::Failure;

/// The exporter of a daemon, if it is to have one. It is bound before the daemon starts, so that a
/// wrong address is an error of the start.
pub(super) fn exporter(address: Option<SocketAddr>) -> Result<Option<Exporter>, Failure> {
    address.map(Exporter::bind).transpose().map_err(|error: ExporterError| Failure::environment(error))
}

/// What a daemon says about itself, in page after page.
pub(super) struct Itself {
    began: SystemTime,
    folder: PathBuf,
    role: Role,
    /// The certificate that could be used last. One beside a key that the daemon may not read ends
    /// when it ends, but the daemon goes on with the one from before.
    certificate: RefCell<Option<Certificate>>,
}

impl Itself {
    /// Of a daemon that begins now, with credentials in this folder.
    pub(super) fn new(folder: PathBuf, role: Role) -> Itself {
        let itself = Itself { began: SystemTime::now(), folder, role, certificate: RefCell::default() };
        itself.about();
        itself
    }

    /// What it says now.
    pub(super) fn about(&self) -> About {
        let mut certificate = self.certificate.borrow_mut();
        if let Ok(credentials) = Credentials::load(&self.folder, self.role) {
            *certificate = Some(credentials.certificate().clone());
        }
        About {
            began: self.began,
            certificate_seconds: certificate.as_ref().map(|certificate| certificate.seconds_left(unix_s())),
        }
    }
}

/// Serves metrics from now on, and tells the supervisor the address.
pub(super) fn serve(exporter: Option<Exporter>, page: impl Fn() -> Option<String> + Send + 'static) -> io::Result<()> {
    let Some(exporter) = exporter else { return Ok(()) };
    let address = exporter.address();
    exporter.serve(page)?;
    trib_control::notify::metrics(address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trib_control::{KeyFolder, VALIDITY};

    #[test]
    fn a_certificate_whose_key_cannot_be_used_does_not_count() {
        let folder = std::env::temp_dir().join(format!("trib-itself-{}", std::process::id()));
        let keys = KeyFolder::at(&folder);
        keys.create(VALIDITY).unwrap();
        let itself = Itself::new(folder.clone(), Role::Manager);
        let left = || itself.about().certificate_seconds.unwrap();
        let year = VALIDITY.as_secs() as i64;
        assert!(left() <= year);

        keys.renew(&trib_control::Holder::Manager, VALIDITY * 2).unwrap();
        let key = folder.join("manager.key");
        let whole = std::fs::read(&key).unwrap();
        std::fs::write(&key, "no key").unwrap();
        assert!(left() <= year, "the manager goes on with the certificate from before");
        std::fs::write(&key, whole).unwrap();
        assert!(left() > year);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
