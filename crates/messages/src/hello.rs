//! The first message of each side of a control channel.
//!
//! ```text
//!   manager                      node or user
//!      |  Hello (role manager)        |
//!      |----------------------------->|   only after the certificate was accepted
//!      |        Hello (role node|user)|
//!      |<-----------------------------|
//! ```
//! `Hello` never changes, so that two versions can always tell each other why they cannot talk.

use alloc::string::String;
use core::fmt;

/// What the sender is; a certificate is valid for exactly one role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The aggregation manager.
    Manager,
    /// An aggregation node.
    Node,
    /// An application or a tool: it asks for jobs and for the status.
    User,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 3] = [Role::Manager, Role::Node, Role::User];

    /// The role's word, as in file names and certificates.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Manager => "manager",
            Role::Node => "node",
            Role::User => "user",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What each side says first.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Hello {
    /// Protocol version, [`trib_wire::VERSION`]; both must be the same.
    pub version: u8,
    /// Software version, for people.
    pub software: String,
    /// What the sender wants to be; its certificate must agree.
    pub role: Role,
}
