//! A graph as the TOML text that `toml_file` reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Graph, LinkRate};
use crate::hostlist::compress;

/// What switches must have in common to stand in one entry.
type SwitchKey = (u32, bool);
type HostKey = (usize, LinkRate);

impl Graph {
    /// The file as TOML. Reading it gives the same fabric, though perhaps with its links in another
    /// order.
    pub fn to_toml(&self) -> String {
        let mut text = format!("[fabric]\nname = {}\n", quoted(&self.name));
        self.write_switches(&mut text);
        for node in &self.nodes {
            if let Some(nic) = node.nic {
                let (name, switch) = (quoted(&node.name), quoted(&self.vertices[node.switch].name));
                put(&mut text, format_args!("\n[[server]]\nname = {name}\nswitch = {switch}\nrate = \"{nic}\"\n"));
            }
        }
        self.write_hosts(&mut text);
        self.write_links(&mut text);
        text
    }

    // A run of alike switches is one entry, so that their order stays.
    fn write_switches(&self, text: &mut String) {
        let mut runs: Vec<(SwitchKey, Vec<&str>)> = Vec::new();
        for switch in self.switches() {
            let has_node = self.nodes_at[switch].iter().any(|node| self.nodes[*node].nic.is_none());
            let key = (self.vertices[switch].level, has_node);
            match runs.last_mut().filter(|(last, _)| *last == key) {
                Some((_, names)) => names.push(&self.vertices[switch].name),
                None => runs.push((key, vec![self.vertices[switch].name.as_str()])),
            }
        }
        for ((level, has_node), names) in runs {
            let node = if has_node { "" } else { "node = false\n" };
            put(text, format_args!("\n[[switch]]\nname = {}\nlevel = {level}\n{node}", quoted(&compress(names))));
        }
    }

    // A run of hosts on one switch is one entry. A host with no link or several stands by itself
    // and gets `[[link]]`s.
    fn write_hosts(&self, text: &mut String) {
        let mut runs: Vec<(Option<HostKey>, Vec<&str>)> = Vec::new();
        for host in self.hosts() {
            let link = self.only_link(host);
            match runs.last_mut().filter(|(last, _)| *last == link) {
                Some((_, names)) => names.push(&self.vertices[host].name),
                None => runs.push((link, vec![self.vertices[host].name.as_str()])),
            }
        }
        for (link, names) in runs {
            put(text, format_args!("\n[[host]]\nname = {}\n", quoted(&compress(names))));
            if let Some((switch, rate)) = link {
                put(text, format_args!("switch = {}\nrate = \"{rate}\"\n", quoted(&self.vertices[switch].name)));
            }
        }
    }

    fn write_links(&self, text: &mut String) {
        let mut parallel: BTreeMap<(usize, LinkRate, usize), u32> = BTreeMap::new();
        for link in &self.links {
            let [first, second] = link.ends;
            let is_written = [first, second].iter().any(|end| self.is_host(*end) && self.only_link(*end).is_some());
            if !is_written {
                *parallel.entry((first, link.rate, second)).or_default() += 1;
            }
        }
        let mut bundles: BTreeMap<(usize, LinkRate, u32), Vec<&str>> = BTreeMap::new();
        for ((first, rate, second), count) in parallel {
            bundles.entry((first, rate, count)).or_default().push(&self.vertices[second].name);
        }
        for ((first, rate, count), seconds) in bundles {
            let ends = format!("[{}, {}]", quoted(&self.vertices[first].name), quoted(&compress(seconds)));
            put(text, format_args!("\n[[link]]\nends = {ends}\nrate = \"{rate}\"\n"));
            if count > 1 {
                put(text, format_args!("count = {count}\n"));
            }
        }
    }

    fn only_link(&self, host: usize) -> Option<HostKey> {
        match self.links_at[host][..] {
            [link] => Some((self.links[link].other(host), self.links[link].rate)),
            _ => None,
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to memory cannot fail");
}
