//! Reads a graph in TOML, for fabrics of any shape.
//!
//! ```toml
//! [fabric]
//! name = "cluster"
//! mtu = 9000                       # as [limits] for managers only
//!
//! [[switch]]
//! name = "leaf[0-1]"               # lists as in Slurm
//!
//! [[switch]]
//! name = "spine[0-1]"
//! level = 2                        # links to the nearest host, if left out
//! node = false                     # no aggregation node in it; true if left out
//!
//! [[server]]                       # an aggregation node beside a switch, with one NIC
//! name = "an0"
//! switch = "leaf0"
//! rate = "100gbit"
//!
//! [[host]]
//! name = "h[0-7]"
//! switch = "leaf0"                 # or left out, and connected by [[link]]
//! rate = "100gbit"
//!
//! [[host]]
//! name = "h8"
//! switch = "leaf1"
//! address = "10.0.0.8"             # of one switch, server or host: it connects from here only
//!                                  # addresses = [...]: of one host, one for each of its links
//!                                  # in the file's order; of one switch or server, one for
//!                                  # each port at which its node is reached
//! via = "ucx"                      # of switches, servers or hosts: they connect upwards over UCX
//!
//! [[link]]
//! ends = ["leaf[0-1]", "spine[0-1]"]   # each of the first with each of the second
//! count = 2                        # parallel links; 1 if left out
//! rate = "200gbit"
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use toml::Spanned;
use trib_messages::via::Via;

use super::builder::Builder;
use super::error::{Complaint, at, whole};
use super::settings::Settings;
use super::{Graph, GraphFault, LinkRate};
use crate::addresses::addresses;
use crate::file;
use crate::hostlist::expand;
use crate::limits::LimitTable;
use crate::topology::check_mtu;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fabric: file::Fabric,
    switch: Vec<Spanned<Switch>>,
    #[serde(default)]
    server: Vec<Spanned<Server>>,
    #[serde(default)]
    host: Vec<Spanned<Host>>,
    #[serde(default)]
    link: Vec<Spanned<Cable>>,
    #[serde(default)]
    limits: file::Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    name: String,
    level: Option<u32>,
    node: Option<bool>,
    address: Option<IpAddr>,
    addresses: Option<Vec<IpAddr>>,
    control: Option<IpAddr>,
    #[serde(default)]
    via: Via,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: String,
    switch: String,
    rate: Option<String>,
    address: Option<IpAddr>,
    addresses: Option<Vec<IpAddr>>,
    control: Option<IpAddr>,
    #[serde(default)]
    via: Via,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    name: String,
    switch: Option<String>,
    rate: Option<String>,
    address: Option<IpAddr>,
    addresses: Option<Vec<IpAddr>>,
    #[serde(default)]
    via: Via,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cable {
    ends: [String; 2],
    count: Option<u32>,
    rate: Option<String>,
}

pub(super) fn read(text: &str, name: &str, default: LinkRate) -> Result<(Graph, Settings), Complaint> {
    let lines = Lines::of(text);
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| lines.line(span.start));
        (line, GraphFault::Syntax(error.message().trim().into()).into())
    })?;
    let settings = |(span, fault): crate::topology::Complaint| (span.map(|span| lines.line(span.start)), fault);
    let mtu = check_mtu(&file.fabric).map_err(settings)?;
    let limits = LimitTable::from_file(&file.limits).map_err(settings)?;
    let faults = file.fabric.faults;
    let builder = Builder::new(file.fabric.name.unwrap_or_else(|| name.to_owned()));
    let (addresses, control, via) = Default::default();
    let mut filling = Filling { builder, default, addresses, control, via };
    for entry in &file.switch {
        filling.switch(entry.get_ref()).map_err(at(lines.line(entry.span().start)))?;
    }
    for entry in &file.host {
        filling.host(entry.get_ref()).map_err(at(lines.line(entry.span().start)))?;
    }
    for entry in &file.server {
        filling.server(entry.get_ref()).map_err(at(lines.line(entry.span().start)))?;
    }
    for entry in &file.link {
        filling.links(entry.get_ref()).map_err(at(lines.line(entry.span().start)))?;
    }
    let Filling { builder, addresses, control, via, .. } = filling;
    let graph = builder.finish().map_err(whole)?;
    for entry in &file.host {
        check_rails(&graph, entry.get_ref()).map_err(at(lines.line(entry.span().start)))?;
    }
    Ok((graph, Settings { mtu, faults, limits, addresses, control, via }))
}

