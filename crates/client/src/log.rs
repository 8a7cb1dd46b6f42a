//! The log of a program that joins a job.

use crate::params::{LOG_ENV, Params, setting};

/// Begins it, if `TRIB_LOG` asks for one. Lines name the host, the process and the rank.
pub(crate) fn begin(params: &Params) {
    if let Ok(Some(filter)) = setting(LOG_ENV) {
        let host = params.host_name().unwrap_or_else(|_| "?".into());
        trib_log::begin_in_program(&filter, &format!("{host}:{} [{}]", std::process::id(), params.rank));
    }
}
