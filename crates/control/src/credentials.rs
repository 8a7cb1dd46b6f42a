//! The credentials of one side: its certificate and key, with the authorities that it trusts.
//!
//! A host needs `ca.pem` and the two files of its own role, nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore, ServerConfig};
use trib_messages::hello::Role;

use crate::Error;
use crate::certificate::Certificate;
use crate::doorman::Doorman;
use crate::files::{AUTHORITY, certificate_file, is_open_to, key_file};
use crate::holder::{NODES, is_node_name};

/// One side's certificate and key, with the authorities that it trusts.
pub struct Credentials {
    role: Role,
    folder: PathBuf,
    roots: Arc<RootCertStore>,
    key: Arc<SingleCertAndKey>,
    certificate: Certificate,
}

impl Credentials {
    /// Reads the credentials of `role` from `folder`.
    pub fn load(folder: &Path, role: Role) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            match Self::read(folder, role) {
                // They are being exchanged: the certificate is new and the key old, or the other
                // way round.
                Err(Unread::Mixed(_)) if tries < TRIES => thread::sleep(EXCHANGE),
                Err(Unread::Mixed(error) | Unread::Bad(error)) => return Err(error),
                Ok(credentials) => return Ok(credentials),
            }
            tries += 1;
        }
    }

    /// Reads those of the aggregation node `name`, which lie in `folder`, or in its folder there if
    /// that is the operator's.
    pub fn load_node(folder: &Path, name: &str) -> Result<Self, Error> {
        Self::load(&node_folder(folder, name), Role::Node)
    }

    /// What stands in the certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The folder in which they lie.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn read(folder: &Path, role: Role) -> Result<Self, Unread> {
        let bad = |path: &Path, cause: String| Error::BadCredentials { path: path.into(), cause };
        let authority = folder.join(AUTHORITY);
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&authority, role)? {
            roots.add(certificate).map_err(|cause| bad(&authority, cause.to_string()))?;
        }
        let path = certificate_file(folder, role);
        let chain = certificates(&path, role)?;
        let certificate = Certificate::read(&chain[0]).map_err(|cause| bad(&path, cause.to_string()))?;
        let path = key_file(folder, role);
        let text = fs::read(&path).map_err(|cause| Error::NoCredentials { role, path: path.clone(), cause })?;
        // A user's key may be anybody's on a cluster where everybody may start jobs.
        if role != Role::User && is_open_to(&path, 0o007) {
            return Err(Error::OpenKey { path, remedy: "chmod o=" }.into());
        }
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|cause| bad(&path, cause.to_string()))?;
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|cause| match cause {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                Unread::Mixed(bad(&path, "it is not the key of the certificate beside it".into()))
            }
            cause => Unread::Bad(bad(&path, cause.to_string())),
        })?;
        let (roots, key) = (Arc::new(roots), Arc::new(SingleCertAndKey::from(key)));
        Ok(Credentials { role, folder: folder.into(), roots, key, certificate })
    }

    /// The TLS configuration of the side that connects.
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>, Error> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|cause| self.unusable(&cause))?
            .with_root_certificates(self.roots.clone())
            .with_client_cert_resolver(self.key.clone());
        Ok(Arc::new(config))
    }

    /// What verifies the certificate of a side that connects.
    pub(crate) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider()).build();
        verifier.map_err(|cause| Error::BadCredentials { path: self.folder.join(AUTHORITY), cause: cause.to_string() })
    }

    /// The TLS configuration of the side that accepts connections. It asks for the other side's
    /// certificate.
    pub(crate) fn server_config(&self, doorman: Arc<Doorman>) -> Result<Arc<ServerConfig>, Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|cause| self.unusable(&cause))?
            .with_client_cert_verifier(doorman)
            .with_cert_resolver(self.key.clone());
        // A channel lives as long as its job, so no session is ever resumed.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn unusable(&self, cause: &rustls::Error) -> Error {
        Error::BadCredentials { path: certificate_file(&self.folder, self.role), cause: cause.to_string() }
    }
}

/// The folder in which the files of this aggregation node lie: `folder`, or its own there if that
/// is the operator's, in which no node's lie.
pub fn node_folder(folder: &Path, name: &str) -> PathBuf {
    let own = folder.join(NODES).join(name);
    let has_one = certificate_file(folder, Role::Node).exists();
    if is_node_name(name) && own.is_dir() && !has_one { own } else { folder.into() }
}

/// The files of a role in a credentials folder that change when its credentials are renewed.
pub(crate) fn files_of(folder: &Path, role: Role) -> [PathBuf; 3] {
    [folder.join(AUTHORITY), certificate_file(folder, role), key_file(folder, role)]
}

/// Why credentials were not read.
enum Unread {
    /// Certificate and key do not belong together.
    Mixed(Error),
    Bad(Error),
}

impl From<Error> for Unread {
    fn from(error: Error) -> Self {
        Unread::Bad(error)
    }
}

fn certificates(path: &Path, role: Role) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = fs::read(path).map_err(|cause| Error::NoCredentials { role, path: path.into(), cause })?;
    let bad = |cause: String| Error::BadCredentials { path: path.into(), cause };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(list) if list.is_empty() => Err(bad("there is no certificate in it".into())),
        Ok(list) => Ok(list),
        Err(cause) => Err(bad(cause.to_string())),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// How often files that do not belong together are read again, and after how long.
const TRIES: u32 = 5;
const EXCHANGE: Duration = Duration::from_millis(50);
