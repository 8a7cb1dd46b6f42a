//! Metrics that every daemon has about itself.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::page::Page;
use crate::settings::Daemon;

/// What a page says of its daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// When the daemon began.
    pub began: SystemTime,
    /// The seconds until its certificate ends, if its file can be read.
    pub certificate_seconds: Option<i64>,
}

/// Adds the metrics of the version, of the certificate and of the process.
pub(super) fn add_to(page: &mut Page, daemon: Daemon, About { began, certificate_seconds }: About) {
    page.metric("tributary_build_info").sample(&[daemon.word(), env!("CARGO_PKG_VERSION")], 1);
    let mut certificate = page.metric("tributary_certificate_seconds");
    if let Some(seconds) = certificate_seconds {
        certificate.sample(&[], seconds);
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    page.metric("process_cpu_seconds_total").sample(&[], cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9);
    page.metric("process_resident_memory_bytes").sample(&[], resident_bytes().unwrap_or(0));
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
    // The descriptor that counting itself opened is left out.
    page.metric("process_open_fds").sample(&[], open.saturating_sub(1));
    let began = began.duration_since(UNIX_EPOCH).map_or(0.0, |age| age.as_secs_f64());
    page.metric("process_start_time_seconds").sample(&[], began);
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_descriptors_and_an_age() {
        let mut page = Page::default();
        add_to(&mut page, Daemon::Node, About { began: SystemTime::now(), certificate_seconds: Some(-5) });
        let text = page.into_text();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(
            text.contains(&format!(
                "tributary_build_info{{daemon=\"an\",version=\"{}\"}} 1\n",
                env!("CARGO_PKG_VERSION")
            ))
        );
        assert_eq!(value("tributary_certificate_seconds"), -5.0);
        assert!(value("process_resident_memory_bytes") > 100_000.0, "{text}");
        assert!(value("process_open_fds") >= 3.0 && value("process_start_time_seconds") > 1.7e9, "{text}");
    }
}