// This is checked at the end, because a host's links are known only then.
fn check_rails(graph: &Graph, host: &Host) -> Result<(), GraphFault> {
    let Some(addresses) = &host.addresses else { return Ok(()) };
    // Rails belong to a single host, so the list has one name.
    for name in expand(&host.name)? {
        let links = graph.find(&name).map_or(0, |vertex| graph.links_at(vertex).len());
        if addresses.len() != links {
            return Err(GraphFault::Rails { host: name, addresses: addresses.len(), links });
        }
    }
    Ok(())
}

struct Filling {
    builder: Builder,
    /// The rate of links for which the file gives none.
    default: LinkRate,
    addresses: BTreeMap<String, Vec<IpAddr>>,
    control: BTreeMap<String, IpAddr>,
    via: BTreeMap<String, Via>,
}

impl Filling {
    fn switch(&mut self, entry: &Switch) -> Result<(), GraphFault> {
        let has_node = entry.node.unwrap_or(true);
        if (entry.address.is_some() || entry.addresses.is_some() || entry.control.is_some()) && !has_node {
            return Err(GraphFault::AddressWithoutNode(entry.name.clone()));
        }
        let names = self.names(&entry.name, entry.address, entry.addresses.as_deref(), entry.via)?;
        self.control(&entry.name, &names, entry.control)?;
        for name in names {
            self.builder.switch(&name, entry.level, has_node)?;
        }
        Ok(())
    }

    fn host(&mut self, entry: &Host) -> Result<(), GraphFault> {
        let rate = self.rate(&entry.rate)?;
        let switch = entry.switch.as_ref().map(|switch| self.builder.find(switch)).transpose()?;
        for name in self.names(&entry.name, entry.address, entry.addresses.as_deref(), entry.via)? {
            let host = self.builder.host(&name)?;
            if let Some(switch) = switch {
                self.builder.link([host, switch], rate, 1)?;
            }
        }
        Ok(())
    }

    fn server(&mut self, entry: &Server) -> Result<(), GraphFault> {
        let rate = self.rate(&entry.rate)?;
        let switch = self.builder.find(&entry.switch)?;
        let names = self.names(&entry.name, entry.address, entry.addresses.as_deref(), entry.via)?;
        self.control(&entry.name, &names, entry.control)?;
        for name in names {
            self.builder.server(&name, switch, rate)?;
        }
        Ok(())
    }

    fn links(&mut self, entry: &Cable) -> Result<(), GraphFault> {
        let rate = self.rate(&entry.rate)?;
        let [first, second] = [expand(&entry.ends[0])?, expand(&entry.ends[1])?];
        // The product is bounded where links are added, one by one.
        for first in &first {
            let first = self.builder.find(first)?;
            for second in &second {
                self.builder.link([first, self.builder.find(second)?], rate, entry.count.unwrap_or(1))?;
            }
        }
        Ok(())
    }

    // The names of a list. Only a list of one name may have addresses.
    fn names(
        &mut self,
        list: &str,
        address: Option<IpAddr>,
        several: Option<&[IpAddr]>,
        via: Via,
    ) -> Result<Vec<String>, GraphFault> {
        let names = expand(list)?;
        self.via.extend(names.iter().filter(|_| !via.is_tcp()).map(|name| (name.clone(), via)));
        let addresses = addresses(list, address, several)?;
        match &names[..] {
            _ if addresses.is_empty() => {}
            [name] => {
                self.addresses.insert(name.clone(), addresses);
            }
            _ => return Err(GraphFault::SharedAddress(list.into())),
        }
        Ok(names)
    }

    // Only a list of one name may say from where its node calls the manager.
    fn control(&mut self, list: &str, names: &[String], address: Option<IpAddr>) -> Result<(), GraphFault> {
        let Some(address) = address else { return Ok(()) };
        let [name] = names else { return Err(GraphFault::SharedAddress(list.into())) };
        self.control.insert(name.clone(), address);
        Ok(())
    }

    fn rate(&self, text: &Option<String>) -> Result<LinkRate, GraphFault> {
        match text {
            None => Ok(self.default),
            Some(text) => text.parse().map_err(|cause| GraphFault::Rate { text: text.clone(), cause }),
        }
    }
}

/// The positions at which lines begin. A file with many entries asks for many line numbers.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|newline| *newline < offset)
    }
}
