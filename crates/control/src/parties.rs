//! The two sides of a handshake, and in words why one did not take the other's certificate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::{AlertDescription, CertificateError};

use crate::Error;
use crate::certificate::Certificate;
use crate::clock::unix_s;
use crate::holder::Holder;

/// What is known of both certificates.
pub(crate) struct Parties {
    own: Certificate,
    other: Other,
}

enum Other {
    /// The manager. Our own credentials lie in this folder.
    Manager(PathBuf),
    /// Who connects, once it has shown its certificate.
    Caller(Arc<OnceLock<Certificate>>),
}

impl Parties {
    /// Those of a side that connects to the manager.
    pub(crate) fn of_caller(own: Certificate, folder: &Path) -> Parties {
        Parties { own, other: Other::Manager(folder.into()) }
    }

    /// Those of the manager.
    pub(crate) fn of_manager(own: Certificate, shown: Arc<OnceLock<Certificate>>) -> Parties {
        Parties { own, other: Other::Caller(shown) }
    }

    /// Why one side does not take the other's certificate, if that is what this failure means.
    pub(crate) fn rejection(&self, name: &str, cause: &rustls::Error) -> Option<Error> {
        use AlertDescription as A;
        match cause {
            rustls::Error::InvalidCertificate(why) => Some(self.theirs(why).unwrap_or_else(|| wrong(name, cause))),
            rustls::Error::NoCertificatesPresented => Some(wrong(name, cause)),
            rustls::Error::AlertReceived(A::CertificateExpired) => Some(self.ours_ended(name)),
            rustls::Error::AlertReceived(A::CertificateRevoked) => Some(Error::Withdrawn {
                certificate: Box::new(self.own.clone()),
                remedy: format!("{name} does not take it any more; ask the operator of the fabric for a new one"),
            }),
            rustls::Error::AlertReceived(
                A::BadCertificate
                | A::UnsupportedCertificate
                | A::CertificateUnknown
                | A::UnknownCA
                | A::AccessDenied
                | A::CertificateRequired
                | A::DecryptError,
            ) => Some(Error::BadCertificate(format!("{name} rejects ours ({cause})"))),
            _ => None,
        }
    }

    /// What is wrong with a certificate of the other side that was in order once.
    fn theirs(&self, why: &CertificateError) -> Option<Error> {
        let shown = match &self.other {
            Other::Caller(shown) => shown.get()?.clone(),
            // The manager's end stands in the failure, and its number is of no use here.
            Other::Manager(_) => match why {
                CertificateError::ExpiredContext { not_after, .. } => {
                    Certificate { holder: Holder::Manager, ends: not_after.as_secs(), ..self.own.clone() }
                }
                _ => return None,
            },
        };
        let certificate = Box::new(shown);
        let option = certificate.holder.option();
        match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some(Error::Ended {
                remedy: format!("renew it with `trib credentials renew DIR {option}`, and copy it to its hosts"),
                certificate,
            }),
            CertificateError::Revoked => Some(Error::Withdrawn {
                remedy: format!(
                    "if its host is to be let in again, `trib credentials renew DIR {option}` makes a new one"
                ),
                certificate,
            }),
            _ => None,
        }
    }

    fn ours_ended(&self, name: &str) -> Error {
        let certificate = Box::new(self.own.clone());
        if certificate.seconds_left(unix_s()) > 0 {
            let remedy = format!("so says the clock of {name}, which is not ours; run an NTP client on both");
            return Error::Ended { certificate, remedy };
        }
        let option = certificate.holder.option();
        let renew = format!("renew it with `trib credentials renew DIR {option}`");
        let remedy = match &self.other {
            Other::Manager(folder) => format!("{renew}, and copy it to {}", folder.display()),
            Other::Caller(_) => renew,
        };
        Error::Ended { certificate, remedy }
    }
}

fn wrong(name: &str, cause: &rustls::Error) -> Error {
    Error::BadCertificate(format!("{name} showed a wrong one ({cause})"))
}
