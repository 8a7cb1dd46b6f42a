//! Asking the manager of a laboratory from outside. A laboratory has its own network, so the
//! question is asked inside.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use trib_lab::Lab;

use super::exec::become_it;
use super::failure;
use crate::commands::manager_option::ManagerOption;
use crate::commands::own_program;
use crate::failure::Failure;

/// Runs this very command on a host of the laboratory that TRIB_LAB names and returns its exit
/// code. `None` if the laboratory's manager is not the one that is meant, or if this process is
/// inside: then the manager can be asked from here.
///
/// The process must have one thread.
pub fn enter(manager: &ManagerOption) -> Result<Option<ExitCode>, Failure> {
    let (Ok(name), Some(url)) = (env::var("TRIB_LAB"), &manager.manager) else { return Ok(None) };
    let lab = match Lab::attach(&name) {
        Ok(lab) => lab,
        // The keys of the laboratory exist as long as it does. Without them, what the shell was
        // told is no longer true, and that is an error.
        Err(error) if manager.url()?.credentials().exists() => {
            tracing::debug!("TRIB_LAB: {error}");
            return Ok(None);
        }
        Err(error) => return Err(failure(error)),
    };
    if lab.manager() != url || lab.hosts() == 0 || lab.is_around_us() {
        return Ok(None);
    }
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    become_it(&lab, FIRST_HOST, own_program()?.as_os_str(), &arguments).map(Some)
}

/// Every laboratory has this host.
const FIRST_HOST: &str = "h0";
