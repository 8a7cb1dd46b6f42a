//! What went wrong on the way to the other side, and whose fault it is.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trib_messages::hello::Role;
use trib_messages::reply::Refusal;

use crate::certificate::{Certificate, Serial};
use crate::clock::date;
use crate::files;
use crate::holder::Holder;

/// A failure of the control channel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This side's configuration: there is no address of the manager.
    #[error("no manager given: set TRIB_MANAGER=tls://HOST:PORT?credentials=DIR (`trib fabric up` prints it)")]
    NoManager,
    /// This side's configuration: the manager's address cannot be read.
    #[error("`{url}` is not a manager address: {cause}; expected tls://HOST:PORT?credentials=DIR")]
    BadUrl {
        /// The text.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The manager, or the network to it, cannot be reached.
    #[error("cannot reach the manager at {address}: {cause}; is `trib am` running there?")]
    Unreachable {
        /// The address at which it should be.
        address: String,
        /// Why it was not reached.
        cause: io::Error,
    },
    /// This side's configuration: a credentials file cannot be read.
    #[error("{}", no_credentials(*role, path, cause))]
    NoCredentials {
        /// The role whose credentials are wanted.
        role: Role,
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// This side's configuration: a credentials file holds something else.
    #[error("{} holds no usable credentials: {cause}; make a new folder with `trib credentials`", path.display())]
    BadCredentials {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// This side's disk: new credentials cannot be written.
    #[error("cannot write credentials to {}: {cause}", path.display())]
    CannotWrite {
        /// The file or folder.
        path: PathBuf,
        /// Why it cannot be written.
        cause: io::Error,
    },
    /// This side's caller: the folder holds credentials already.
    #[error(
        "{folder} holds the credentials of a fabric already, and nothing was changed: its daemons and programs depend on them. \
         `trib credentials {folder} --users` makes the folder for its users, `--node NAME` and `--tenant NAME` add a node and a tenant, and \
         `trib credentials renew {folder}` renews what ends soon. For another fabric choose another folder; to replace these, stop the \
         fabric and remove *.pem, *.key, *.txt and the folders users, nodes and tenants there",
        folder = folder.display()
    )]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// This side's caller: the tenant or node exists already.
    #[error(
        "{holder} has its credentials already, in {folder}, and nothing was changed: give that folder to its hosts, or choose \
         another name; `trib credentials renew DIR {}` gives it new ones", holder.option(),
        folder = folder.display()
    )]
    HolderExists {
        /// Whose they are.
        holder: Holder,
        /// Its folder.
        folder: PathBuf,
    },
    /// This side's caller: there is no certificate to be renewed or withdrawn.
    #[error("{holder} has no certificate at {}: {cause}; `trib credentials DIR {}` makes one", path.display(), holder.option())]
    NotIssued {
        /// Whose it would be.
        holder: Holder,
        /// The file in which it would be.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// This side's caller: the authority's key is not there, so nothing can be issued.
    #[error(
        "cannot read the key of the fabric's authority, {}: {cause}; every certificate is signed with it. If it was moved, name it with \
         --authority-key FILE. If this folder was made by a release that did not keep it, nothing can be added here: make a new folder with \
         `trib credentials NEW`, add the certificate in NEW/ca.pem to ca.pem of every host, which then trusts both, give every host its files \
         of NEW, and take the old certificate away",
        path.display()
    )]
    NoAuthorityKey {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// This side's configuration: a key is not a secret.
    #[error("{} can be read by others than its user: `{remedy} {}`, and renew it if somebody may have read it", path.display(), path.display())]
    OpenKey {
        /// The key's file.
        path: PathBuf,
        /// The command that closes it.
        remedy: &'static str,
    },
    /// This side's caller: no list of the manager's reaches those who verify its certificate.
    #[error(
        "the manager's certificate cannot be withdrawn, because the manager itself keeps the list: if its key is in other hands, make a new \
         authority with `trib credentials NEW`, and give every host its files of NEW"
    )]
    ManagerWithdrawn,
    /// This side's caller: nothing with this number was issued.
    #[error("no certificate with the serial number {serial} was issued in {}: see issued.txt there", folder.display())]
    UnknownSerial {
        /// The number.
        serial: Serial,
        /// The operator's folder.
        folder: PathBuf,
    },
    /// This side's configuration: a list or a folder cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    CannotRead {
        /// The file or folder.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// This side's configuration: a line of a list is wrong.
    #[error("{}, line {line}: {cause}", path.display())]
    BadList {
        /// The file.
        path: PathBuf,
        /// The line's number.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// One side's certificate has ended.
    #[error("the certificate of {} ended on {}: {remedy}", certificate.holder, date(certificate.ends))]
    Ended {
        /// What stands in it.
        certificate: Box<Certificate>,
        /// What to do.
        remedy: String,
    },
    /// The operator has withdrawn the certificate of the side that connects.
    #[error("the certificate of {}, serial {}, was withdrawn: {remedy}", certificate.holder, certificate.serial)]
    Withdrawn {
        /// What stands in it.
        certificate: Box<Certificate>,
        /// What to do.
        remedy: String,
    },
    /// This side's caller: the text is no name for a tenant.
    #[error(
        "`{0}` is no name for a tenant: write 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or a digit"
    )]
    BadTenant(String),
    /// This side's caller: no certificate can name a node so.
    #[error(
        "no certificate can name a node `{0}`: write labels of letters, digits, - and _ with dots between them, as its name in the topology"
    )]
    BadNode(String),
    /// One side's certificate was not accepted: another fabric's, or another role's.
    #[error("certificate not accepted: {0}; both sides need credentials of the same fabric, each of its own role")]
    BadCertificate(String),
    /// The two sides speak different versions.
    #[error(
        "protocol version mismatch: this side speaks {ours}, the other side {theirs} (software {software}); install the same release of Tributary on both"
    )]
    VersionMismatch {
        /// This side's version.
        ours: u8,
        /// The other side's version.
        theirs: u8,
        /// The other side's software version.
        software: String,
    },
    /// The other side refused, with its reason.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The other side did not answer in time.
    #[error("no answer from {address} within {} ms; it is stopped, overloaded or unreachable", waited.as_millis())]
    Timeout {
        /// The address of the other side.
        address: String,
        /// How long this side waited.
        waited: Duration,
    },
    /// The other side closed the channel.
    #[error("{address} closed the connection")]
    Closed {
        /// The address of the other side.
        address: String,
    },
    /// The other side broke the protocol.
    #[error("{address} sent something that is not a control message: {cause}")]
    Malformed {
        /// The address of the other side.
        address: String,
        /// What is wrong with it.
        cause: String,
    },
    /// This side's caller: a message is longer than any receiver takes.
    #[error("a message of {bytes} bytes is too long: at most {max} bytes travel at once", max = crate::MESSAGE_MAX)]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A call on this side's socket failed.
    #[error("cannot {what}: {cause}")]
    Socket {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
}

