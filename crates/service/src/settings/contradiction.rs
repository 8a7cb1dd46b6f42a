//! Finds values that are each right and cannot hold together.
//!
//! The kinds of settings decide which values can clash, so a new row of a table needs no rule of
//! its own. No two sockets have one address, no two files have one path, and no node has its
//! manager's address.

use std::net::{IpAddr, SocketAddr};

use super::origin::Origin;
use super::values::Named;
use super::{Daemon, SettingsError, Value};

/// Finds the first two that clash, in the order of the table.
pub(super) fn check(daemon: Daemon, values: &Named) -> Result<(), SettingsError> {
    let names = || daemon.settings().iter().map(|setting| setting.name);
    for (at, first) in names().enumerate() {
        for second in names().skip(at + 1) {
            let (Some(one), Some(other)) = (values.get(first), values.get(second)) else { continue };
            let Some(remedy) = clash(&one.value, &other.value) else { continue };
            // The value to change is named first. If one of the two is a default, that is the other
            // one, because a person wrote it.
            let mut pair = [(second, other), (first, one)];
            pair.sort_by_key(|(_, given)| given.origin == Origin::Default);
            let [(name, given), (against, holds)] = pair;
            let cause = format!("{name} = {} contradicts {against} = {} ({})", given.value, holds.value, holds.origin);
            return Err(SettingsError::Contradiction { origin: given.origin.to_string(), cause, remedy });
        }
    }
    Ok(())
}

/// What to do if two values cannot hold together; `None` if they can.
fn clash(one: &Value, other: &Value) -> Option<&'static str> {
    let clash = |one: &[SocketAddr], other: &[SocketAddr]| {
        one.iter().any(|address| other.iter().any(|against| meet(*address, *against)))
    };
    match (one, other) {
        (Value::Manager(manager), own) => {
            let ip: IpAddr = manager.host().parse().ok()?;
            let there = SocketAddr::new(ip, manager.port());
            let remedy = "the manager is another program: give the node an address of its own";
            clash(&[there], sockets(own)).then_some(remedy)
        }
        (Value::Path(one), Value::Path(other)) => (one == other).then_some("give each a path of its own"),
        _ => clash(sockets(one), sockets(other)).then_some("give one of them another port"),
    }
}

/// The addresses at which a daemon would listen.
fn sockets(value: &Value) -> &[SocketAddr] {
    match value {
        Value::Address(address) => std::slice::from_ref(address),
        Value::Addresses(addresses) => addresses,
        _ => &[],
    }
}

/// Whether two sockets cannot both listen at these addresses. Port 0 clashes with no other, because
/// the kernel gives it a free port.
fn meet(one: SocketAddr, other: SocketAddr) -> bool {
    let same = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && same
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn sockets_meet_at_one_port_of_one_or_any_address() {
        for (one, other, meets) in [
            ("10.0.0.1:70", "10.0.0.1:70", true),
            ("0.0.0.0:70", "10.0.0.1:70", true),
            ("10.0.0.1:70", "[::]:70", true),
            ("10.0.0.1:70", "10.0.0.2:70", false),
            ("10.0.0.1:70", "10.0.0.1:71", false),
            ("10.0.0.1:0", "10.0.0.1:0", false),
        ] {
            assert_eq!(meet(address(one), address(other)), meets, "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_which_of_two_sockets_is_named_first(ports in any::<[u16; 2]>(), ips in any::<[[u8; 4]; 2]>()) {
            let [one, other] = [0, 1].map(|i| SocketAddr::from((ips[i], ports[i] % 3)));
            prop_assert_eq!(meet(one, other), meet(other, one));
        }
    }
}
