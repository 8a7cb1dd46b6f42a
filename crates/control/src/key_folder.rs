//! The operator's folder of a fabric: its authority, and every certificate that this has signed.
//!
//! ```text
//!   DIR/authority-key.pem   the key of the authority, for the operator alone; it may lie elsewhere
//!   DIR/ca.pem              the authority's certificate, the first of those that are trusted
//!   DIR/manager.pem, .key   certificate and key of the manager
//!   DIR/user.pem, .key      those of the fabric's users
//!   DIR/users/              ca.pem, user.pem and user.key once more: what users are given
//!   DIR/nodes/NAME/         ca.pem, node.pem and node.key of one node: what its host needs
//!   DIR/tenants/NAME/       ca.pem, user.pem and user.key of a tenant
//!   DIR/issued.txt          every certificate: serial number, end (seconds since 1970), holder
//!   DIR/withdrawn.txt       those that the manager does not take any more
//! ```
//! The record of what was issued is there so that withdrawing a holder's certificates takes those,
//! too, that were renewed since and have not ended.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trib_messages::hello::Role;

use crate::Error;
use crate::authority::{Authority, Issued};
use crate::certificate::{Certificate, Serial};
use crate::clock::{date, unix_s};
use crate::files::{
    AUTHORITY, AUTHORITY_KEY, USERS, append, certificate_file, first_certificate, key_file, make_folder, replace,
    write_new,
};
use crate::holder::{Holder, NODES, TENANTS};
use crate::withdrawn::{self, WITHDRAWN};

/// The operator's folder.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
    authority_key: PathBuf,
}

impl KeyFolder {
    /// The folder of this path, with the authority's key in it.
    pub fn at(folder: impl Into<PathBuf>) -> KeyFolder {
        let folder = folder.into();
        KeyFolder { authority_key: folder.join(AUTHORITY_KEY), folder }
    }

    /// The same with the authority's key in another file.
    #[must_use]
    pub fn with_authority_key(self, file: impl Into<PathBuf>) -> KeyFolder {
        KeyFolder { authority_key: file.into(), ..self }
    }

    /// Makes a new authority with certificates for the manager and for users in the folder, which
    /// is made if missing, and the folder for users.
    ///
    /// Existing files are an error and are not replaced: a running fabric may depend on them.
    pub fn create(&self, validity: Duration) -> Result<(), Error> {
        let folder = &self.folder;
        let files = Role::ALL.into_iter().flat_map(|role| [certificate_file(folder, role), key_file(folder, role)]);
        let mut files = files.chain([folder.join(AUTHORITY), self.authority_key.clone()]);
        if files.any(|file| file.exists()) {
            return Err(Error::Exists { folder: folder.into() });
        }
        make_open(folder)?;
        let (authority, certificate, key) = Authority::new()
            .map_err(|cause| Error::BadCredentials { path: folder.into(), cause: cause.to_string() })?;
        write_new(&self.authority_key, &key, 0o600)?;
        write_new(&folder.join(AUTHORITY), &certificate, 0o644)?;
        for holder in [Holder::Manager, Holder::Users] {
            let issued = self.issue(&authority, &holder, validity)?;
            self.write(&holder, &issued)?;
        }
        self.make_users_folder()?;
        Ok(())
    }

    /// Makes the folder of a node or of a tenant, with a certificate and key that name it, and
    /// returns its path.
    ///
    /// A holder that is there is an error and is not replaced, because its host depends on it.
    pub fn add(&self, holder: &Holder, validity: Duration) -> Result<PathBuf, Error> {
        let authority = self.authority()?;
        let known = first_certificate(&self.folder.join(AUTHORITY))?;
        let own = holder.folder(&self.folder);
        if !make_open(&own)? {
            return Err(Error::HolderExists { holder: holder.clone(), folder: own });
        }
        let issued = self.issue(&authority, holder, validity)?;
        write_new(&own.join(AUTHORITY), &known, 0o644)?;
        self.write(holder, &issued)?;
        Ok(own)
    }

    /// Does the same for several holders. None of them may be there.
    pub fn add_all(&self, holders: &[Holder], validity: Duration) -> Result<Vec<PathBuf>, Error> {
        for holder in holders {
            let own = holder.folder(&self.folder);
            if own.exists() {
                return Err(Error::HolderExists { holder: holder.clone(), folder: own });
            }
        }
        holders.iter().map(|holder| self.add(holder, validity)).collect()
    }

