//! The tenants file: its text becomes a checked policy.
//!
//! ```toml
//! [node]                  # for all jobs together at one aggregation node; what is left out has no
//!                         # bound
//! memory = 68719476736    # bytes of buffers
//! streams = 64            # stream contexts
//! groups = 65536
//! osts = 4194304
//! jobs = 64
//!
//! [root]                  # of the jobs whose trees have their root at one node
//! jobs = 16
//! streams = 32
//!
//! [job]
//! share = "1/16"          # of [node]: what a job gets that does not ask
//!
//! [[tenant]]
//! name = "astro"          # as in its certificate; "*": all others together
//! priority = 10           # the higher one goes first; 0 if left out
//! jobs = 8                # at once
//! streams = 16            # at one node, all its jobs together; so groups, osts and memory
//! memory = "50%"          # of [node]
//! reserve = "1/4"         # of [node] and [root]: nobody else gets it
//! hosts = ["h[0-3]"]      # nobody else's jobs run there
//! data_path = "signed"    # the least that protects its payloads
//! sees = "all"            # also jobs of others; "own" if left out
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File as Handle;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use trib_control::is_tenant_name;
use trib_topology::Topology;
use trib_topology::hostlist::expand;
use trib_wire::Mode;

use super::amounts::{Caps, Kind, Share};
use super::book::Scope;
use super::policy::{OTHERS, Policy, Tenant};

/// Why a tenants file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("tenants {}{}: {cause}; {remedy}", file.display(), line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct PolicyError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if one is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    node: Node,
    #[serde(default)]
    root: Root,
    #[serde(default)]
    job: Job,
    #[serde(default)]
    tenant: Vec<Entry>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Node {
    jobs: Option<Spanned<u64>>,
    groups: Option<Spanned<u64>>,
    osts: Option<Spanned<u64>>,
    streams: Option<Spanned<u64>>,
    memory: Option<Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Root {
    jobs: Option<Spanned<u64>>,
    streams: Option<Spanned<u64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Job {
    share: Option<Spanned<Share>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    priority: Option<Spanned<i64>>,
    jobs: Option<Spanned<u64>>,
    groups: Option<Spanned<Amount>>,
    osts: Option<Spanned<Amount>>,
    streams: Option<Spanned<Amount>>,
    memory: Option<Spanned<Amount>>,
    reserve: Option<Spanned<Share>>,
    #[serde(default)]
    hosts: Vec<Spanned<String>>,
    data_path: Option<Mode>,
    #[serde(default)]
    sees: Sees,
}

/// Whose jobs a tenant is told of.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum Sees {
    #[default]
    Own,
    All,
}

/// A number, or a share of what a node has.
#[derive(Clone, Copy)]
enum Amount {
    Number(u64),
    Share(Share),
}

impl Policy {
    /// Reads a file.
    pub(crate) fn load(path: &Path, topology: &Topology) -> Result<Self, PolicyError> {
        let unreadable = |cause: io::Error| PolicyError {
            file: path.into(),
            line: None,
            cause: format!("cannot read it: {cause}"),
            remedy: "name an existing file that this user may read",
        };
        let mut text = String::new();
        let length = Handle::open(path).and_then(|file| file.take(LENGTH_MAX + 1).read_to_string(&mut text));
        if length.map_err(unreadable)? as u64 > LENGTH_MAX {
            return Err(unreadable(io::Error::other(format!("it is longer than {LENGTH_MAX} bytes"))));
        }
        Self::parse(&text, path, topology)
    }

    /// Reads the text of a file. Errors name `path`.
    pub(crate) fn parse(text: &str, path: &Path, topology: &Topology) -> Result<Self, PolicyError> {
        let wrong = |Fault { span, cause, remedy }: Fault| {
            let line = span.map(|span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count());
            PolicyError { file: path.into(), line, cause, remedy }
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let cause = error.message().trim().replace('\n', ": ");
            wrong(Fault { span: error.span(), cause, remedy: "correct the line; docs/tenants.md shows every field" })
        })?;
        check(&file, topology).map_err(wrong)
    }
}

struct Fault {
    span: Option<Range<usize>>,
    cause: String,
    remedy: &'static str,
}

fn fault<T, S>(at: &Spanned<S>, cause: String, remedy: &'static str) -> Result<T, Fault> {
    Err(Fault { span: Some(at.span()), cause, remedy })
}

fn check(file: &File, topology: &Topology) -> Result<Policy, Fault> {
    let mut policy = Policy::default();
    let File { node, root, job, tenant } = file;
    for (kind, most) in [
        (Kind::Jobs, &node.jobs),
        (Kind::Groups, &node.groups),
        (Kind::Osts, &node.osts),
        (Kind::Streams, &node.streams),
        (Kind::Memory, &node.memory),
    ] {
        policy.node.set(kind, positive(kind, most)?);
    }
    for (kind, most) in [(Kind::Jobs, &root.jobs), (Kind::Streams, &root.streams)] {
        policy.root.set(kind, positive(kind, most)?);
    }
    if let Some(share) = &job.share {
        if policy.node.are_none() {
            return fault(share, "share is of what [node] has, which says nothing".into(), SAY_NODE);
        }
        policy.share = Some(*share.get_ref());
    }
    tenant.iter().try_for_each(|entry| add(&mut policy, entry, topology))?;
    Ok(policy)
}

fn positive(kind: Kind, most: &Option<Spanned<u64>>) -> Result<Option<u64>, Fault> {
    match most {
        Some(most) if *most.get_ref() == 0 => fault(
            most,
            format!("{} = 0 leaves nothing for any job", kind.word()),
            "write how much there is, or leave it out",
        ),
        most => Ok(most.as_ref().map(|most| *most.get_ref())),
    }
}

