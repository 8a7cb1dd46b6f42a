//! The established connections, and which of them gives way where there are as many as may be.
//!
//! Some are for nodes alone. Users of one address, and of one tenant, may have a part of the rest;
//! where they have it, the oldest of theirs gives way that holds no job and waits for no answer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use trib_control::{Certificate, Channel, Peer};
use trib_messages::hello::Role;

use crate::programs::rendezvous::MEETING_MAX;

/// The established connections by number, in the order in which they came.
pub(super) struct Guests<C = Channel> {
    all: BTreeMap<u64, Guest<C>>,
    last: u64,
    limits: Limits,
}

/// How many connections there may be.
#[derive(Clone, Copy)]
struct Limits {
    all: usize,
    users: usize,
    of_tenant: usize,
    of_address: usize,
}

struct Guest<C> {
    certificate: Certificate,
    address: IpAddr,
    engaged: Arc<AtomicBool>,
    channel: Weak<C>,
}

/// A connection that was let in.
pub(super) struct Entered<C> {
    pub(super) number: u64,
    /// To be set while the connection holds a job or waits for an answer.
    pub(super) engaged: Arc<AtomicBool>,
    /// The connections that give way, to be closed.
    pub(super) instead_of: Vec<Arc<C>>,
}

impl<C> Default for Guests<C> {
    fn default() -> Guests<C> {
        Guests { all: BTreeMap::new(), last: 0, limits: LIMITS }
    }
}

impl<C> Guests<C> {
    /// Lets a connection in. `None` if it cannot be.
    pub(super) fn enter(&mut self, peer: &Peer, channel: &Arc<C>) -> Option<Entered<C>> {
        let address = peer.address.ip();
        let mut instead_of = Vec::new();
        if peer.role() == Role::User {
            let Limits { of_address, of_tenant, users, .. } = self.limits;
            instead_of.extend(self.make_room(of_address, |guest| guest.address == address)?);
            instead_of.extend(self.make_room(of_tenant, |guest| guest.certificate.holder == peer.certificate.holder)?);
            instead_of.extend(self.make_room(users, |_| true)?);
        } else if self.all.len() >= self.limits.all {
            return None;
        }
        self.last += 1;
        let engaged = Arc::new(AtomicBool::new(false));
        let guest = Guest {
            certificate: peer.certificate.clone(),
            address,
            engaged: engaged.clone(),
            channel: Arc::downgrade(channel),
        };
        self.all.insert(self.last, guest);
        Some(Entered { number: self.last, engaged, instead_of })
    }

    /// If users of a kind have as many connections as they may, takes off the oldest that can give
    /// way. `None` if there is none.
    fn make_room(&mut self, most: usize, is_of_kind: impl Fn(&Guest<C>) -> bool) -> Option<Option<Arc<C>>> {
        if self.all.len() < most {
            return Some(None);
        }
        let users =
            || self.all.iter().filter(|(_, guest)| guest.certificate.holder.role() == Role::User && is_of_kind(guest));
        if users().count() < most {
            return Some(None);
        }
        let idle = users().find(|(_, guest)| !guest.engaged.load(Ordering::Relaxed)).map(|(number, _)| *number)?;
        Some(self.all.remove(&idle).and_then(|guest| guest.channel.upgrade()))
    }

    /// Those whose certificate is one of these.
    pub(super) fn with(&self, is_one: impl Fn(&Certificate) -> bool) -> Vec<(Certificate, Arc<C>)> {
        let shown = self.all.values().filter(|guest| is_one(&guest.certificate));
        shown.filter_map(|guest| Some((guest.certificate.clone(), guest.channel.upgrade()?))).collect()
    }

    /// The connection has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.all.remove(&number);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every connection that is still there.
    pub(super) fn channels(&self) -> impl Iterator<Item = Arc<C>> {
        self.all.values().filter_map(|guest| guest.channel.upgrade())
    }
}