    /// Makes the folder for users and returns its path. A folder that exists is left as it is.
    ///
    /// It holds what a user needs and nothing else, so that it can be given away as a whole: no key
    /// of a daemon is in it.
    pub fn make_users_folder(&self) -> Result<PathBuf, Error> {
        let (folder, users) = (&self.folder, self.folder.join(USERS));
        let read = |path: PathBuf| {
            fs::read_to_string(&path).map_err(|cause| Error::NoCredentials { role: Role::User, path, cause })
        };
        let authority = first_certificate(&folder.join(AUTHORITY))?;
        let (certificate, key) = (read(certificate_file(folder, Role::User))?, read(key_file(folder, Role::User))?);
        if !make_open(&users)? {
            return Ok(users);
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

    /// Who has a certificate here, and what stands in it.
    pub fn certificates(&self) -> Result<Vec<Certificate>, Error> {
        let mut holders = vec![Holder::Manager, Holder::Users];
        for (folder, named) in [(NODES, Holder::node as fn(&str) -> _), (TENANTS, Holder::tenant)] {
            let path = self.folder.join(folder);
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(Error::CannotRead { path, cause }),
            };
            let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut found: Vec<Holder> = names.filter_map(|name| named(&name).ok()).collect();
            found.sort();
            holders.extend(found);
        }
        holders.iter().map(|holder| self.certificate(holder)).collect()
    }

    /// What stands in the certificate that a holder has here.
    pub fn certificate(&self, holder: &Holder) -> Result<Certificate, Error> {
        Certificate::in_folder(&holder.folder(&self.folder), holder.role()).map_err(|error| match error {
            Error::NoCredentials { path, cause, .. } => Error::NotIssued { holder: holder.clone(), path, cause },
            other => other,
        })
    }

    /// Issues a new certificate and key for a holder that has one, in the same files and for the
    /// same users. Who reads them while they are exchanged tries again.
    pub fn renew(&self, holder: &Holder, validity: Duration) -> Result<Certificate, Error> {
        self.certificate(holder)?;
        let authority = self.authority()?;
        let issued = self.issue(&authority, holder, validity)?;
        let mut folders = vec![holder.folder(&self.folder)];
        let users = self.folder.join(USERS);
        if *holder == Holder::Users && users.exists() {
            folders.push(users);
        }
        for folder in folders {
            replace(&key_file(&folder, holder.role()), &issued.key)?;
            replace(&certificate_file(&folder, holder.role()), &issued.certificate)?;
        }
        Ok(issued.says)
    }

    /// Withdraws every certificate that a holder has or had, as far as they have not ended. Returns
    /// those that were not withdrawn before.
    pub fn withdraw(&self, holder: &Holder) -> Result<Vec<Serial>, Error> {
        if *holder == Holder::Manager {
            return Err(Error::ManagerWithdrawn);
        }
        let now = unix_s();
        let mut all = self.issued()?;
        all.extend(self.certificate(holder).ok());
        all.retain(|issued| issued.holder == *holder && issued.seconds_left(now) > 0);
        if all.is_empty() {
            // The file's absence is the likeliest cause.
            self.certificate(holder)?;
        }
        self.add_to_list(all)
    }

    /// Withdraws the certificate of this number, whosever it is.
    pub fn withdraw_serial(&self, serial: &Serial) -> Result<Vec<Serial>, Error> {
        let known = self.issued()?.into_iter().find(|issued| issued.serial == *serial);
        match known {
            None => Err(Error::UnknownSerial { serial: serial.clone(), folder: self.folder.clone() }),
            Some(known) if known.holder == Holder::Manager => Err(Error::ManagerWithdrawn),
            Some(known) => self.add_to_list(vec![known]),
        }
    }

    fn add_to_list(&self, certificates: Vec<Certificate>) -> Result<Vec<Serial>, Error> {
        let path = self.folder.join(WITHDRAWN);
        let mut known = withdrawn::read(&path)?;
        let today = date(unix_s());
        let (mut lines, mut added) = (String::new(), Vec::new());
        for Certificate { holder, serial, ends } in certificates {
            if known.insert(serial.clone()) {
                lines += &format!("{serial}    # {holder}, until {}; withdrawn {today}\n", date(ends));
                added.push(serial);
            }
        }
        if added.is_empty() {
            return Ok(added);
        }
        append(&path, &lines, 0o644)?;
        // The operator relies on it, and reads no file after it.
        let listed = withdrawn::read(&path)?;
        let Some(missing) = added.iter().find(|serial| !listed.contains(*serial)) else { return Ok(added) };
        let cause = io::Error::other(format!("{missing} was written and is not there: add it, in a line of its own"));
        Err(Error::CannotWrite { path, cause })
    }

    fn authority(&self) -> Result<Authority, Error> {
        Authority::open(&self.authority_key, &self.folder.join(AUTHORITY))
    }

    /// Issues a certificate, which is recorded before anybody can have it.
    fn issue(&self, authority: &Authority, holder: &Holder, validity: Duration) -> Result<Issued, Error> {
        let issued = authority.issue(holder, validity)?;
        let Certificate { holder, serial, ends } = &issued.says;
        append(&self.folder.join(ISSUED), &format!("{serial} {ends} {holder}\n"), 0o644)?;
        Ok(issued)
    }

    fn write(&self, holder: &Holder, issued: &Issued) -> Result<(), Error> {
        let own = holder.folder(&self.folder);
        write_new(&certificate_file(&own, holder.role()), &issued.certificate, 0o644)?;
        write_new(&key_file(&own, holder.role()), &issued.key, 0o600)
    }

    /// Every certificate that was issued.
    fn issued(&self) -> Result<Vec<Certificate>, Error> {
        let path = self.folder.join(ISSUED);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(Error::CannotRead { path, cause }),
        };
        let parse = |line: &str| -> Option<Certificate> {
            let (serial, rest) = line.split_once(' ')?;
            let (ends, holder) = rest.split_once(' ')?;
            Some(Certificate { holder: holder.parse().ok()?, serial: serial.parse().ok()?, ends: ends.parse().ok()? })
        };
        let wrong = |line| Error::BadList { path: path.clone(), line, cause: "it is no certificate".into() };
        text.lines().enumerate().map(|(at, line)| parse(line).ok_or_else(|| wrong(at + 1))).collect()
    }
}