fn add(policy: &mut Policy, entry: &Entry, topology: &Topology) -> Result<(), Fault> {
    let name = entry.name.get_ref();
    if name != OTHERS && !is_tenant_name(name) {
        return fault(
            &entry.name,
            format!("`{name}` is no name for a tenant"),
            "write a-z, 0-9 and -, or * for all others",
        );
    }
    if policy.tenants.contains_key(name) {
        return fault(&entry.name, format!("tenant {name} stands there twice"), "make one of the two");
    }
    let mut tenant = Tenant { priority: priority(entry)?, ..Tenant::default() };
    tenant.fabric.set(Kind::Jobs, entry.jobs.as_ref().map(|jobs| *jobs.get_ref()));
    for (kind, amount) in [
        (Kind::Groups, &entry.groups),
        (Kind::Osts, &entry.osts),
        (Kind::Streams, &entry.streams),
        (Kind::Memory, &entry.memory),
    ] {
        let Some(amount) = amount else { continue };
        tenant.node.set(kind, Some(limit(kind, amount, &policy.node)?));
    }
    tenant.reserve = entry.reserve.as_ref().map(|share| *share.get_ref());
    tenant.data_path = entry.data_path;
    tenant.sees_all = entry.sees == Sees::All;
    policy.tenants.insert(name.clone(), tenant);
    if let Some(reserve) = &entry.reserve {
        check_reserve(policy, name, reserve)?;
    }
    entry.hosts.iter().try_for_each(|list| keep_hosts(policy, name, list, topology))
}

fn priority(entry: &Entry) -> Result<i32, Fault> {
    let Some(priority) = &entry.priority else { return Ok(0) };
    let value = *priority.get_ref();
    match i32::try_from(value) {
        Ok(number) if (-PRIORITY_MAX..=PRIORITY_MAX).contains(&number) => Ok(number),
        _ => fault(
            priority,
            format!("priority = {value} lies outside -{PRIORITY_MAX}..={PRIORITY_MAX}"),
            "choose a value inside",
        ),
    }
}

fn limit(kind: Kind, amount: &Spanned<Amount>, node: &Caps) -> Result<u64, Fault> {
    let word = kind.word();
    let most = match (amount.get_ref(), node.get(kind)) {
        (Amount::Number(number), _) => *number,
        (Amount::Share(share), Some(capacity)) => share.of(capacity),
        (Amount::Share(share), None) => {
            return fault(
                amount,
                format!("{word} = \"{share}\" is of what [node] has, which says no {word}"),
                SAY_NODE,
            );
        }
    };
    if most == 0 {
        return fault(
            amount,
            format!("{word} comes to nothing: no job could run"),
            "write more, or jobs = 0 to keep a tenant out",
        );
    }
    Ok(most)
}

fn check_reserve(policy: &Policy, name: &str, reserve: &Spanned<Share>) -> Result<(), Fault> {
    if policy.node.are_none() && policy.root.are_none() {
        return fault(reserve, "reserve is of what [node] and [root] have, which say nothing".into(), SAY_NODE);
    }
    for (scope, title) in [(Scope::Node(String::new()), "[node]"), (Scope::Root(String::new()), "[root]")] {
        for kind in Kind::ALL {
            let word = kind.word();
            let Some(capacity) = policy.capacity(&scope).get(kind) else { continue };
            let all: u64 = policy.tenants.keys().map(|name| policy.reserved(name, &scope).get(kind)).sum();
            if all > capacity {
                let cause = format!("with it the tenants reserve {all} {word} of {capacity} in {title}");
                return fault(reserve, cause, "let all shares together be no more than everything");
            }
            let kept = policy.reserved(name, &scope).get(kind);
            if let Some(most) = policy.limit(name, &scope).get(kind).filter(|most| *most < kept) {
                let cause = format!("reserve keeps {kept} {word}, and {word} lets the tenant have no more than {most}");
                return fault(reserve, cause, "raise the one or lower the other");
            }
        }
    }
    Ok(())
}

fn keep_hosts(policy: &mut Policy, name: &str, list: &Spanned<String>, topology: &Topology) -> Result<(), Fault> {
    let hosts = match expand(list.get_ref()) {
        Ok(hosts) => hosts,
        Err(error) => return fault(list, format!("hosts: {error}"), "write names or lists such as h[0-15]"),
    };
    let known: BTreeSet<&str> = topology.hosts().iter().map(|host| host.name.as_str()).collect();
    for host in hosts {
        if !known.contains(host.as_str()) && !known.contains("*") {
            return fault(list, format!("the topology has no host {host}"), "correct the name, or add the host there");
        }
        if let Some(other) = policy.hosts.insert(host.clone(), name.to_owned()).filter(|other| other != name) {
            let cause = format!("host {host} is kept for tenant {other} already");
            return fault(list, cause, "keep it for one of them");
        }
    }
    Ok(())
}

// This is written by hand, because an untagged enum would answer every mistake with "did not match
// any variant".
struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a share of what a node has such as \"1/8\" or \"25%\"")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Amount, E> {
        u64::try_from(value).map(Amount::Number).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Amount, E> {
        text.parse().map(Amount::Share).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AmountVisitor)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|cause| D::Error::custom(format!("{cause}; write \"1/8\" or \"25%\"")))
    }
}

const SAY_NODE: &str = "say under [node] how much one aggregation node has";
const PRIORITY_MAX: i32 = 1000;
/// The largest length of a file in bytes. A longer file is not a tenants file.
const LENGTH_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
