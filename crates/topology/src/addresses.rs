//! The addresses of one node or host: `address = "10.0.0.1"`, or `addresses = ["10.0.0.1",
//! "10.1.0.1"]`, one for each port.

use std::net::IpAddr;

use trib_messages::node::PORTS_MAX;

/// What is wrong with the addresses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressFault {
    /// Both fields are given.
    #[error("`{0}` has `address` and `addresses`")]
    Both(String),
    /// The list is empty.
    #[error("`{0}` has an empty list of addresses")]
    None(String),
    /// One address stands for two ports.
    #[error("`{name}` has the address {address} twice")]
    Twice {
        /// The name of the node or host.
        name: String,
        /// The address.
        address: IpAddr,
    },
    /// There are more addresses than any machine has ports.
    #[error("`{name}` has {count} addresses; 1 to {PORTS_MAX} are possible")]
    TooMany {
        /// The name of the node or host.
        name: String,
        /// How many addresses there are.
        count: usize,
    },
}

impl AddressFault {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            AddressFault::Both(_) => "keep one of the two",
            AddressFault::None(_) => "write one address for each port, or remove the field",
            AddressFault::Twice { .. } => "write one address for each port, each another one",
            AddressFault::TooMany { .. } => "write one address for each port that jobs may use",
        }
    }
}

/// The addresses of `name`, whichever of the two fields holds them.
pub(crate) fn addresses(
    name: &str,
    address: Option<IpAddr>,
    addresses: Option<&[IpAddr]>,
) -> Result<Vec<IpAddr>, AddressFault> {
    let Some(several) = addresses else { return Ok(address.into_iter().collect()) };
    let name = || name.to_owned();
    if address.is_some() {
        return Err(AddressFault::Both(name()));
    }
    match several {
        [] => Err(AddressFault::None(name())),
        _ if several.len() > PORTS_MAX => Err(AddressFault::TooMany { name: name(), count: several.len() }),
        _ => match several.iter().enumerate().find(|(at, address)| several[..*at].contains(address)) {
            Some((_, address)) => Err(AddressFault::Twice { name: name(), address: *address }),
            None => Ok(several.to_vec()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_address_or_some_that_differ(one in any::<Option<u8>>(), several in prop::option::of(prop::collection::vec(0u8..40, 0..20))) {
            let ip = |last: u8| IpAddr::from([10, 0, 0, last]);
            let list: Option<Vec<IpAddr>> = several.map(|several| several.into_iter().map(ip).collect());
            let is_good = list.as_ref().is_none_or(|list| {
                one.is_none() && (1..=PORTS_MAX).contains(&list.len()) && list.iter().collect::<BTreeSet<_>>().len() == list.len()
            });
            let read = addresses("leaf0", one.map(ip), list.as_deref());
            match read {
                Ok(read) => {
                    prop_assert!(is_good);
                    prop_assert_eq!(read, list.unwrap_or_else(|| one.map(ip).into_iter().collect()));
                }
                Err(fault) => {
                    prop_assert!(!is_good);
                    prop_assert!(fault.to_string().contains("`leaf0`") && !fault.remedy().is_empty());
                }
            }
        }
    }
}
