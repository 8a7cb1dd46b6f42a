//! The network devices of this host, as NCCL numbers them: its interfaces, chosen as NCCL chooses
//! those for its own sockets (`NCCL_SOCKET_IFNAME`, `NCCL_SOCKET_FAMILY`).

use std::ffi::{CStr, CString};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;
use std::sync::OnceLock;

use crate::failure::{Code, Failure};

/// An interface.
#[derive(Debug)]
pub struct Interface {
    pub name: CString,
    /// Its folder of the PCI bus below `/sys`, where topologies begin; an interface without
    /// hardware has none.
    pub pci: Option<CString>,
    pub address: IpAddr,
    /// Megabits per second.
    pub speed: i32,
}

/// All of them, as they were when NCCL asked first.
pub fn all() -> &'static [Interface] {
    static ALL: OnceLock<Vec<Interface>> = OnceLock::new();
    ALL.get_or_init(|| {
        // NCCL takes a single letter for no setting, too.
        let setting = |name: &str| std::env::var(name).ok().filter(|text| text.len() > 1);
        let family = Family::from_setting(setting("NCCL_SOCKET_FAMILY").as_deref());
        let found = addresses().into_iter().filter(|(_, ip)| family.takes(ip)).collect();
        let chosen = chosen(one_each(found), setting("NCCL_SOCKET_IFNAME").as_deref());
        chosen.into_iter().take(INTERFACES_MAX).map(|(name, address)| described(&name, address)).collect()
    })
}

/// The interface with this number.
pub fn numbered(number: i32) -> Result<&'static Interface, Failure> {
    let found = usize::try_from(number).ok().and_then(|number| all().get(number));
    found.ok_or_else(|| Failure::new(Code::Internal, format!("there is no network device {number}")))
}

/// Which addresses count.
#[derive(Clone, Copy)]
enum Family {
    Any,
    V4,
    V6,
}

impl Family {
    fn from_setting(text: Option<&str>) -> Family {
        match text {
            Some("AF_INET") => Family::V4,
            Some("AF_INET6") => Family::V6,
            _ => Family::Any,
        }
    }

    fn takes(self, ip: &IpAddr) -> bool {
        match ip {
            IpAddr::V4(_) => !matches!(self, Family::V6),
            // An address of one link names no way from elsewhere.
            IpAddr::V6(ip) => !matches!(self, Family::V4) && !ip.is_unicast_link_local(),
        }
    }
}

/// The first address of each interface; one of IPv4 goes before those of IPv6.
fn one_each(mut found: Vec<(String, IpAddr)>) -> Vec<(String, IpAddr)> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &found {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    found.sort_by_key(|(name, ip)| (names.iter().position(|known| known == name), ip.is_ipv6()));
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    found
}

/// Those that the setting names: a list of prefixes, or of whole names behind `=`, or of what is
/// left out behind `^`. Without a setting those of InfiniBand, else those of another network, else
/// those of containers, of the host itself, or of virtual machines.
fn chosen(found: Vec<(String, IpAddr)>, setting: Option<&str>) -> Vec<(String, IpAddr)> {
    let Some(setting) = setting else {
        let rank = |name: &str| {
            let known = KINDS.iter().find(|(prefix, _)| name.starts_with(prefix));
            known.map_or(OTHERS, |(_, rank)| *rank)
        };
        let best = found.iter().map(|(name, _)| rank(name)).min();
        return found.into_iter().filter(|(name, _)| Some(rank(name)) == best).collect();
    };
    let (without, list) = setting.strip_prefix('^').map_or((false, setting), |rest| (true, rest));
    let (exact, list) = list.strip_prefix('=').map_or((false, list), |rest| (true, rest));
    let is_named = |name: &str| {
        let mut words = list.split(',').map(|word| word.split(':').next().unwrap_or_default());
        words.any(|word| !word.is_empty() && if exact { name == word } else { name.starts_with(word) })
    };
    found.into_iter().filter(|(name, _)| is_named(name) != without).collect()
}

