//! Tells the supervisor that started a daemon about its state, by the `sd_notify` protocol of
//! systemd.
//!
//! It sends one datagram of `NAME=VALUE` lines to the socket that `$NOTIFY_SOCKET` names; without
//! that variable no supervisor listens, and nothing is sent. The extra line `X_TRIB_ADDRESS` has
//! the address that a daemon really got, for supervisors that let it choose its port;
//! `X_TRIB_METRICS` has that of its metrics.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram};

/// Says that the daemon serves, at `address` if it listens. `Ok(false)`: no supervisor asked.
pub fn ready(address: Option<SocketAddr>) -> io::Result<bool> {
    match address {
        Some(address) => send(&format!("READY=1\nX_TRIB_ADDRESS={address}")),
        None => send("READY=1"),
    }
}

/// Says that the daemon ends. `Ok(false)`: no supervisor asked.
pub fn stopping() -> io::Result<bool> {
    send("STOPPING=1")
}

/// Says that the daemon serves metrics at `address`. `Ok(false)`: no supervisor asked.
pub fn metrics(address: SocketAddr) -> io::Result<bool> {
    send(&format!("X_TRIB_METRICS={address}"))
}

/// Says that the daemon is well, which a supervisor with a watchdog wants to hear again and again.
/// `Ok(false)`: no supervisor asked.
pub fn alive() -> io::Result<bool> {
    send("WATCHDOG=1")
}

fn send(lines: &str) -> io::Result<bool> {
    match env::var_os("NOTIFY_SOCKET") {
        Some(socket) if !socket.is_empty() => send_to(&socket, lines).map(|()| true),
        _ => Ok(false),
    }
}

fn send_to(socket: &OsStr, lines: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => UnixAddr::from_abstract_name(name)?,
        _ => UnixAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(lines.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    // The variable belongs to the whole process, so these functions are tested without it.
    #[test]
    fn the_supervisor_gets_the_lines_by_path_and_by_abstract_name() {
        let unique = format!("trib-notify-{}", std::process::id());
        let path = env::temp_dir().join(&unique);
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = UnixDatagram::bind_addr(&UnixAddr::from_abstract_name(&unique).unwrap()).unwrap();
        for (socket, supervisor) in [(path.as_os_str(), &by_path), (OsStr::new(&format!("@{unique}")), &by_name)] {
            send_to(socket, "READY=1\nX_TRIB_ADDRESS=127.0.0.1:7").unwrap();
            let mut lines = [0; 100];
            let bytes = supervisor.recv(&mut lines).unwrap();
            assert_eq!(&lines[..bytes], b"READY=1\nX_TRIB_ADDRESS=127.0.0.1:7");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(send_to(path.as_os_str(), "READY=1").is_err());
    }
}
