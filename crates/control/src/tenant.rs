//! Tenants: the groups of users for which programs count. A program's certificate names its tenant;
//! the program itself is not asked.
//!
//! ```text
//!   DIR/tenants/NAME/user.pem   certificate for user.tributary and NAME.tenant.tributary
//!   DIR/tenants/NAME/user.key   its private key
//!   DIR/tenants/NAME/ca.pem     the fabric's authority, by which the manager is known
//!   DIR/ca.pem                  gets one more authority, the tenant's, which the manager trusts
//!                               from its next start on
//! ```
//! A tenant has an authority of its own, because the key of the fabric's authority was never
//! written. The tenant's key is not written either: it signs one certificate. So a tenant can be
//! added while the fabric runs, and is removed by removing its certificate from `DIR/ca.pem`. The
//! folder of a tenant is a credentials folder like any other: the tenant's programs name it in
//! `TRIB_MANAGER`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use trib_messages::hello::Role;
use webpki::EndEntityCert;

use crate::credentials::{
    AUTHORITY, Credentials, authority, certificate_file, first_certificate, issue, key_file, write_new,
};
use crate::{Error, credentials};

impl Credentials {
    /// Makes a tenant's certificate and key below `folder`, which holds the fabric's credentials,
    /// and returns the tenant's folder.
    ///
    /// An existing tenant is an error and is not replaced, because its programs depend on it.
    pub fn add_tenant(folder: &Path, name: &str) -> Result<PathBuf, Error> {
        if !is_tenant_name(name) {
            return Err(Error::BadTenant(name.into()));
        }
        let cannot = |cause: rcgen::Error| Error::BadCredentials { path: folder.into(), cause: cause.to_string() };
        let roots = folder.join(AUTHORITY);
        let known = first_certificate(&roots)?;
        let own = folder.join("tenants").join(name);
        let cannot_write = |path: &Path| {
            let path = path.to_owned();
            move |cause| Error::CannotWrite { path, cause }
        };
        fs::create_dir_all(folder.join("tenants")).map_err(cannot_write(&own))?;
        match fs::create_dir(&own) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::TenantExists { name: name.into(), folder: own });
            }
            made => made.map_err(cannot_write(&own))?,
        }
        let authority = authority(&format!("Tributary tenant {name}")).map_err(cannot)?;
        let names = vec![credentials::role_text(Role::User), name.to_owned() + SUFFIX];
        let (certificate, key) = issue(&authority, Role::User, names).map_err(cannot)?;
        write_new(&own.join(AUTHORITY), &known, 0o644)?;
        write_new(&certificate_file(&own, Role::User), &certificate, 0o644)?;
        write_new(&key_file(&own, Role::User), &key, 0o600)?;
        // This is written last and in one piece: until then the manager does not trust the new
        // authority.
        let block = format!("\n{}", authority.as_ref().pem());
        let append = || -> io::Result<()> { OpenOptions::new().append(true).open(&roots)?.write_all(block.as_bytes()) };
        append().map_err(cannot_write(&roots))?;
        Ok(own)
    }
}

/// Whether this can be a tenant's name: a label of a domain name in lower case, 1 to 63 of `a-z`,
/// `0-9` and `-`, without a `-` at either end.
pub fn is_tenant_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(is_letter) && !name.starts_with('-') && !name.ends_with('-')
}

/// The tenant that a verified certificate names, if any.
pub(crate) fn tenant_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    parsed
        .valid_dns_names()
        .find_map(|name| name.strip_suffix(SUFFIX))
        .filter(|name| is_tenant_name(name))
        .map(Into::into)
}

const SUFFIX: &str = ".tenant.tributary";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::END;
    use rustls::pki_types::pem::PemObject;

    #[test]
    fn names_are_labels_in_lower_case() {
        for name in ["a", "astro", "bio-2", "0", &"x".repeat(63)] {
            assert!(is_tenant_name(name), "{name}");
        }
        for name in ["", "*", "Astro", "a.b", "-a", "a-", "ä", "a b", "../a", &"x".repeat(64)] {
            assert!(!is_tenant_name(name), "{name}");
        }
    }

    #[test]
    fn a_certificate_of_no_tenant_names_none() {
        let folder = std::env::temp_dir().join(format!("trib-tenant-{}", std::process::id()));
        Credentials::create(&folder).unwrap();
        let read = |path: &Path| CertificateDer::from_pem_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(tenant_of(&read(&folder.join("user.pem"))), None);
        let own = Credentials::add_tenant(&folder, "astro").unwrap();
        assert_eq!(own, folder.join("tenants/astro"));
        assert_eq!(tenant_of(&read(&own.join("user.pem"))), Some("astro".into()));
        assert_eq!(credentials::role_of(&read(&own.join("user.pem"))).unwrap(), Role::User);
        // The tenant trusts the fabric's authority, and the manager trusts both.
        assert_eq!(read(&own.join("ca.pem")), read(&folder.join("ca.pem")));
        let count = |path: &Path| fs::read_to_string(path).unwrap().matches(END).count();
        assert_eq!((count(&own.join("ca.pem")), count(&folder.join("ca.pem"))), (1, 2));
        let again = Credentials::add_tenant(&folder, "astro").unwrap_err();
        assert!(matches!(again, Error::TenantExists { .. }), "{again}");
        assert_eq!(count(&folder.join("ca.pem")), 2, "a tenant that is there stays as it is");
        Credentials::add_tenant(&folder, "bio").unwrap();
        assert_eq!(count(&folder.join("tenants/bio/ca.pem")), 1);
        let wrong = Credentials::add_tenant(&folder, "../x").unwrap_err();
        assert!(matches!(wrong, Error::BadTenant(_)), "{wrong}");
        fs::remove_dir_all(&folder).unwrap();
        let nowhere = Credentials::add_tenant(&folder, "astro").unwrap_err();
        assert!(matches!(nowhere, Error::NoCredentials { .. }), "{nowhere}");
    }
}
