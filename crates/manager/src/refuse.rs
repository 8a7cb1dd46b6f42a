//! Refusals that several places give.

use trib_wire::control::reply::{Refusal, Resource};

/// Something that is not a matter of amounts.
pub(crate) fn refuse(resource: Resource, holder: Option<&str>, text: impl Into<String>) -> Refusal {
    Refusal { resource, asked: 1, available: 0, holder: holder.map(String::from), text: text.into() }
}

/// More than there is.
pub(crate) fn too_much(resource: Resource, asked: u64, available: u64, text: impl Into<String>) -> Refusal {
    Refusal { resource, asked, available, holder: None, text: text.into() }
}
