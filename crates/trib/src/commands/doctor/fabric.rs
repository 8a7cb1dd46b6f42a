//! Checks that run no job: this host's keys, the manager, and what the manager knows of its nodes.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use trib_control::clock::{date, span, unix_s};
use trib_control::{Certificate, Channel, Error, Holder, ManagerUrl, Peer, WARNING, software_version};
use trib_messages::hello::Role;
use trib_messages::reply::{NodeStatus, Reply, StatusReport};
use trib_messages::request::Request;

use super::check::Report;

/// Checks who else could use this host's keys, and how long its certificates hold. Whether they
/// work shows when the manager is asked.
pub(super) fn keys(url: &ManagerUrl, report: &mut Report) {
    users_key(url, report);
    daemons_keys(url.credentials(), report);
    let now = unix_s();
    for role in [Role::User, Role::Node] {
        if let Ok(certificate) = Certificate::in_folder(url.credentials(), role) {
            judge_end(&certificate.holder, certificate.ends, now, report);
        }
    }
}

/// A daemon does not start with a key that others can read, and the authority's is the operator's.
fn daemons_keys(folder: &Path, report: &mut Report) {
    let keys = [("authority-key.pem", 0o077, "600"), ("manager.key", 0o007, "o="), ("node.key", 0o007, "o=")];
    for (name, others, rights) in keys {
        let key = folder.join(name);
        if key.metadata().is_ok_and(|key| key.permissions().mode() & others != 0) {
            let found = format!("{} can be read by others than its user", key.display());
            report.fail("keys", found, Some(format!("chmod {rights} {}", key.display())));
        }
    }
}

/// What is said of a certificate 30 days before its end.
fn judge_end(holder: &Holder, ends: u64, now: u64, report: &mut Report) {
    let title = format!("certificate of {holder}");
    let certificate = format!("valid until {}", date(ends));
    let remedy = format!(
        "`trib credentials renew DIR {}`, and copy its files to where they are used; nothing needs a restart",
        holder.option()
    );
    match ends.checked_sub(now) {
        None => report.fail(title, format!("ended on {}", date(ends)), Some(remedy)),
        Some(left) if left < WARNING => {
            report.warn(title, format!("{certificate}, {} left", span(left * 1000)), remedy)
        }
        Some(_) => report.good(title, certificate),
    }
}

fn users_key(url: &ManagerUrl, report: &mut Report) {
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
        .and_then(|channel| Ok((channel.ask(&Request::Status, limit)?, channel.peer().clone())));
    match asked {
        Ok((Reply::Status(status), Peer { software, certificate, .. })) => {
            manager(url, &status, &software, report);
            judge_end(&certificate.holder, certificate.ends, unix_s(), report);
            clock(&status, before, report);
            for node in &status.nodes {
                judge(node, &software, unix_s(), report);
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

/// Judges a node. One that is away or silent is a warning: the trial job, which fails where jobs of
/// this host need it, tells whether they do.
fn judge(node: &NodeStatus, managers: &str, now: u64, report: &mut Report) {
    let NodeStatus { name, version, connected, silent_since_ms, datagram_buffer_bytes, certificate_ends, .. } = node;
    let title = format!("node {name}");
    if !connected {
        let found = if version.is_empty() { "never registered" } else { "lost its connection to the manager" };
        let remedy = format!(
            "no job whose tree needs it is admitted, which jobs of this host do if the trial job fails: start \
             `trib an --name {name}` there and see its log"
        );
        return report.warn(title, found, remedy);
    }
    if silent_since_ms.is_some() {
        let remedy = format!(
            "jobs go around it where they can, or are refused, as the trial job is if this host's need it: let \
             `trib an --name {name}` go on, or restart it"
        );
        return report.warn(title, "is connected to the manager and does not answer it", remedy);
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
    if let (Some(ends), Ok(holder)) = (*certificate_ends, Holder::node(name))
        && ends < now + WARNING
    {
        judge_end(&holder, ends, now, report);
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

    const NOW: u64 = 1_800_000_000;

    fn node(change: impl FnOnce(&mut NodeStatus)) -> NodeStatus {
        let mut node = NodeStatus {
            name: "leaf0".into(),
            address: None,
            further: Vec::new(),
            version: "1.0".into(),
            connected: true,
            silent_since_ms: None,
            datagram_buffer_bytes: Some(BUFFER_ENOUGH),
            certificate_ends: Some(NOW + 2 * WARNING),
            counters: Default::default(),
        };
        change(&mut node);
        node
    }

    fn verdict(node: &NodeStatus) -> (bool, String) {
        let mut report = Report::default();
        judge(node, "1.0", NOW, &mut report);
        (report.is_sound(), report.to_string())
    }

    #[test]
    fn each_fault_of_a_node_is_named_with_its_remedy() {
        assert!(verdict(&node(|_| {})).1.contains("up, version 1.0"));
        let (sound, text) = verdict(&node(|node| node.connected = false));
        assert!(sound && text.contains("if the trial job fails: start `trib an --name leaf0`"), "{text}");
        let (sound, text) = verdict(&node(|node| node.silent_since_ms = Some(1)));
        assert!(sound && text.contains("does not answer") && text.contains("or restart it"), "{text}");
        let (sound, text) = verdict(&node(|node| node.version = "0.9".into()));
        assert!(sound && text.contains("0.9") && text.contains("install the manager's release"), "{text}");
        let (sound, text) = verdict(&node(|node| node.datagram_buffer_bytes = Some(425_984)));
        assert!(sound && text.contains("net.core.rmem_max"), "{text}");
    }

    #[test]
    fn a_certificate_is_warned_of_before_its_end_and_fails_after_it() {
        let (sound, text) = verdict(&node(|node| node.certificate_ends = Some(NOW + WARNING - 1)));
        assert!(sound && text.contains("certificate of node leaf0") && text.contains("29 d 23 h left"), "{text}");
        assert!(text.contains("trib credentials renew DIR --node leaf0"), "{text}");
        let (sound, text) = verdict(&node(|node| node.certificate_ends = Some(NOW - 1)));
        assert!(!sound && text.contains("ended on 2027-01-15 07:59:59 UTC"), "{text}");
        assert!(!verdict(&node(|_| {})).1.contains("certificate"));
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
