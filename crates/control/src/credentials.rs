//! The fabric's credentials: one authority, one certificate per role.
//!
//! ```text
//!   DIR/ca.pem        the authority's certificate; its key is never written, so that no
//!                     certificate can be added later: a new authority is a new folder
//!   DIR/ROLE.pem      certificate for ROLE.tributary, ROLE one of manager, node, user
//!   DIR/ROLE.key      its private key, readable by its owner only
//!   DIR/users/        ca.pem, user.pem and user.key once more: what a cluster gives to its users
//! ```
//! A host needs `ca.pem` and the two files of its own role, nothing else. `users` is the folder
//! with these files for the role that people have.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use trib_messages::hello::Role;

use crate::Error;

/// One role's certificate and key, with the authority that it trusts.
pub struct Credentials {
    role: Role,
    folder: PathBuf,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Credentials {
    /// Makes a new authority with one certificate per role in `folder`, which is made if missing,
    /// and the folder for users.
    ///
    /// Existing files are an error and are not replaced: a running fabric may depend on them.
    pub fn create(folder: &Path) -> Result<(), Error> {
        let files = Role::ALL.into_iter().flat_map(|role| [certificate_file(folder, role), key_file(folder, role)]);
        if files.chain([folder.join(AUTHORITY)]).any(|file| file.exists()) {
            return Err(Error::Exists { folder: folder.into() });
        }
        let cannot = |cause: rcgen::Error| Error::BadCredentials { path: folder.into(), cause: cause.to_string() };
        fs::create_dir_all(folder).map_err(|cause| Error::CannotWrite { path: folder.into(), cause })?;
        let authority = authority("Tributary fabric authority").map_err(cannot)?;
        write_new(&folder.join(AUTHORITY), &authority.as_ref().pem(), 0o644)?;
        for role in Role::ALL {
            let (certificate, key) = issue(&authority, role, vec![role_text(role)]).map_err(cannot)?;
            write_new(&certificate_file(folder, role), &certificate, 0o644)?;
            write_new(&key_file(folder, role), &key, 0o600)?;
        }
        Self::make_users_folder(folder)?;
        Ok(())
    }

    /// Makes the folder for users below `folder`, which holds the fabric's credentials, and returns
    /// its path. A folder that exists is left as it is.
    ///
    /// The folder holds what a user needs and nothing else, so that it can be given away as a
    /// whole: no key of a daemon is in it.
    pub fn make_users_folder(folder: &Path) -> Result<PathBuf, Error> {
        let users = folder.join(USERS);
        let read = |path: PathBuf| {
            fs::read_to_string(&path).map_err(|cause| Error::NoCredentials { role: Role::User, path, cause })
        };
        let authority = first_certificate(&folder.join(AUTHORITY))?;
        let (certificate, key) = (read(certificate_file(folder, Role::User))?, read(key_file(folder, Role::User))?);
        match DirBuilder::new().mode(0o755).create(&users) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(users),
            made => made.map_err(|cause| Error::CannotWrite { path: users.clone(), cause })?,
        }
        write_new(&users.join(AUTHORITY), &authority, 0o644)?;
        write_new(&certificate_file(&users, Role::User), &certificate, 0o644)?;
        write_new(&key_file(&users, Role::User), &key, 0o600)?;
        Ok(users)
    }

    /// Lets the members of a group use the user's credentials in `folder`, and nobody else but the
    /// owner.
    pub fn give_to_group(folder: &Path, group: u32) -> Result<(), Error> {
        let give = |path: PathBuf, mode: u32| {
            let given = std::os::unix::fs::chown(&path, None, Some(group))
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
            given.map_err(|cause| Error::CannotWrite { path, cause })
        };
        // The folder is opened last, so nobody can reach a file before its own rights are set.
        give(key_file(folder, Role::User), 0o640)?;
        give(certificate_file(folder, Role::User), 0o644)?;
        give(folder.join(AUTHORITY), 0o644)?;
        give(folder.to_owned(), 0o750)
    }

