//! Who is let in at the manager: holders of certificates that are verified and not withdrawn.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::certificate::Certificate;
use crate::withdrawn::Withdrawn;

/// Verifies the certificate of one connection, and remembers what stands in it, so that a refusal
/// can say whose it was.
#[derive(Debug)]
pub(crate) struct Doorman {
    verifier: Arc<dyn ClientCertVerifier>,
    withdrawn: Arc<Withdrawn>,
    shown: Arc<OnceLock<Certificate>>,
}

impl Doorman {
    /// One for a connection. What its other side shows is told in `shown`, verified or not.
    pub(crate) fn new(
        verifier: Arc<dyn ClientCertVerifier>,
        withdrawn: Arc<Withdrawn>,
        shown: Arc<OnceLock<Certificate>>,
    ) -> Doorman {
        Doorman { verifier, withdrawn, shown }
    }
}

impl ClientCertVerifier for Doorman {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let says = Certificate::read(shown).ok();
        if let Some(says) = &says {
            // A connection shows one certificate, once.
            let _ = self.shown.set(says.clone());
        }
        let verified = self.verifier.verify_client_cert(shown, between, now)?;
        match says {
            Some(says) if self.withdrawn.has(&says.serial) => Err(CertificateError::Revoked.into()),
            _ => Ok(verified),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, shown, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
