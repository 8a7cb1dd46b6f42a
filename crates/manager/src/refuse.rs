//! Refusals that several files give.

use trib_control::clock::{span, unix_ms};
use trib_messages::reply::{Refusal, Resource};

/// A refusal that is not about amounts.
pub(crate) fn refuse(resource: Resource, holder: Option<&str>, text: impl Into<String>) -> Refusal {
    let holder = holder.map(String::from);
    Refusal { resource, asked: 1, available: 0, holder, since_ms: None, text: text.into() }
}

/// A refusal of more than there is.
pub(crate) fn too_much(resource: Resource, asked: u64, available: u64, text: impl Into<String>) -> Refusal {
    Refusal { resource, asked, available, holder: None, since_ms: None, text: text.into() }
}

/// The refusal, with the time since when it holds.
pub(crate) fn lasting(refusal: Refusal, since_ms: u64) -> Refusal {
    let text = format!("{} (so for {})", refusal.text, span(unix_ms().saturating_sub(since_ms)));
    Refusal { since_ms: Some(since_ms), text, ..refusal }
}

/// The refusal, which has held since the manager read the topology.
pub(crate) fn since_start(refusal: Refusal, started_ms: u64) -> Refusal {
    let age = span(unix_ms().saturating_sub(started_ms));
    let text = format!("{} (so since the manager read its topology {age} ago)", refusal.text);
    Refusal { since_ms: Some(started_ms), text, ..refusal }
}
