//! Asking the manager of a laboratory from outside: the laboratory has all addresses to itself, so the question is asked inside.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use trib_lab::Lab;

use super::exec::become_it;
use super::failure;
use crate::commands::manager_option::ManagerOption;
use crate::commands::own_program;
use crate::failure::Failure;

/// Runs this very command on a host of the laboratory that TRIB_LAB names, if its manager is the one that is meant and we
/// are outside; gives its exit code. `None`: the manager is to be reached from here.
///
/// To be called by a process of one thread.
pub fn enter(manager: &ManagerOption) -> Result<Option<ExitCode>, Failure> {
    let (Ok(name), Some(url)) = (env::var("TRIB_LAB"), &manager.manager) else { return Ok(None) };
    let lab = match Lab::attach(&name) {
        Ok(lab) => lab,
        // Its keys went with it: what the shell was told is no longer true.
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

/// Every laboratory has it.
const FIRST_HOST: &str = "h0";