/// All connections.
pub(super) const ESTABLISHED_MAX: usize = 8192;
const LIMITS: Limits =
    Limits { all: ESTABLISHED_MAX, users: ESTABLISHED_MAX - 1024, of_tenant: MEETING_MAX as usize, of_address: 2048 };

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use trib_control::Holder;

    use super::*;

    fn peer(role: Role, tenant: Option<&str>, address: u8) -> Peer {
        let holder = match (role, tenant) {
            (Role::Manager, _) => Holder::Manager,
            (Role::Node, _) => Holder::node("n").unwrap(),
            (Role::User, None) => Holder::Users,
            (Role::User, Some(tenant)) => Holder::tenant(tenant).unwrap(),
        };
        let certificate = Certificate { holder, serial: format!("{address:02X}").parse().unwrap(), ends: u64::MAX };
        let address = SocketAddr::from(([10, 0, 0, address], 1));
        Peer { certificate, software: String::new(), address }
    }

    /// Room for eight: six users, four of a tenant, three of an address.
    fn guests() -> Guests<u32> {
        Guests { limits: Limits { all: 8, users: 6, of_tenant: 4, of_address: 3 }, ..Guests::default() }
    }

    #[test]
    fn those_with_one_certificate_are_found() {
        let (mut guests, channel) = (guests(), Arc::new(0));
        for address in [1, 2, 1] {
            guests.enter(&peer(Role::User, None, address), &channel).unwrap();
        }
        let found = guests.with(|certificate| certificate.serial.to_string() == "01");
        assert!(found.len() == 2 && found.iter().all(|(shown, _)| shown.serial.to_string() == "01"), "{found:?}");
    }

    #[test]
    fn the_oldest_stranger_of_an_address_gives_way() {
        let (mut guests, user) = (guests(), peer(Role::User, None, 1));
        let channels: Vec<Arc<u32>> = (0..4).map(Arc::new).collect();
        let entered: Vec<Entered<u32>> =
            channels[..3].iter().map(|channel| guests.enter(&user, channel).unwrap()).collect();
        entered[0].engaged.store(true, Ordering::Relaxed);
        let fourth = guests.enter(&user, &channels[3]).unwrap();
        assert_eq!(fourth.instead_of, [channels[1].clone()], "the oldest one holds a job");
        assert_eq!(guests.len(), 3);
    }

    #[test]
    fn where_all_are_engaged_nobody_gives_way_and_other_addresses_are_let_in() {
        let mut guests = guests();
        let channel = Arc::new(0);
        for _ in 0..3 {
            let entered = guests.enter(&peer(Role::User, Some("a"), 1), &channel).unwrap();
            entered.engaged.store(true, Ordering::Relaxed);
        }
        assert!(guests.enter(&peer(Role::User, Some("b"), 1), &channel).is_none());
        let other = guests.enter(&peer(Role::User, Some("a"), 2), &channel).unwrap();
        other.engaged.store(true, Ordering::Relaxed);
        assert!(guests.enter(&peer(Role::User, Some("a"), 3), &channel).is_none(), "the tenant has its part");
        assert!(guests.enter(&peer(Role::User, Some("b"), 3), &channel).is_some());
    }

    #[test]
    fn who_gives_way_for_an_address_does_not_make_room_for_another_tenant() {
        let (mut guests, channel) = (guests(), Arc::new(0));
        let mut enter = |tenant, address| guests.enter(&peer(Role::User, Some(tenant), address), &channel);
        let first = [("b", 1), ("b", 1), ("a", 1), ("a", 2), ("a", 2), ("a", 3)];
        assert!(first.into_iter().all(|(tenant, address)| enter(tenant, address).unwrap().instead_of.is_empty()));
        // The address has three, and the tenant four: one of each gives way.
        assert_eq!(enter("a", 1).unwrap().instead_of.len(), 2);
        let a = Holder::tenant("a").unwrap();
        let of_a = guests.all.values().filter(|guest| guest.certificate.holder == a).count();
        assert_eq!(of_a, 4);
    }

    #[test]
    fn some_connections_are_for_nodes_alone() {
        let (mut guests, channel) = (guests(), Arc::new(0));
        for address in 0..6 {
            let entered = guests.enter(&peer(Role::User, Some(&address.to_string()), address), &channel).unwrap();
            entered.engaged.store(true, Ordering::Relaxed);
        }
        assert!(guests.enter(&peer(Role::User, Some("x"), 99), &channel).is_none());
        let nodes: Vec<_> = (0..3).map(|_| guests.enter(&peer(Role::Node, None, 50), &channel)).collect();
        assert_eq!(nodes.iter().flatten().count(), 2);
        guests.leave(nodes[0].as_ref().unwrap().number);
        assert!(guests.enter(&peer(Role::Node, None, 50), &channel).is_some());
    }
}
