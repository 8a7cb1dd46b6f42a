//! The fabric's authority: the key that signs every certificate of the fabric.
//!
//! It lies in a file of its own, which only the operator reads: no daemon and no program needs it,
//! and its possessor can become the manager. It is kept because nodes, tenants and new
//! certificates for those that end come later, and all of them are to be signed by the one
//! authority that every host trusts already.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use trib_messages::hello::Role;

use crate::certificate::Certificate;
use crate::clock::unix_s;
use crate::files::{first_certificate, is_open_to};
use crate::holder::Holder;
use crate::{Error, certificate};

/// An authority that can sign.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate that was just issued, with its key, both as PEM.
pub(crate) struct Issued {
    pub certificate: String,
    pub key: String,
    pub says: Certificate,
}

impl Authority {
    /// A new authority. Returns its certificate and its key, both as PEM, too.
    pub(crate) fn new() -> Result<(Authority, String, String), rcgen::Error> {
        let mut params = params();
        end_after(&mut params, AUTHORITY_VALIDITY);
        let key = KeyPair::generate()?;
        let (certificate, text) = (params.self_signed(&key)?.pem(), key.serialize_pem());
        Ok((Authority { issuer: Issuer::new(params, key) }, certificate, text))
    }

    /// The authority whose key is in this file, and whose certificate is the first in `roots`.
    pub(crate) fn open(key: &Path, roots: &Path) -> Result<Authority, Error> {
        let bad = |cause: String| Error::BadCredentials { path: key.into(), cause };
        let known = first_certificate(roots)?;
        let text = fs::read_to_string(key).map_err(|cause| Error::NoAuthorityKey { path: key.into(), cause })?;
        if is_open_to(key, 0o077) {
            return Err(Error::OpenKey { path: key.into(), remedy: "chmod 600" });
        }
        let pair = KeyPair::from_pem(&text).map_err(|cause| bad(cause.to_string()))?;
        let known = CertificateDer::from_pem_slice(known.as_bytes()).map_err(|cause| bad(cause.to_string()))?;
        if certificate::public_key(&known)? != pair.subject_public_key_info() {
            return Err(bad(format!("it is not the key of the first certificate in {}", roots.display())));
        }
        Ok(Authority { issuer: Issuer::new(params(), pair) })
    }

    /// Issues a certificate that ends after `validity`, and a new key for it.
    pub(crate) fn issue(&self, holder: &Holder, validity: Duration) -> Result<Issued, Error> {
        let signed = || -> Result<_, rcgen::Error> {
            let mut params = CertificateParams::new(holder.names())?;
            params.distinguished_name.push(DnType::CommonName, format!("Tributary {holder}"));
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![match holder.role() {
                Role::Manager => ExtendedKeyUsagePurpose::ServerAuth,
                Role::Node | Role::User => ExtendedKeyUsagePurpose::ClientAuth,
            }];
            end_after(&mut params, validity);
            let key = KeyPair::generate()?;
            Ok((params.signed_by(&key, &self.issuer)?, key))
        };
        let (certificate, key) = signed().map_err(|cause| Error::BadCertificate(cause.to_string()))?;
        let says = Certificate::read(certificate.der())?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem(), says })
    }
}

/// What an authority's certificate says but for its end. The name is the same in every fabric,
/// because a certificate names its authority, and `open` knows it by its key.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Tributary fabric authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// Lets a certificate end so long from now. It begins long ago all the same, which is the library's
/// default, because switches and DPUs boot with clocks that are behind.
fn end_after(params: &mut CertificateParams, validity: Duration) {
    params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(unix_s()) + validity;
}

/// Ten years: exchanging an authority means to touch every host.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(3650 * 86_400);
