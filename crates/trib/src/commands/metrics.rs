//! The part of a daemon's command that serves its metrics.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use trib_control::Certificate;
use trib_control::clock::unix_s;
use trib_messages::hello::Role;
use trib_service::metrics::{About, Exporter, ExporterError};

use crate::failure::Failure;

/// The exporter of a daemon, if it is to have one. It is bound before the daemon starts, so that a
/// wrong address is an error of the start.
pub(super) fn exporter(address: Option<SocketAddr>) -> Result<Option<Exporter>, Failure> {
    address.map(Exporter::bind).transpose().map_err(|error: ExporterError| Failure::environment(error))
}

/// What a daemon that began then, with credentials in this folder, says about itself.
pub(super) fn about(began: SystemTime, folder: &Path, role: Role) -> About {
    let certificate = Certificate::in_folder(folder, role).ok();
    About { began, certificate_seconds: certificate.map(|certificate| certificate.seconds_left(unix_s())) }
}

/// Serves metrics from now on, and tells the supervisor the address.
pub(super) fn serve(exporter: Option<Exporter>, page: impl Fn() -> Option<String> + Send + 'static) -> io::Result<()> {
    let Some(exporter) = exporter else { return Ok(()) };
    let address = exporter.address();
    exporter.serve(page)?;
    trib_control::notify::metrics(address).map(drop)
}
