//! What UCX would use on this host for links that go by it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use trib_transport::ucx::{Devices, NoUcx, devices};

use super::check::Report;

/// Names UCX's devices and what its environment says of them. Whether the topology wants UCX on
/// this host shows in the trial job, so that a host without it is no fault here.
pub(super) fn examine(limit: Duration, report: &mut Report) {
    // UCX calls drivers, which may not come back. The thread is left to itself then: this process
    // ends soon.
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(devices()));
    let Ok(found) = told.recv_timeout(limit) else {
        let remedy = "links with via = \"ucx\" do not work on this host: UCX_LOG_LEVEL=info `ucx_info -d` may tell which \
                      device it waits for";
        return report.warn("ucx", format!("UCX did not name its devices within {limit:?}"), remedy);
    };
    match found {
        Ok(Devices { version, devices }) => {
            let settings = || std::env::vars().filter(|(name, _)| name.starts_with("UCX_"));
            let mut said: Vec<String> = settings().map(|(name, value)| format!("{name}={value}")).collect();
            said.sort();
            let said = if said.is_empty() { String::new() } else { format!(", as {} says", said.join(" ")) };
            report.good("ucx", format!("UCX {version}: {}{said}", devices.join(" ")));
        }
        Err(NoUcx::Missing(_)) => {
            report.good("ucx", "not installed, which only links with via = \"ucx\" would need");
        }
        Err(other) => report.warn("ucx", other, "links with via = \"ucx\" do not work on this host"),
    }
}
