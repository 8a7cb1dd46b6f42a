//! `trib plan --calibrate`: measures the constants of a host and a node on this machine.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use trib_compare::calibrate::{Calibration, Figure, calibrate};
use trib_compare::machine::Machine;
use trib_lab::{default_base, heeded};
use trib_topology::predict::{About, Constant, Measured, written};

use crate::commands::own_program;
use crate::failure::Failure;
use crate::log;
use crate::stdout;

/// Measures, and writes the file.
pub(super) fn run(rounds: u32, out: Option<&Path>) -> Result<ExitCode, Failure> {
    log::init_tool();
    let (program, base) = (own_program()?, default_base());
    let interrupted_by = interruption()?;
    let calibration =
        Calibration { program: &program, base: &base, rounds, bytes: VECTOR, interrupted_by: &interrupted_by };
    let machine = Machine::here();
    let figures = calibrate(&calibration);
    if let signal @ 1.. = interrupted_by.load(Ordering::Relaxed) {
        return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
    }
    let figures = figures.map_err(Failure::Environment)?;
    let about = About {
        machine: format!("{}, {} cores", machine.processor, machine.cores),
        kernel: machine.kernel.clone(),
        date: machine.date.clone(),
        how: format!(
            "loopback, {rounds} rounds; hosts and node shared the cores, {:.0} % of which were busy before",
            machine.busy * 100.0
        ),
    };
    let measured = |figure: &Figure| {
        let constant = Constant::named(figure.name).map_err(Failure::operation)?;
        Ok(Measured { constant, value: figure.value(), spread: figure.spread(), how: figure.how.clone() })
    };
    let measured = figures.iter().map(measured).collect::<Result<Vec<_>, Failure>>()?;
    let text = written(&about, &measured);
    match out {
        None => stdout::print(&text)?,
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", path.display())))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Becomes the number of a signal that is to end the calibration. It must not end this process at
/// once: the fabric of the calibration would be left.
fn interruption() -> Result<Arc<AtomicUsize>, Failure> {
    let caught = Arc::new(AtomicUsize::new(0));
    for signal in heeded(&[SIGHUP, SIGINT, SIGTERM]) {
        signal_hook::flag::register_usize(signal, caught.clone(), signal as usize).map_err(Failure::environment)?;
    }
    Ok(caught)
}

/// Bytes of a vector that is longer than any cache of one core.
const VECTOR: u64 = 16 << 20;
