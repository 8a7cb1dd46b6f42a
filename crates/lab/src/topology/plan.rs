//! A topology spelled out: places, links, devices, addresses.

use std::net::Ipv4Addr;

use super::rate::BitRate;

/// Everything that has to be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Switches from the top down, then hosts: a place comes after the one above it.
    pub places: Vec<Place>,
    /// The link above every place but the first, in the order of the places, and behind them the
    /// further links of the hosts, on further rails or to the same leaf.
    pub links: Vec<Link>,
    /// Largest IP packet on the links, bytes.
    pub mtu: u16,
}

/// A host or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its name, which is its host name too.
    pub name: String,
    /// Whether it is a host or a switch.
    pub kind: PlaceKind,
    /// Its address in its rail's network: that of a switch's bridge, or of a host's first link.
    pub address: Ipv4Addr,
    /// Its addresses in further networks: those of a host's further links, or of a switch to which
    /// each host has several links.
    pub more: Vec<Ipv4Addr>,
}

/// What a place is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    /// Ranks run here.
    Host,
    /// Packets are forwarded here, and an aggregation node runs here.
    Switch,
}

/// A link between two places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Its name is that of its lower end; the further links of a host have their number behind it.
    pub name: String,
    /// The place at the lower end.
    pub lower: String,
    /// The place at the upper end, a switch.
    pub upper: String,
    /// The interface in the lower place: `eth0` of a host, `eth1` of its second link, `trunk` of a
    /// switch.
    pub lower_device: String,
    /// The interface in the upper place: a port of its bridge, with the link's name.
    pub upper_device: String,
    /// The rate in each direction.
    pub rate: BitRate,
}

impl Plan {
    /// The place of this name.
    pub fn place(&self, name: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.name == name)
    }

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Adds a place and the link above it.
    pub(super) fn add(&mut self, place: Place, above: Option<(String, BitRate)>) {
        if let Some((upper, rate)) = above {
            let lower = place.name.clone();
            let lower_device = place.kind.device().to_owned();
            self.links.push(Link {
                name: lower.clone(),
                upper_device: lower.clone(),
                lower,
                upper,
                lower_device,
                rate,
            });
        }
        self.places.push(place);
    }

    /// Adds a further link of a host, its `number`th from 0.
    pub(super) fn add_link(&mut self, host: &str, number: u8, upper: String, rate: BitRate) {
        let lower_device = host_device(number.into());
        let (name, lower) = (on_rail(host, number), host.to_owned());
        self.links.push(Link { upper_device: name.clone(), name, lower, upper, lower_device, rate });
    }
}

/// The name of a thing on a rail, or of a host's link. The first rail or link has no number.
pub(crate) fn on_rail(name: &str, rail: u8) -> String {
    if rail == 0 { name.to_owned() } else { format!("{name}.{rail}") }
}

/// The network of an address: all addresses of a rail's port begin with these two bytes.
pub(crate) fn network(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, ..] = address.octets();
    Ipv4Addr::new(a, b, 0, 0)
}

/// The interface of a host's link.
fn host_device(number: usize) -> String {
    format!("eth{number}")
}

/// The link-layer address that belongs to an IP address. It is locally administered, so no card has
/// it.
pub(crate) fn hardware_address(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

impl Place {
    /// Its addresses, one in each network that it is in.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        std::iter::once(self.address).chain(self.more.iter().copied())
    }

    /// The interfaces that have its addresses.
    pub fn addressed_devices(&self) -> impl Iterator<Item = (Ipv4Addr, String)> + '_ {
        let device = |number| match self.kind {
            PlaceKind::Host => host_device(number),
            PlaceKind::Switch => BRIDGE.to_owned(),
        };
        self.addresses().enumerate().map(move |(number, address)| (address, device(number)))
    }
}

impl PlaceKind {
    /// The interface towards the place above.
    fn device(self) -> &'static str {
        match self {
            Self::Host => "eth0",
            Self::Switch => "trunk",
        }
    }
}

/// The bridge of a switch.
pub(crate) const BRIDGE: &str = "br0";
