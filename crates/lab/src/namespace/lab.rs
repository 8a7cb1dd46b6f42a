//! The star: hosts around one switch.

use std::net::Ipv4Addr;
use std::process::Command;

use super::counters::Counters;
use super::error::LabError;
use super::ip::{ip, line_of, tool};
use super::netns::{Namespace, remove};
use super::owner::Owner;
use super::switch::Switch;

/// Hosts around one switch, as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Star {
    /// Hosts: 1 to 1000.
    pub hosts: u16,
}

impl Star {
    /// Builds it.
    ///
    /// # Errors
    /// [`LabError::Unavailable`] where namespaces cannot be had. Whatever fails, nothing is left behind.
    pub fn build(self) -> Result<Lab, LabError> {
        if !(1..=HOSTS_MAX).contains(&self.hosts) {
            return Err(LabError::Hosts(self.hosts));
        }
        Lab::available()?;
        let owner = Owner::new();
        let switch = Switch::create(owner.namespace(SWITCH), &format!("{NODES}/16"), MTU)?;
        let mut hosts = Vec::new();
        for index in 0..self.hosts {
            let host = Namespace::create(owner.namespace(&host_part(index)))?;
            switch.join(&host, index, &format!("{}/16", host_address(index)), MTU)?;
            hosts.push(host);
        }
        Ok(Lab { hosts, switch, owner })
    }
}

/// A built star. When the value that [`Star::build`] gave is dropped, what runs inside is killed and all of it is removed.
#[derive(Debug)]
pub struct Lab {
    // Hosts go first: with their namespaces the kernel removes the pairs' other ends.
    hosts: Vec<Namespace>,
    switch: Switch,
    owner: Owner,
}

impl Lab {
    /// Says what is missing for a laboratory here, if anything is.
    pub fn available() -> Result<(), LabError> {
        let missing = |reason: &str| Err(LabError::Unavailable(reason.to_owned()));
        if !rustix::process::geteuid().is_root() {
            return missing("only root may create them");
        }
        for program in ["ip", "nft"] {
            if tool(Command::new(program).arg("-V")).is_err() {
                return missing(&format!(
                    "the program `{program}` is missing; scripts/install-dependencies installs it"
                ));
            }
        }
        let probe = Owner::new().namespace("probe");
        match Namespace::create(probe) {
            Ok(_) => Ok(()),
            Err(error) => missing(&error.to_string()),
        }
    }

    /// The star that another process has built and owns, by its [`Self::id`].
    ///
    /// # Errors
    /// [`LabError::Unknown`] when there is none.
    pub fn attach(id: &str) -> Result<Self, LabError> {
        let unknown = || LabError::Unknown(id.to_owned());
        let owner: Owner = id.parse().map_err(|()| unknown())?;
        let switch = owner.namespace(SWITCH);
        if !Namespace::exists(&switch) {
            return Err(unknown());
        }
        let names = (0..HOSTS_MAX).map(|index| owner.namespace(&host_part(index)));
        let hosts = names.take_while(|name| Namespace::exists(name)).map(Namespace::open);
        Ok(Self {
            hosts: hosts.collect::<Result<_, _>>()?,
            switch: Switch { namespace: Namespace::open(switch)? },
            owner,
        })
    }

    /// What another process needs to [`Self::attach`].
    pub fn id(&self) -> String {
        self.owner.id()
    }

    /// Removes the namespaces whose owner died without doing so, and kills what still runs in them; tells how many.
    pub fn sweep() -> Result<usize, LabError> {
        let list = ip("netns list")?;
        let names = list.lines().filter_map(|line| line.split_ascii_whitespace().next());
        let orphans = names.filter(|name| Owner::of(name).is_some_and(|owner| !owner.is_alive()));
        let mut removed = 0;
        for name in orphans {
            remove(name)?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u16 {
        u16::try_from(self.hosts.len()).expect("a star has at most HOSTS_MAX hosts")
    }

    /// The namespace of a host.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn host(&self, host: u16) -> &Namespace {
        &self.hosts[usize::from(host)]
    }

    /// The namespace of the switch, where aggregation nodes and manager run.
    pub fn switch(&self) -> &Namespace {
        &self.switch.namespace
    }

    /// The address of the aggregation nodes and the manager.
    pub fn nodes_address(&self) -> Ipv4Addr {
        NODES
    }

    /// The address of a host.
    pub fn host_address(&self, host: u16) -> Ipv4Addr {
        host_address(host)
    }

    /// Drops everything that goes from host to host, ARP included; hosts and nodes still reach each other.
    pub fn drop_between_hosts(&self) -> Result<(), LabError> {
        self.switch.drop_forwarded()
    }

    /// Takes that back.
    pub fn allow_between_hosts(&self) -> Result<(), LabError> {
        self.switch.allow_forwarded()
    }

    /// Packets dropped since [`Self::drop_between_hosts`]; 0 when nothing is dropped.
    pub fn dropped_between_hosts(&self) -> Result<u64, LabError> {
        self.switch.dropped_packets()
    }

    /// What a host's link has carried so far.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn counters(&self, host: u16) -> Result<Counters, LabError> {
        let mut show = Command::new("ip");
        show.args(["-n", self.host(host).name(), "-j", "-s", "link", "show", "dev", "eth0"]);
        let answer = tool(&mut show)?;
        Counters::parse(&line_of(&show), &answer)
    }
}

/// Hosts follow the nodes' own address, over as many last-but-one bytes as it takes.
fn host_address(host: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(NODES) + 1 + u32::from(host))
}

fn host_part(host: u16) -> String {
    format!("h{host}")
}

const SWITCH: &str = "switch";
/// Two interfaces per host: a machine can have more, but tests have no use for them.
pub(super) const HOSTS_MAX: u16 = 1000;
const NODES: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Plain Ethernet, the smallest that a fabric will have.
const MTU: u16 = 1500;
