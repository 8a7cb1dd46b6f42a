//! Checks that run no job: this host's keys, the manager, and what the manager knows of its nodes.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use trib_control::{Channel, Error, ManagerUrl, software_version};
use trib_messages::hello::Role;
use trib_messages::reply::{NodeStatus, Reply, StatusReport};
use trib_messages::request::Request;

use super::check::Report;

/// Checks which other users could use this host's key. Whether it works shows when the manager is
/// asked.
pub(super) fn keys(url: &ManagerUrl, report: &mut Report) {
    let key = url.credentials().join("user.key");
    let shown = key.display().to_string();
    match File::open(&key).and_then(|key| key.metadata()) {
        Err(cause) => {
            let error = Error::NoCredentials { role: Role::User, path: key, cause };
            report.fail("keys", error, None);
        }
        Ok(file) if file.permissions().mode() & 0o007 != 0 => report.warn(
            "keys",
            format!("{shown} is open to every user of this host"),
            format!("chmod o= {shown}: everybody who has the key can start and see jobs"),
        ),
        Ok(_) => report.good("keys", shown),
    }
}

/// Asks the manager for the fabric's state and judges it. Returns whether the manager answered.
pub(super) fn examine(url: &ManagerUrl, limit: Duration, report: &mut Report) -> bool {
    let before = SystemTime::now();
    let asked = Channel::connect(url, Role::User, limit)
        .and_then(|channel| Ok((channel.ask(&Request::Status, limit)?, channel.peer().software.clone())));
    match asked {
        Ok((Reply::Status(status), software)) => {
            manager(url, &status, &software, report);
            clock(&status, before, report);
            for node in &status.nodes {
                judge(node, &software, report);
            }
            true
        }
        Ok((other, _)) => {
            report.fail("manager", format!("answers something else: {other:?}"), None);
            false
        }
        // The error itself names the remedy.
        Err(error) => {
            report.fail("manager", error, None);
            false
        }
    }
}

/// How many datagrams the nodes have dropped because they did not read them in time; 0 if there is
/// no answer.
pub(super) fn unread(url: &ManagerUrl, limit: Duration) -> u64 {
    let asked = Channel::connect(url, Role::User, limit).and_then(|channel| channel.ask(&Request::Status, limit));
    let Ok(Reply::Status(status)) = asked else { return 0 };
    let overflows = status.nodes.iter().filter_map(|node| node.counters.get("datagram_socket_overflow"));
    overflows.sum()
}

fn manager(url: &ManagerUrl, status: &StatusReport, software: &str, report: &mut Report) {
    let (address, fabric, ours) = (url.address(), &status.fabric, software_version());
    if software == ours {
        report.good("manager", format!("fabric {fabric} at {address}, version {software}"));
    } else {
        report.warn(
            "manager",
            format!("fabric {fabric} at {address} runs version {software}, this host {ours}"),
            "they speak the same protocol; install the same release everywhere before you report anything strange",
        );
    }
}

fn clock(status: &StatusReport, before: SystemTime, report: &mut Report) {
    let Some(theirs) = status.time_ms else { return };
    let millis = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    // The manager read its clock between these two moments.
    let (early, late) = (millis(before), millis(SystemTime::now()));
    let apart = early.saturating_sub(theirs).max(theirs.saturating_sub(late));
    if apart <= CLOCK_MAX_MS {
        report.good("clock", format!("at most {} ms from the manager's", apart + (late - early)));
    } else {
        report.warn(
            "clock",
            format!("{:.1} s from the manager's", apart as f64 / 1000.0),
            "jobs run, but logs do not line up, and certificates may seem expired: run an NTP client on both",
        );
    }
}

fn judge(node: &NodeStatus, managers: &str, report: &mut Report) {
    let NodeStatus { name, version, connected, silent_since_ms, datagram_buffer_bytes, .. } = node;
    let title = format!("node {name}");
    if !connected {
        let found = if version.is_empty() { "never registered" } else { "lost its connection to the manager" };
        let remedy =
            format!("no job whose tree needs it is admitted: start `trib an --name {name}` there and see its log");
        return report.fail(title, found, Some(remedy));
    }
    if silent_since_ms.is_some() {
        let remedy = format!(
            "jobs go around it where they can, or are refused: let `trib an --name {name}` go on, or restart it"
        );
        return report.fail(title, "is connected to the manager and does not answer it", Some(remedy));
    }
    if version != managers {
        return report.warn(
            title,
            format!("runs version {version}, the manager {managers}"),
            format!("install the manager's release at {name} and restart its `trib an`"),
        );
    }
    match *datagram_buffer_bytes {
        Some(bytes) if bytes < BUFFER_ENOUGH => report.warn(
            title,
            format!("the kernel grants {bytes} bytes of datagram receive buffer"),
            format!("jobs with many ranks below {name} get a small window there, or lose datagrams in bursts: set net.core.rmem_max={BUFFER_ENOUGH} there and restart its `trib an`"),
        ),
        _ => report.good(title, format!("up, version {version}")),
    }
}

/// Clocks that are farther apart differ by more than the time of a packet or the delay of a slow
/// host.
const CLOCK_MAX_MS: u64 = 1000;
/// Bytes of sixteen datagrams, the default window, of 16 KiB each as the kernel counts them, from
/// 32 children.
const BUFFER_ENOUGH: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(change: impl FnOnce(&mut NodeStatus)) -> NodeStatus {
        let mut node = NodeStatus {
            name: "leaf0".into(),
            address: None,
            further: Vec::new(),
            version: "1.0".into(),
            connected: true,
            silent_since_ms: None,
            datagram_buffer_bytes: Some(BUFFER_ENOUGH),
            counters: Default::default(),
        };
        change(&mut node);
        node
    }

    fn verdict(node: &NodeStatus) -> (bool, String) {
        let mut report = Report::default();
        judge(node, "1.0", &mut report);
        (report.is_sound(), report.to_string())
    }

    #[test]
    fn each_fault_of_a_node_is_named_with_its_remedy() {
        assert!(verdict(&node(|_| {})).1.contains("up, version 1.0"));
        let (sound, text) = verdict(&node(|node| node.connected = false));
        assert!(!sound && text.contains("trib an --name leaf0"), "{text}");
        let (sound, text) = verdict(&node(|node| node.silent_since_ms = Some(1)));
        assert!(!sound && text.contains("does not answer") && text.contains("or restart it"), "{text}");
        let (sound, text) = verdict(&node(|node| node.version = "0.9".into()));
        assert!(sound && text.contains("0.9") && text.contains("install the manager's release"), "{text}");
        let (sound, text) = verdict(&node(|node| node.datagram_buffer_bytes = Some(425_984)));
        assert!(sound && text.contains("net.core.rmem_max"), "{text}");
    }

    #[test]
    fn a_clock_that_is_wrong_is_a_warning() {
        let now = SystemTime::now();
        let millis = now.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        for (theirs, word) in [(millis, "ok"), (millis - 5000, "warning"), (millis + 60_000, "warning")] {
            let mut report = Report::default();
            clock(&StatusReport { time_ms: Some(theirs), ..StatusReport::default() }, now, &mut report);
            assert!(report.to_string().contains(word), "{report}");
        }
    }
}