fn described(name: &str, address: IpAddr) -> Interface {
    let folder = format!("/sys/class/net/{name}");
    let speed = fs::read_to_string(format!("{folder}/speed")).ok();
    let speed = speed.and_then(|text| text.trim().parse().ok()).filter(|speed| *speed > 0);
    let pci = fs::canonicalize(format!("{folder}/device")).ok();
    Interface {
        name: CString::new(name).unwrap_or_default(),
        pci: pci.and_then(|path| CString::new(path.into_os_string().into_encoded_bytes()).ok()),
        address,
        speed: speed.unwrap_or(SPEED_DEFAULT),
    }
}

/// The addresses of all interfaces that are up and have a link, in the system's order. Without a
/// link NCCL leaves out also one that a setting names.
fn addresses() -> Vec<(String, IpAddr)> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call writes the list's start.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: the list is the system's until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: as above; the address is null or one of its family.
        let Some(ip) = (unsafe { address_of(entry.ifa_addr) }) else { continue };
        // SAFETY: every entry has a name that ends.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        if entry.ifa_flags & RUNNING == RUNNING {
            found.push((name.to_string_lossy().into_owned(), ip));
        }
    }
    // SAFETY: it came from `getifaddrs`, and nothing points into it any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// # Safety
/// The pointer is null or points to an address as long as its family has them.
unsafe fn address_of(pointer: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's contract.
    let family = i32::from(unsafe { pointer.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: an address of this family is one of these.
            let address = unsafe { pointer.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family is one of these.
            let address = unsafe { pointer.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Which interfaces NCCL takes before others, the lowest first, by how their names begin.
const KINDS: [(&str, u32); 4] = [("ib", 0), ("docker", 2), ("lo", 3), ("virbr", 4)];
const OTHERS: u32 = 1;
const RUNNING: u32 = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
/// As many as NCCL's own sockets use.
const INTERFACES_MAX: usize = 16;
/// What an interface has that does not say; NCCL takes the same.
const SPEED_DEFAULT: i32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<(String, IpAddr)> {
        names.iter().map(|name| ((*name).to_owned(), "10.0.0.1".parse().unwrap())).collect()
    }

    fn names(list: &[(String, IpAddr)]) -> Vec<&str> {
        list.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn the_setting_means_what_it_means_to_nccl() {
        let all = ["lo", "eth0", "eth1", "eth10", "ib0", "docker0", "virbr0"];
        let of = |setting| names(&chosen(found(&all), setting)).join(" ");
        assert_eq!(of(None), "ib0");
        assert_eq!(of(Some("eth1,ib")), "eth1 eth10 ib0");
        assert_eq!(of(Some("=eth1,lo")), "lo eth1");
        assert_eq!(of(Some("^eth,docker")), "lo ib0 virbr0");
        assert_eq!(of(Some("^=eth1")), "lo eth0 eth10 ib0 docker0 virbr0");
        assert_eq!(of(Some("wlan")), "");
        for (there, best) in [
            ("lo eth0 eth1 virbr0 docker0", "eth0 eth1"),
            ("virbr0 lo docker0 docker1", "docker0 docker1"),
            ("virbr0 lo", "lo"),
            ("virbr0", "virbr0"),
        ] {
            let there = found(&there.split(' ').collect::<Vec<_>>());
            assert_eq!(names(&chosen(there, None)).join(" "), best);
        }
    }

    #[test]
    fn an_interface_has_one_address() {
        let list = [("b", "2001:db8::1"), ("b", "10.0.0.2"), ("a", "2001:db8::3"), ("b", "10.0.0.4")];
        let list = list.map(|(name, ip)| (name.to_owned(), ip.parse::<IpAddr>().unwrap())).to_vec();
        let ips = one_each(list).into_iter().map(|(name, ip)| format!("{name} {ip}")).collect::<Vec<_>>();
        assert_eq!(ips, ["b 10.0.0.2", "a 2001:db8::3"]);
        let family = Family::from_setting(Some("AF_INET6"));
        assert!(!family.takes(&"10.0.0.1".parse().unwrap()) && !family.takes(&"fe80::1".parse().unwrap()));
    }

    #[test]
    fn this_host_has_one() {
        let all = all();
        assert!(!all.is_empty() && all.len() <= INTERFACES_MAX);
        assert!(all.iter().all(|interface| interface.speed > 0 && !interface.name.is_empty()), "{all:?}");
        assert!(numbered(0).is_ok() && numbered(-1).is_err() && numbered(99).is_err());
    }
}
