//! Socket addresses as the kernel writes them.

use std::net::SocketAddr;

/// # Safety
/// `name` was written by the kernel as the source of a datagram.
pub(super) unsafe fn from_kernel(name: *const libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: every address begins with its family.
    match libc::c_int::from(unsafe { (*name).ss_family }) {
        libc::AF_INET => {
            // SAFETY: the family says so, and sockaddr_storage is large and aligned enough for any
            // of them.
            let v4 = unsafe { &*name.cast::<libc::sockaddr_in>() };
            let ip = u32::from_be(v4.sin_addr.s_addr);
            Some(SocketAddr::new(core::net::Ipv4Addr::from(ip).into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*name.cast::<libc::sockaddr_in6>() };
            let ip = core::net::Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddr::new(ip.into(), u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}

/// The IPv4 address itself, where an IPv6 socket shows it as a mapped one.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
