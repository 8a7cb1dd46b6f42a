//! The files of credentials: their names, and how they are read and written.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use trib_messages::hello::Role;

use crate::Error;

/// The file of the trusted authorities' certificates in a credentials folder.
pub(crate) const AUTHORITY: &str = "ca.pem";
/// The file of the authority's key in the fabric's folder.
pub(crate) const AUTHORITY_KEY: &str = "authority-key.pem";
/// The folder for users, in the fabric's folder.
pub(crate) const USERS: &str = "users";

/// The file of a role's certificate.
pub(crate) fn certificate_file(folder: &Path, role: Role) -> PathBuf {
    folder.join(format!("{role}.pem"))
}

/// The file of a role's key.
pub(crate) fn key_file(folder: &Path, role: Role) -> PathBuf {
    folder.join(format!("{role}.key"))
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

/// Whether a file that is there gives any of these rights.
pub(crate) fn is_open_to(path: &Path, rights: u32) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & rights != 0)
}

/// Makes a folder that is missing, and those above it that are. It has exactly these rights,
/// whatever the umask takes from what is new. Returns whether it was missing.
pub fn make_folder(path: &Path, mode: u32) -> io::Result<bool> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty() && !above.exists()) {
        make_folder(above, mode)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        made => made?,
    }
    let made = fs::metadata(path)?.mode() & 0o7777;
    // What is beyond the rights comes from the folder above, and stays.
    let wanted = made & !0o777 | mode;
    if made != wanted {
        fs::set_permissions(path, Permissions::from_mode(wanted))?;
    }
    Ok(true)
}

/// Makes a file that must not exist yet. It has exactly these rights, whatever the umask takes from
/// what is new.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create_new(true).mode(mode).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Writes a file that must not exist yet.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let write = || create(path, mode)?.write_all(text.as_bytes());
    write().map_err(|cause| Error::CannotWrite { path: path.into(), cause })
}

/// Puts a new text in the place of a file's old one, for the same users. Who reads the file finds
/// one of them, whole.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let beside = path.with_extension("new");
    let write = || -> io::Result<()> {
        let old = fs::metadata(path)?;
        // What a run that was stopped has left.
        if beside.exists() {
            fs::remove_file(&beside)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        chown(&beside, Some(old.uid()), Some(old.gid()))?;
        fs::set_permissions(&beside, Permissions::from_mode(old.mode() & 0o777))?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|cause| Error::CannotWrite { path: path.into(), cause })
}

/// Adds lines to a file, which is made if it is not there. A last line there that has no end, as
/// editors leave it, gets one: it may be a comment, which would take in the first that is added.
pub(crate) fn append(path: &Path, lines: &str, mode: u32) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let mut file = match create(path, mode) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().read(true).append(true).open(path)?
            }
            made => made?,
        };
        let (length, mut last) = (file.metadata()?.len(), *b"\n");
        if length > 0 {
            file.read_exact_at(&mut last, length - 1)?;
        }
        let end = if last == *b"\n" { "" } else { "\n" };
        file.write_all(format!("{end}{lines}").as_bytes())
    };
    write().map_err(|cause| Error::CannotWrite { path: path.into(), cause })
}

/// The line with which a certificate ends.
const END: &str = "-----END CERTIFICATE-----";
