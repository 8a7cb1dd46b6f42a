//! Section "Diagnostics": counters on request, and the log before the first job.

use std::ffi::{c_int, c_void};

use crate::boundary::guard;
use crate::context::{CONTEXTS, Context};
use crate::error::Failure;
use crate::log;
use crate::statistics::Mode;

/// Writes the counters of this rank, or those of all ranks if the mode says so.
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

/// Writes counters as the job's mode says. The call is collective where they are summed.
pub fn write_counters(context: &Context) -> Result<(), Failure> {
    let counters = context.job.counters();
    let (rank, size) = (context.job.rank(), context.job.size());
    match context.statistics.mode {
        Mode::Sum => {
            // A rank without counters takes part nevertheless, because the others wait for it.
            let own = counters.as_ref().copied().unwrap_or_default();
            context.statistics.write_sum(rank, size, &own, &mut context.exchange()?)?;
            counters.map(drop).map_err(Failure::from)
        }
        Mode::Off | Mode::Each => context.statistics.write_own(rank, size, &counters?),
    }
}