impl Error {
    /// All that [`Error::kind`] says.
    pub const KINDS: [&'static str; 9] = [
        "certificate",
        "certificate that has ended",
        "withdrawn certificate",
        "version",
        "refused",
        "too slow",
        "closed",
        "malformed",
        "other",
    ];

    /// The kind of failure in a word, for logs of what strangers do.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::BadCertificate(_) => "certificate",
            Error::Ended { .. } => "certificate that has ended",
            Error::Withdrawn { .. } => "withdrawn certificate",
            Error::VersionMismatch { .. } => "version",
            Error::Refused(_) => "refused",
            Error::Timeout { .. } => "too slow",
            Error::Closed { .. } => "closed",
            Error::Malformed { .. } => "malformed",
            _ => "other",
        }
    }
}

/// Says which files are wanted, and where they can be had. Users of a fabric get a folder of their
/// own, never a daemon's key.
fn no_credentials(role: Role, path: &Path, cause: &io::Error) -> String {
    let folder = path.parent().unwrap_or(path);
    let (shown, users) = (path.display(), folder.join(files::USERS));
    let below = users.display();
    match role {
        Role::User if cause.kind() == io::ErrorKind::PermissionDenied && folder.ends_with(files::USERS) => {
            format!(
                "this user may not read {shown}: {cause}; the operator of the fabric gives that folder to a group of users with \
             `trib credentials DIR --users --group GROUP`"
            )
        }
        Role::User if users.exists() || cause.kind() == io::ErrorKind::PermissionDenied => format!(
            "this user may not read {shown}: {cause}; users of a fabric have a folder of their own, {below}, which `trib \
             credentials` makes: name it, with TRIB_MANAGER='tls://HOST:PORT?credentials={below}' or TRIB_CREDENTIALS={below}"
        ),
        Role::User => format!(
            "no credentials of a user at {shown}: {cause}; take the fabric's folder for users, the folder `users` that `trib \
             credentials` makes (ca.pem, user.pem, user.key), and name it with TRIB_CREDENTIALS or in TRIB_MANAGER"
        ),
        Role::Manager | Role::Node if cause.kind() == io::ErrorKind::PermissionDenied => {
            let group = if role == Role::Manager { "tributary-am" } else { "tributary-an" };
            format!(
                "the {role} may not read {shown}: {cause}; as root, give the file to the group of the user that the {role} runs as, which in its \
                 unit is {group}: `chgrp {group} {shown} && chmod 640 {shown}`, and see that the group may enter {}",
                folder.display()
            )
        }
        Role::Node => format!(
            "no credentials of a node at {shown}: {cause}; `trib credentials DIR --node NAME` makes the folder DIR/nodes/NAME with ca.pem, \
             node.pem and node.key: copy these there, or name the folder that has them, tls://HOST:PORT?credentials=DIR"
        ),
        Role::Manager => format!(
            "no credentials of a manager at {shown}: {cause}; `trib credentials DIR` makes them, --credentials DIR names them"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_a_users_key_is_told_of_the_users_folder_and_of_no_other() {
        let path = Path::new("/etc/fabric/user.key");
        let text = no_credentials(Role::User, path, &io::ErrorKind::PermissionDenied.into());
        assert!(text.contains("TRIB_CREDENTIALS=/etc/fabric/users") && !text.contains("manager.key"), "{text}");
        let path = Path::new("/etc/fabric/users/user.key");
        let text = no_credentials(Role::User, path, &io::ErrorKind::PermissionDenied.into());
        assert!(text.contains("--group GROUP") && !text.contains("users/users"), "{text}");
        let text = no_credentials(Role::User, Path::new("/nowhere/ca.pem"), &io::ErrorKind::NotFound.into());
        assert!(text.contains("folder for users"), "{text}");
    }

    #[test]
    fn every_kind_is_one_of_those_that_are_known() {
        let (address, text) = (String::new(), String::new());
        let resource = trib_messages::reply::Resource::Role;
        let refusal = Refusal { resource, asked: 1, available: 0, holder: None, since_ms: None, text };
        let certificate =
            || Box::new(Certificate { holder: Holder::Users, serial: "0A".parse::<Serial>().unwrap(), ends: 0 });
        let all = [
            Error::BadCertificate(String::new()),
            Error::Ended { certificate: certificate(), remedy: String::new() },
            Error::Withdrawn { certificate: certificate(), remedy: String::new() },
            Error::VersionMismatch { ours: 1, theirs: 2, software: String::new() },
            Error::Refused(refusal),
            Error::Timeout { address: address.clone(), waited: Duration::ZERO },
            Error::Closed { address: address.clone() },
            Error::Malformed { address, cause: String::new() },
            Error::NoManager,
        ];
        assert_eq!(all.map(|error| error.kind()), Error::KINDS);
    }

    #[test]
    fn a_daemon_that_may_not_read_its_key_is_told_to_give_it_to_its_group() {
        for (role, path, group) in [
            (Role::Manager, "/etc/tributary/manager.key", "tributary-am"),
            (Role::Node, "/etc/tributary/node.key", "tributary-an"),
        ] {
            let text = no_credentials(role, Path::new(path), &io::ErrorKind::PermissionDenied.into());
            assert!(text.contains(&format!("`chgrp {group} {path} && chmod 640 {path}`")), "{text}");
            assert!(!text.contains("no credentials"), "they are there: {text}");
            let text = no_credentials(role, Path::new(path), &io::ErrorKind::NotFound.into());
            assert!(text.contains("trib credentials DIR") && !text.contains("chgrp"), "{text}");
        }
    }
}