    /// Reads the credentials of `role` from `folder`.
    pub fn load(folder: &Path, role: Role) -> Result<Self, Error> {
        let read =
            |path: &Path| fs::read(path).map_err(|cause| Error::NoCredentials { role, path: path.into(), cause });
        let bad = |path: &Path, cause: String| Error::BadCredentials { path: path.into(), cause };
        let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, Error> {
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
            match found {
                Ok(list) if list.is_empty() => Err(bad(path, "there is no certificate in it".into())),
                Ok(list) => Ok(list),
                Err(cause) => Err(bad(path, cause.to_string())),
            }
        };
        let authority = folder.join(AUTHORITY);
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&authority)? {
            roots.add(certificate).map_err(|cause| bad(&authority, cause.to_string()))?;
        }
        let chain = certificates(&certificate_file(folder, role))?;
        let path = key_file(folder, role);
        let key = PrivateKeyDer::from_pem_slice(&read(&path)?).map_err(|cause| bad(&path, cause.to_string()))?;
        Ok(Credentials { role, folder: folder.into(), roots: Arc::new(roots), chain, key })
    }

    /// The role to which these credentials belong.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The TLS configuration of the side that connects.
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>, Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder
                    .with_root_certificates(self.roots.clone())
                    .with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            })
            .map_err(|cause| self.unusable(cause))?;
        Ok(Arc::new(config))
    }

    /// The TLS configuration of the side that accepts connections. It asks for the other side's
    /// certificate.
    pub(crate) fn server_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider.clone())
            .build()
            .map_err(|cause| Error::BadCredentials { path: self.folder.join(AUTHORITY), cause: cause.to_string() })?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder.with_client_cert_verifier(verifier).with_single_cert(self.chain.clone(), self.key.clone_key())
            })
            .map_err(|cause| self.unusable(cause))?;
        // A channel lives as long as its job, so no session is ever resumed.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn unusable(&self, cause: rustls::Error) -> Error {
        Error::BadCredentials { path: certificate_file(&self.folder, self.role), cause: cause.to_string() }
    }
}

/// The certificate of the fabric's own authority, which is the first in the file of trusted ones.
pub(crate) fn first_certificate(roots: &Path) -> Result<String, Error> {
    let read = fs::read_to_string(roots);
    let text = read.map_err(|cause| Error::NoCredentials { role: Role::Manager, path: roots.into(), cause })?;
    let bad = |cause: String| Error::BadCredentials { path: roots.into(), cause };
    let block = text.split_inclusive(END).next().filter(|block| block.ends_with(END));
    let block = block.ok_or_else(|| bad("there is no certificate in it".into()))?.trim_start();
    CertificateDer::from_pem_slice(block.as_bytes()).map_err(|cause| bad(cause.to_string()))?;
    Ok(format!("{block}\n"))
}

/// The file of the trusted authorities' certificates in a credentials folder.
pub(crate) const AUTHORITY: &str = "ca.pem";
/// The folder for users, in the fabric's folder.
pub(crate) const USERS: &str = "users";
/// The line with which a certificate ends.
pub(crate) const END: &str = "-----END CERTIFICATE-----";

/// The name in a certificate that stands for `role`.
pub(crate) fn role_name(role: Role) -> ServerName<'static> {
    ServerName::try_from(role_text(role)).expect("a role's word is a valid label")
}

/// The same name as text.
pub(crate) fn role_text(role: Role) -> String {
    format!("{role}.tributary")
}

/// The role for which a verified certificate was issued.
pub(crate) fn role_of(certificate: &CertificateDer<'_>) -> Result<Role, Error> {
    let parsed = rustls::server::ParsedCertificate::try_from(certificate)
        .map_err(|cause| Error::BadCertificate(cause.to_string()))?;
    Role::ALL
        .into_iter()
        .find(|role| rustls::client::verify_server_name(&parsed, &role_name(*role)).is_ok())
        .ok_or_else(|| Error::BadCertificate("it names no role".into()))
}

/// The file of a role's certificate.
pub(crate) fn certificate_file(folder: &Path, role: Role) -> PathBuf {
    folder.join(format!("{role}.pem"))
}

/// The file of a role's key.
pub(crate) fn key_file(folder: &Path, role: Role) -> PathBuf {
    folder.join(format!("{role}.key"))
}

/// A new authority with this name, which is for people.
// Its validity is the library's default, centuries, because switches and DPUs boot with wrong
// clocks. A credential is withdrawn by giving the fabric a new folder.
pub(crate) fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// Issues a certificate for these names, one of which is the role's, and its key.
pub(crate) fn issue(
    authority: &CertifiedIssuer<'_, KeyPair>,
    role: Role,
    names: Vec<String>,
) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, format!("Tributary {role}"));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match role {
        Role::Manager => ExtendedKeyUsagePurpose::ServerAuth,
        Role::Node | Role::User => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Writes a file that must not exist yet.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(text.as_bytes())
    };
    write().map_err(|cause| Error::CannotWrite { path: path.into(), cause })
}
