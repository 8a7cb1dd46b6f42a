//! The laboratory with real namespaces: needs root, `ip` and `nft`, and says so where it cannot run.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use trib_lab::namespace::{Lab, LabError, Namespace, Star};

/// The star, or `None` with a line that says why this test did not run.
fn star(hosts: u16) -> Option<Lab> {
    if let Err(reason) = Lab::available() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
        return None;
    }
    Some(Star { hosts }.build().unwrap())
}

fn socket(namespace: &Namespace, address: Ipv4Addr) -> UdpSocket {
    let socket = namespace.within(|| UdpSocket::bind(SocketAddrV4::new(address, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket
}

/// True when a datagram of `length` bytes gets from one to the other.
fn reaches(from: &UdpSocket, to: &UdpSocket, length: usize) -> bool {
    from.send_to(&vec![7; length], to.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 2000];
    to.recv_from(&mut buffer).is_ok_and(|(received, _)| received == length)
}

#[test]
fn hosts_can_be_cut_off_from_each_other_but_not_from_the_nodes() {
    let Some(lab) = star(3) else { return };
    let node = socket(lab.switch(), lab.nodes_address());
    let host = |index| socket(lab.host(index), lab.host_address(index));
    let (first, second) = (host(0), host(2));
    assert!(reaches(&first, &second, 64) && reaches(&first, &node, 64));
    assert_eq!(lab.dropped_between_hosts().unwrap(), 0);

    lab.drop_between_hosts().unwrap();
    assert!(!reaches(&first, &second, 64) && !reaches(&second, &first, 64));
    assert!(reaches(&first, &node, 64) && reaches(&node, &second, 64));
    assert!(lab.dropped_between_hosts().unwrap() >= 2);

    lab.allow_between_hosts().unwrap();
    assert!(reaches(&first, &second, 64));
    assert_eq!(lab.dropped_between_hosts().unwrap(), 0);
}

#[test]
fn the_link_counts_every_frame_and_is_plain_ethernet() {
    let Some(lab) = star(1) else { return };
    let node = socket(lab.switch(), lab.nodes_address());
    let host = socket(lab.host(0), lab.host_address(0));
    // The first datagram asks for the node's link address too.
    assert!(reaches(&host, &node, 1));
    let before = lab.counters(0).unwrap();
    for _ in 0..10 {
        assert!(reaches(&host, &node, 1000));
    }
    let sent = lab.counters(0).unwrap() - before;
    let frame = 1000 + 8 + 20 + 14;
    assert!((10..=12).contains(&sent.tx_packets), "{sent:?}");
    assert!((10 * frame..10 * frame + 200).contains(&sent.tx_bytes), "{sent:?}");
    assert!(sent.rx_bytes < 200, "{sent:?}");
    let inside = lab.host(0).command("cat").arg("/proc/net/dev").output().unwrap();
    assert!(String::from_utf8_lossy(&inside.stdout).contains("eth0"), "a command does not run inside the host");
}

#[test]
fn another_handle_sees_the_same_star_and_does_not_own_it() {
    let Some(lab) = star(2) else { return };
    let attached = Lab::attach(&lab.id()).unwrap();
    assert_eq!(attached.hosts(), 2);
    attached.drop_between_hosts().unwrap();
    drop(attached);
    let host = |index| socket(lab.host(index), lab.host_address(index));
    assert!(!reaches(&host(0), &host(1), 64));
    let id = lab.id();
    drop(lab);
    for gone in [id.as_str(), "", "1.2", "1.2.3.4", "a.b.c"] {
        assert!(matches!(Lab::attach(gone), Err(LabError::Unknown(_))), "{gone:?}");
    }
}

#[test]
fn nothing_is_left_when_the_value_goes_away() {
    let Some(lab) = star(2) else { return };
    let names: Vec<String> =
        [lab.switch(), lab.host(0), lab.host(1)].map(|namespace| namespace.name().to_owned()).into();
    let mut inside = lab.host(1).command("sleep").arg("60").spawn().unwrap();
    Lab::sweep().unwrap();
    for name in &names {
        assert!(namespaces().contains(name), "a sweep took {name} from its living owner");
    }
    drop(lab);
    assert!(!inside.wait().unwrap().success(), "a process inside outlived the laboratory");
    for name in names {
        assert!(!namespaces().contains(&name), "{name} is left");
    }
}

#[test]
fn a_sweep_removes_what_a_killed_owner_left() {
    if let Err(reason) = Lab::available() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
        return;
    }
    // An owner that is killed: a process whose id goes into the name before it dies.
    let mut owner = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", owner.id())).unwrap();
    let id = trib_lab::process::ProcessId::from_stat(&stat).unwrap();
    let name = format!("trib-lab.{}.{}.0.h0", id.pid, id.start);
    assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
    Lab::sweep().unwrap();
    assert!(namespaces().contains(&name), "the owner still lives");
    owner.kill().unwrap();
    owner.wait().unwrap();
    Lab::sweep().unwrap();
    assert!(!namespaces().contains(&name));
}

fn namespaces() -> String {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
