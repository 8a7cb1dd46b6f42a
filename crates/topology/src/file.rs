//! The topology file as it is written.
//!
//! ```toml
//! [fabric]
//! name = "cluster"
//! mtu = 9000                      # path MTU between hosts and nodes; 1500 if left out
//!
//! [[node]]
//! name = "spine"
//!
//! [[node]]
//! name = "leaf0"
//! parent = "spine"
//! rate = "400gbit"                # optional, for predictions: of the link to the parent
//! via = "ucx"                     # optional: it connects to its parent over UCX; tcp if left out
//! address = "10.0.1.1"            # optional: it is on this host, and connects from here only
//! control = "192.168.0.1"         # optional: it calls the manager from here instead
//!
//! [[host]]
//! name = "host0"                  # or "*" for every host that is not named
//! rate = "100gbit"                # optional, for predictions
//! leaf = "leaf0"                  # or leaves = ["leaf0", "leaf1"]: ranks in contiguous blocks
//! address = "10.0.0.1"            # optional: its ranks may connect from here only
//!                                  # addresses = [...]: one for each of several ports
//! via = "ucx"                     # optional: its ranks connect over UCX; tcp if left out
//!
//! [limits]
//! groups = 1000                               # default and maximum at once
//! streams = { default = 4, maximum = 16 }     # each on its own
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use toml::Spanned;
use trib_messages::quota::{QUOTA, QuotaField};
use trib_messages::via::Via;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    pub fabric: Fabric,
    #[serde(default)]
    pub node: Vec<Node>,
    #[serde(default)]
    pub host: Vec<Host>,
    #[serde(default)]
    pub limits: Limits,
}

/// `[fabric]`
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fabric {
    pub name: Option<String>,
    pub mtu: Option<Spanned<u32>>,
    #[serde(default)]
    pub faults: bool,
}

/// `[[node]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    pub name: Spanned<String>,
    pub parent: Option<Spanned<String>>,
    pub rate: Option<Spanned<String>>,
    pub address: Option<IpAddr>,
    pub addresses: Option<Vec<IpAddr>>,
    pub control: Option<IpAddr>,
    #[serde(default)]
    pub via: Via,
}

/// `[[host]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub name: Spanned<String>,
    pub leaf: Option<Spanned<String>>,
    pub rate: Option<Spanned<String>>,
    pub leaves: Option<Vec<Spanned<String>>>,
    pub address: Option<IpAddr>,
    pub addresses: Option<Vec<IpAddr>>,
    #[serde(default)]
    pub via: Via,
}

/// `[limits]`: the bounds that the file gives, by limit.
#[derive(Default)]
pub(crate) struct Limits(pub BTreeMap<QuotaField, Spanned<Bound>>);

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let named = BTreeMap::<LimitName, Spanned<Given>>::deserialize(from)?;
        let bounds = named.into_iter().map(|(LimitName(field), given)| {
            let span = given.span();
            let Given { default, maximum } = given.into_inner();
            let read = |value: Option<Value>| value.map(|value| value.of(field)).transpose();
            Ok((field, Spanned::new(span, Bound { default: read(default)?, maximum: read(maximum)? })))
        });
        bounds.collect::<Result<_, String>>().map(Limits).map_err(serde::de::Error::custom)
    }
}

/// The name of a limit.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LimitName(QuotaField);

impl<'de> Deserialize<'de> for LimitName {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let field = QuotaField::from_name(&name).filter(|field| field.may_be_bounded());
        field.map(LimitName).ok_or_else(|| {
            let names = QuotaField::all().filter(|field| field.may_be_bounded()).map(QuotaField::name);
            let names = names.collect::<Vec<_>>().join(", ");
            serde::de::Error::custom(format!("unknown limit `{name}`, expected one of {names}"))
        })
    }
}

/// One limit's default and maximum, as far as the file gives them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bound {
    pub default: Option<u64>,
    pub maximum: Option<u64>,
}

/// What is written of one limit: a value, or a table of default and maximum.
struct Given {
    default: Option<Value>,
    maximum: Option<Value>,
}

/// A number, or a name where a limit's values have names.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Name(String),
}

impl Value {
    /// The value of a limit for which this stands.
    fn of(self, field: QuotaField) -> Result<u64, String> {
        let value = match &self {
            Value::Number(number) if field.row().names.is_empty() => Some(*number),
            Value::Name(name) if !field.row().names.is_empty() => field.read(name),
            _ => None,
        };
        value.ok_or_else(|| format!("limit `{}` is {}", field.name(), field.row().range()))
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(BoundVisitor)
    }
}

// This is written by hand, because an untagged enum would answer every slip with "did not match any
// variant".
struct BoundVisitor;

impl<'de> serde::de::Visitor<'de> for BoundVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number, or { default = NUMBER, maximum = NUMBER }, or names instead of numbers")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Given, E> {
        let unexpected = serde::de::Unexpected::Signed(value);
        let value = u64::try_from(value).map_err(|_| E::invalid_value(unexpected, &self))?;
        let value = Some(Value::Number(value));
        Ok(Given { default: value.clone(), maximum: value })
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Given, E> {
        if !QUOTA.iter().any(|row| row.names.contains(&name)) {
            return Err(E::invalid_type(serde::de::Unexpected::Str(name), &self));
        }
        let value = Some(Value::Name(name.to_owned()));
        Ok(Given { default: value.clone(), maximum: value })
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Given, A::Error> {
        let pair = Pair::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(Given { default: pair.default, maximum: pair.maximum })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    default: Option<Value>,
    maximum: Option<Value>,
}
