//! A topology spelled out: places, links, devices, addresses.

use std::net::Ipv4Addr;

use super::rate::BitRate;

/// Everything that has to be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Switches from the top down, then hosts: a place comes after the one above it.
    pub places: Vec<Place>,
    /// The link above every place but the first, in the order of the places.
    pub links: Vec<Link>,
    /// Largest IP packet on the links, bytes.
    pub mtu: u16,
}

/// A host or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its name, which is its host name too.
    pub name: String,
    /// Which of the two.
    pub kind: PlaceKind,
    /// Its address in the laboratory's one network: of a switch's bridge, of a host's link.
    pub address: Ipv4Addr,
}

/// What a place is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    /// Ranks run here.
    Host,
    /// Packets are forwarded here, and an aggregation node runs here.
    Switch,
}

/// A link between two places; it has the name of its lower end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The place at the lower end.
    pub lower: String,
    /// The place at the upper end, a switch.
    pub upper: String,
    /// The interface in the lower place: `eth0` of a host, `trunk` of a switch.
    pub lower_device: String,
    /// The interface in the upper place, a port of its bridge with the lower place's name.
    pub upper_device: String,
    /// Rate each way.
    pub rate: BitRate,
}

impl Plan {
    /// The place of this name.
    pub fn place(&self, name: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.name == name)
    }

    /// The link of this name, which is that of its lower end.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.lower == name)
    }

    /// Adds a place and the link above it.
    pub(super) fn add(&mut self, place: Place, above: Option<(String, BitRate)>) {
        if let Some((upper, rate)) = above {
            let lower = place.name.clone();
            let lower_device = place.kind.device().to_owned();
            self.links.push(Link { upper_device: lower.clone(), lower, upper, lower_device, rate });
        }
        self.places.push(place);
    }
}

impl Place {
    /// The link-layer address that belongs to its address: locally administered, so that nobody else's card has it.
    pub fn hardware_address(&self) -> String {
        let [a, b, c, d] = self.address.octets();
        format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }

    /// The interface that has the place's address.
    pub fn addressed_device(&self) -> &'static str {
        match self.kind {
            PlaceKind::Host => self.kind.device(),
            PlaceKind::Switch => BRIDGE,
        }
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