/// Makes a folder that all may look into, and returns whether it was missing.
fn make_open(folder: &Path) -> Result<bool, Error> {
    make_folder(folder, OPEN).map_err(|cause| Error::CannotWrite { path: folder.into(), cause })
}

/// How long certificates are valid if nothing else is said: a year.
pub const VALIDITY: Duration = Duration::from_secs(365 * 86_400);
/// The rights of folders. Those of the keys in them keep these secret.
const OPEN: u32 = 0o755;
/// The record of what was issued.
const ISSUED: &str = "issued.txt";

#[cfg(test)]
mod tests {
    use super::*;

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Temporary {
            Temporary(std::env::temp_dir().join(format!("trib-key-folder-{name}-{}", std::process::id())))
        }

        fn text(&self, name: &str) -> String {
            fs::read_to_string(self.0.join(name)).unwrap()
        }

        fn mode(&self, name: &str) -> u32 {
            fs::metadata(self.0.join(name)).unwrap().permissions().mode() & 0o777
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn everybodys_certificate_names_them_and_trusts_the_one_authority() {
        let folder = Temporary::new("names");
        let keys = KeyFolder::at(&folder.0);
        keys.create(VALIDITY).unwrap();
        assert_eq!((folder.mode(AUTHORITY_KEY), folder.mode("manager.key")), (0o600, 0o600));
        let (astro, leaf) = (Holder::tenant("astro").unwrap(), Holder::node("SW_1.rack-2").unwrap());
        assert_eq!(keys.add(&astro, VALIDITY).unwrap(), folder.0.join("tenants/astro"));
        assert_eq!(keys.add(&leaf, VALIDITY).unwrap(), folder.0.join("nodes/SW_1.rack-2"));
        for own in ["users/ca.pem", "tenants/astro/ca.pem", "nodes/SW_1.rack-2/ca.pem"] {
            assert_eq!(folder.text(own), folder.text("ca.pem"));
        }
        let found: Vec<Holder> = keys.certificates().unwrap().into_iter().map(|found| found.holder).collect();
        assert_eq!(found, [Holder::Manager, Holder::Users, leaf.clone(), astro.clone()]);
        let again = keys.add(&astro, VALIDITY).unwrap_err().to_string();
        assert!(again.contains("tenant astro") && again.contains("renew DIR --tenant astro"), "{again}");
        let several = keys.add_all(&[Holder::node("new").unwrap(), leaf], VALIDITY);
        assert!(matches!(several, Err(Error::HolderExists { .. })) && !folder.0.join("nodes/new").exists());
        assert_eq!(keys.issued().unwrap().len(), 4);
    }

    #[test]
    fn what_is_renewed_has_a_new_key_and_the_readers_of_the_old() {
        let folder = Temporary::new("renewed");
        let keys = KeyFolder::at(&folder.0);
        keys.create(Duration::from_secs(100)).unwrap();
        fs::set_permissions(folder.0.join("users/user.key"), fs::Permissions::from_mode(0o640)).unwrap();
        let (old, key) = (keys.certificate(&Holder::Users).unwrap(), folder.text("user.key"));
        let new = keys.renew(&Holder::Users, VALIDITY).unwrap();
        assert_eq!(keys.certificate(&Holder::Users).unwrap(), new);
        assert!(new.serial != old.serial && new.ends > old.ends + 300 * 86_400, "{new} {old}");
        assert_ne!(folder.text("user.key"), key);
        for name in ["user.key", "user.pem"] {
            assert_eq!(folder.text(&format!("users/{name}")), folder.text(name));
        }
        assert_eq!((folder.mode("users/user.key"), folder.mode("user.key")), (0o640, 0o600));
        assert!(matches!(keys.renew(&Holder::node("leaf0").unwrap(), VALIDITY), Err(Error::NotIssued { .. })));
    }

    #[test]
    fn a_withdrawal_is_a_line_of_its_own_whatever_the_last_line_of_the_list_is() {
        let folder = Temporary::new("lines");
        let keys = KeyFolder::at(&folder.0);
        keys.create(VALIDITY).unwrap();
        let path = folder.0.join(WITHDRAWN);
        for (name, last) in [("astro", "# for the auditors"), ("bio", "0A0B"), ("chem", "\n")] {
            let tenant = Holder::tenant(name).unwrap();
            keys.add(&tenant, VALIDITY).unwrap();
            fs::write(&path, last).unwrap();
            let serial = keys.certificate(&tenant).unwrap().serial;
            assert_eq!(keys.withdraw(&tenant).unwrap(), std::slice::from_ref(&serial));
            assert!(withdrawn::read(&path).unwrap().contains(&serial), "{}", folder.text(WITHDRAWN));
            assert!(keys.withdraw(&tenant).unwrap().is_empty(), "it is on the list already");
        }
    }

    #[test]
    fn a_strict_umask_changes_no_rights() {
        const CHILD: &str = "TRIB_TEST_UMASK_FOLDER";
        if let Some(folder) = std::env::var_os(CHILD) {
            let (keys, astro) = (KeyFolder::at(folder), Holder::tenant("astro").unwrap());
            keys.create(VALIDITY).unwrap();
            keys.add(&astro, VALIDITY).unwrap();
            keys.withdraw(&astro).unwrap();
            return;
        }
        // The umask is that of a process, in which other tests run; so this one has another.
        for (umask, name) in [("077", "umask-all"), ("027", "umask-others")] {
            let above = Temporary::new(name);
            let folder = Temporary(above.0.join("made"));
            let own = "key_folder::tests::a_strict_umask_changes_no_rights";
            let made = std::process::Command::new("sh")
                .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", own])
                .env(CHILD, &folder.0)
                .output()
                .unwrap();
            assert!(made.status.success(), "{made:?}");
            for open in ["..", "", "users", "tenants", "tenants/astro"] {
                assert_eq!(folder.mode(open), 0o755, "{umask}: {open}");
            }
            for read in
                ["ca.pem", "manager.pem", "users/ca.pem", "users/user.pem", "tenants/astro/user.pem", WITHDRAWN, ISSUED]
            {
                assert_eq!(folder.mode(read), 0o644, "{umask}: {read}");
            }
            for secret in [AUTHORITY_KEY, "manager.key", "user.key", "users/user.key", "tenants/astro/user.key"] {
                assert_eq!(folder.mode(secret), 0o600, "{umask}: {secret}");
            }
        }
    }

    #[test]
    fn without_the_authoritys_key_nothing_is_issued_and_words_say_what_to_do() {
        let folder = Temporary::new("keyless");
        let keys = KeyFolder::at(&folder.0);
        keys.create(VALIDITY).unwrap();
        let elsewhere = folder.0.join("safe.pem");
        fs::rename(folder.0.join(AUTHORITY_KEY), &elsewhere).unwrap();
        let error = keys.renew(&Holder::Manager, VALIDITY).unwrap_err().to_string();
        assert!(error.contains("--authority-key FILE") && error.contains("trib credentials NEW"), "{error}");
        keys.clone().with_authority_key(&elsewhere).renew(&Holder::Manager, VALIDITY).unwrap();
        // That of another fabric signs nothing here.
        let other = Temporary::new("keyless-other");
        KeyFolder::at(&other.0).create(VALIDITY).unwrap();
        let error = keys.with_authority_key(other.0.join(AUTHORITY_KEY)).renew(&Holder::Manager, VALIDITY).unwrap_err();
        assert!(error.to_string().contains("not the key of the first certificate"), "{error}");
    }
}
