//! Certificates that name their holder: a tenant, which is a group of users whose programs count
//! together, or one aggregation node. The program itself is not asked.
//!
//! ```text
//!   DIR/tenants/NAME/user.pem   certificate for user.tributary and NAME.tenant.tributary
//!   DIR/tenants/NAME/user.key   its private key
//!   DIR/tenants/NAME/ca.pem     the fabric's authority, by which the manager is known
//!   DIR/nodes/NAME/             the same with node.pem, for node.tributary and NAME.node.tributary
//!   DIR/ca.pem                  gets one more authority, the holder's, which the manager trusts
//!                               from its next start on, after `# node NAME` or `# tenant NAME`
//! ```
//! A holder has an authority of its own, because the key of the fabric's authority was never
//! written. The holder's key is not written either: it signs one certificate. So a holder can be
//! added while the fabric runs, and is removed by removing its certificate from `DIR/ca.pem`. Its
//! folder is a credentials folder like any other: a tenant's programs name it in `TRIB_MANAGER`, a
//! node in its settings. A node that has one takes its name with nothing else.

use std::collections::BTreeSet;
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

/// Who can be named.
struct Kind {
    word: &'static str,
    folder: &'static str,
    suffix: &'static str,
    role: Role,
}

const TENANT: Kind = Kind { word: "tenant", folder: "tenants", suffix: ".tenant.tributary", role: Role::User };
const NODE: Kind = Kind { word: "node", folder: "nodes", suffix: ".node.tributary", role: Role::Node };

impl Credentials {
    /// Makes a tenant's certificate and key below `folder`, which holds the fabric's credentials,
    /// and returns the tenant's folder.
    ///
    /// An existing tenant is an error and is not replaced, because its programs depend on it.
    pub fn add_tenant(folder: &Path, name: &str) -> Result<PathBuf, Error> {
        match is_tenant_name(name) {
            true => add(&TENANT, folder, name),
            false => Err(Error::BadTenant(name.into())),
        }
    }

    /// Does the same for a node of the topology. From the manager's next start on no other
    /// certificate is taken for that node.
    pub fn add_node(folder: &Path, name: &str) -> Result<PathBuf, Error> {
        match is_node_name(name) {
            true => add(&NODE, folder, name),
            false => Err(Error::BadNode(name.into())),
        }
    }

    /// The nodes that have certificates of their own, by the file of trusted authorities in
    /// `folder`.
    pub fn named_nodes(folder: &Path) -> Result<BTreeSet<String>, Error> {
        let path = folder.join(AUTHORITY);
        let read = fs::read_to_string(&path);
        let text = read.map_err(|cause| Error::NoCredentials { role: Role::Manager, path, cause })?;
        Ok(text.lines().filter_map(|line| line.strip_prefix("# node ")).map(|name| name.trim().to_owned()).collect())
    }
}

fn add(kind: &Kind, folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let Kind { word, suffix, role, .. } = *kind;
    let cannot = |cause: rcgen::Error| Error::BadCredentials { path: folder.into(), cause: cause.to_string() };
    let roots = folder.join(AUTHORITY);
    let known = first_certificate(&roots)?;
    let own = folder.join(kind.folder).join(name);
    let cannot_write = |path: &Path| {
        let path = path.to_owned();
        move |cause| Error::CannotWrite { path, cause }
    };
    fs::create_dir_all(folder.join(kind.folder)).map_err(cannot_write(&own))?;
    match fs::create_dir(&own) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::HolderExists { kind: word, name: name.into(), folder: own });
        }
        made => made.map_err(cannot_write(&own))?,
    }
    let authority = authority(&format!("Tributary {word} {name}")).map_err(cannot)?;
    let names = vec![credentials::role_text(role), name.to_owned() + suffix];
    let (certificate, key) = issue(&authority, role, names).map_err(cannot)?;
    write_new(&own.join(AUTHORITY), &known, 0o644)?;
    write_new(&certificate_file(&own, role), &certificate, 0o644)?;
    write_new(&key_file(&own, role), &key, 0o600)?;
    // This is written last and in one piece: until then the manager does not trust the new
    // authority.
    let block = format!("\n# {word} {name}\n{}", authority.as_ref().pem());
    let append = || -> io::Result<()> { OpenOptions::new().append(true).open(&roots)?.write_all(block.as_bytes()) };
    append().map_err(cannot_write(&roots))?;
    Ok(own)
}

/// Whether this can be a tenant's name: a label of a domain name in lower case, 1 to 63 of `a-z`,
/// `0-9` and `-`, without a `-` at either end.
pub fn is_tenant_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(is_letter) && !name.starts_with('-') && !name.ends_with('-')
}

/// Whether a certificate can name a node so: labels of `a-z`, `A-Z`, `0-9`, `_` and `-` with dots
/// between them, at most 200 bytes in all.
fn is_node_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 200 && name.split('.').all(is_label)
}

/// The tenant that a verified certificate names, if any.
pub(crate) fn tenant_of(certificate: &CertificateDer<'_>) -> Option<String> {
    holder(certificate, &TENANT).filter(|name| is_tenant_name(name))
}

/// The node that a verified certificate names, if any.
pub(crate) fn node_of(certificate: &CertificateDer<'_>) -> Option<String> {
    holder(certificate, &NODE)
}

fn holder(certificate: &CertificateDer<'_>, kind: &Kind) -> Option<String> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    parsed.valid_dns_names().find_map(|name| name.strip_suffix(kind.suffix)).map(Into::into)
}

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
        let folder = std::env::temp_dir().join(format!("trib-named-{}", std::process::id()));
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
        assert!(matches!(again, Error::HolderExists { .. }), "{again}");
        assert_eq!(count(&folder.join("ca.pem")), 2, "a tenant that is there stays as it is");
        Credentials::add_tenant(&folder, "bio").unwrap();
        assert_eq!(count(&folder.join("tenants/bio/ca.pem")), 1);
        let wrong = Credentials::add_tenant(&folder, "../x").unwrap_err();
        assert!(matches!(wrong, Error::BadTenant(_)), "{wrong}");
        fs::remove_dir_all(&folder).unwrap();
        let nowhere = Credentials::add_tenant(&folder, "astro").unwrap_err();
        assert!(matches!(nowhere, Error::NoCredentials { .. }), "{nowhere}");
    }

    #[test]
    fn a_nodes_certificate_names_it_and_the_manager_knows_which_have_one() {
        let folder = std::env::temp_dir().join(format!("trib-named-node-{}", std::process::id()));
        Credentials::create(&folder).unwrap();
        Credentials::add_tenant(&folder, "astro").unwrap();
        let read = |path: &Path| CertificateDer::from_pem_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(node_of(&read(&folder.join("node.pem"))), None);
        for name in ["leaf0", "SW_1.rack-2"] {
            let own = Credentials::add_node(&folder, name).unwrap();
            let certificate = read(&own.join("node.pem"));
            assert_eq!((node_of(&certificate), tenant_of(&certificate)), (Some(name.into()), None));
            assert_eq!(credentials::role_of(&certificate).unwrap(), Role::Node);
            Credentials::load(&own, Role::Node).unwrap();
        }
        assert_eq!(Credentials::named_nodes(&folder).unwrap(), ["leaf0", "SW_1.rack-2"].map(String::from).into());
        Credentials::load(&folder, Role::Manager).unwrap();
        for name in ["", "a b", "../x", "a..b", "-a", "a/b", "ä"] {
            assert!(matches!(Credentials::add_node(&folder, name), Err(Error::BadNode(_))), "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
