//! Whose a certificate is: the manager, one aggregation node, the fabric's users, or a tenant,
//! which is a group of users whose programs count together. The program itself is not asked.
//!
//! ```text
//!   holder          names in its certificate                       where it lies
//!   manager         manager.tributary                              DIR/manager.pem
//!   node NAME       node.tributary, NAME.node.tributary            DIR/nodes/NAME/node.pem
//!   users           user.tributary                                 DIR/user.pem, and DIR/users/
//!   tenant NAME     user.tributary, NAME.tenant.tributary          DIR/tenants/NAME/user.pem
//! ```
//! A node's certificate always names it, so that no list says which nodes have one of their own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustls::pki_types::ServerName;
use trib_messages::hello::Role;
use webpki::EndEntityCert;

use crate::Error;

/// Whose a certificate is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// The manager.
    Manager,
    /// The fabric's users, who belong to no tenant.
    Users,
    /// A tenant's users.
    Tenant(String),
    /// An aggregation node of the topology. `None`: the certificate is of a release that did not
    /// name nodes, and nobody is let in with it.
    Node(Option<String>),
}

impl Holder {
    /// A tenant of this name.
    pub fn tenant(name: &str) -> Result<Holder, Error> {
        if is_tenant_name(name) { Ok(Holder::Tenant(name.into())) } else { Err(Error::BadTenant(name.into())) }
    }

    /// A node of this name.
    pub fn node(name: &str) -> Result<Holder, Error> {
        if is_node_name(name) { Ok(Holder::Node(Some(name.into()))) } else { Err(Error::BadNode(name.into())) }
    }

    /// The role in which it may speak.
    pub fn role(&self) -> Role {
        match self {
            Holder::Manager => Role::Manager,
            Holder::Users | Holder::Tenant(_) => Role::User,
            Holder::Node(_) => Role::Node,
        }
    }

    /// The option of `trib credentials` that names it.
    pub fn option(&self) -> String {
        match self {
            Holder::Manager => "--am".into(),
            Holder::Users => "--users".into(),
            Holder::Tenant(name) => format!("--tenant {name}"),
            Holder::Node(Some(name)) => format!("--node {name}"),
            Holder::Node(None) => "--node NAME".into(),
        }
    }

    /// The holder that a certificate names.
    pub(crate) fn named_by(certificate: &EndEntityCert<'_>) -> Result<Holder, Error> {
        let names_role = |role: &Role| certificate.verify_is_valid_for_subject_name(&role_name(*role)).is_ok();
        let role = Role::ALL.into_iter().find(names_role);
        let named = |suffix: &str| certificate.valid_dns_names().find_map(|name| name.strip_suffix(suffix));
        match role.ok_or_else(|| Error::BadCertificate("it names no role".into()))? {
            Role::Manager => Ok(Holder::Manager),
            Role::Node => Ok(Holder::Node(named(NODE).map(Into::into))),
            Role::User => match named(TENANT).filter(|name| is_tenant_name(name)) {
                Some(name) => Ok(Holder::Tenant(name.into())),
                None => Ok(Holder::Users),
            },
        }
    }

    /// The names that stand in its certificate.
    pub(crate) fn names(&self) -> Vec<String> {
        let role = role_text(self.role());
        match self {
            Holder::Manager | Holder::Users | Holder::Node(None) => vec![role],
            Holder::Tenant(name) => vec![role, format!("{name}{TENANT}")],
            Holder::Node(Some(name)) => vec![role, format!("{name}{NODE}")],
        }
    }

    /// The folder of its certificate and key, below the folder of the fabric's credentials.
    pub(crate) fn folder(&self, fabric: &Path) -> PathBuf {
        match self {
            Holder::Manager | Holder::Users | Holder::Node(None) => fabric.into(),
            Holder::Tenant(name) => fabric.join(TENANTS).join(name),
            Holder::Node(Some(name)) => fabric.join(NODES).join(name),
        }
    }
}

/// In words for people, which [`FromStr`] reads.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Manager => f.write_str("manager"),
            Holder::Users => f.write_str("users"),
            Holder::Tenant(name) => write!(f, "tenant {name}"),
            Holder::Node(Some(name)) => write!(f, "node {name}"),
            Holder::Node(None) => f.write_str("a node without a name"),
        }
    }
}

impl FromStr for Holder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Holder, Error> {
        match text.split_once(' ') {
            None if text == "manager" => Ok(Holder::Manager),
            None if text == "users" => Ok(Holder::Users),
            Some(("tenant", name)) => Holder::tenant(name),
            Some(("node", name)) => Holder::node(name),
            _ => Err(Error::BadCertificate(format!("`{text}` is nobody who has one"))),
        }
    }
}

/// Whether this can be a tenant's name: a label of a domain name in lower case, 1 to 63 of `a-z`,
/// `0-9` and `-`, without a `-` at either end.
pub fn is_tenant_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(is_letter) && !name.starts_with('-') && !name.ends_with('-')
}

/// Whether a certificate can name a node so: labels of `a-z`, `A-Z`, `0-9`, `_` and `-` with dots
/// between them, at most 200 bytes in all.
pub(crate) fn is_node_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 200 && name.split('.').all(is_label)
}

/// The name in a certificate that stands for `role`.
pub(crate) fn role_name(role: Role) -> ServerName<'static> {
    ServerName::try_from(role_text(role)).expect("a role's word is a valid label")
}

fn role_text(role: Role) -> String {
    format!("{role}.tributary")
}

/// The folder of the nodes' folders.
pub(crate) const NODES: &str = "nodes";
/// The folder of the tenants' folders.
pub(crate) const TENANTS: &str = "tenants";
const NODE: &str = ".node.tributary";
const TENANT: &str = ".tenant.tributary";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_name_is_a_label_in_lower_case() {
        for name in ["a", "astro", "bio-2", "0", &"x".repeat(63)] {
            assert!(is_tenant_name(name), "{name}");
        }
        for name in ["", "*", "Astro", "a.b", "-a", "a-", "ä", "a b", "../a", &"x".repeat(64)] {
            assert!(matches!(Holder::tenant(name), Err(Error::BadTenant(_))), "{name}");
        }
    }

    #[test]
    fn a_nodes_name_is_labels_with_dots_between_them() {
        for name in ["leaf0", "SW_1.rack-2"] {
            assert_eq!(Holder::node(name).unwrap(), Holder::Node(Some(name.into())));
        }
        for name in ["", "a b", "../x", "a..b", "-a", "a/b", "ä"] {
            assert!(matches!(Holder::node(name), Err(Error::BadNode(_))), "{name}");
        }
    }

    #[test]
    fn a_holder_survives_printing_and_parsing() {
        for holder in
            [Holder::Manager, Holder::Users, Holder::tenant("astro").unwrap(), Holder::node("SW_1.rack-2").unwrap()]
        {
            assert_eq!(holder.to_string().parse::<Holder>().unwrap(), holder);
        }
        for wrong in ["", "node", "node a b", "tenant A", "somebody"] {
            assert!(wrong.parse::<Holder>().is_err(), "{wrong}");
        }
    }
}
