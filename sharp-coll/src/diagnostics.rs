//! Section "Diagnostics": counters, and the log before the first job.

use std::ffi::{c_int, c_void};
use std::fmt::Write as _;
use std::io::Write as _;

use crate::boundary::guard;
use crate::context::{CONTEXTS, Context};
use crate::error::{ERROR, Failure};
use crate::{log, settings};

/// Writes the counters of this rank.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_dump_stats(context: *mut c_void) -> c_int {
    guard("sharp_coll_dump_stats", || {
        let context = CONTEXTS.get(context).ok_or_else(|| Failure::invalid("there is no such context"))?;
        write_counters(&context)
    })
}

/// Reads the log level.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_log_early_init() -> c_int {
    log::read_level();
    0
}

/// One line per counter, to the file of the settings or to stderr.
pub fn write_counters(context: &Context) -> Result<(), Failure> {
    let counters = context.job.counters()?;
    let (rank, size) = (context.job.rank(), context.job.size());
    let mut text = format!("# libsharp_coll counters of rank {rank} of {size}\n");
    for (name, count) in [
        ("operations_datagram", counters.operations_llt),
        ("operations_stream", counters.operations_sat),
        ("datagrams_sent", counters.datagrams_sent),
        ("datagrams_received", counters.datagrams_received),
        ("datagrams_rejected", counters.datagrams_rejected),
        ("stream_bytes_sent", counters.stream_bytes_sent),
        ("stream_bytes_received", counters.stream_bytes_received),
        ("retransmissions", counters.retransmissions),
        ("probes", counters.probes),
        ("groups_created", counters.groups_created),
        ("groups_freed", counters.groups_freed),
    ] {
        let _ = writeln!(text, "{name} {count}");
    }
    let written = match settings::value("SHARP_COLL_STATS_FILE") {
        None => std::io::stderr().write_all(text.as_bytes()),
        Some(path) => {
            // One write at the end, so that ranks on one host do not mix.
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        }
    };
    written.map_err(|cause| Failure::new(ERROR, format!("counters cannot be written: {cause}")))
}
