//! The simulator alone, for builds of the core without the rest (`trib sim` is the same).

use std::process::ExitCode;

fn main() -> ExitCode {
    match trib_sim::cli::parse(std::env::args().skip(1)) {
        Err(message) => {
            eprintln!("trib-sim: {message}");
            ExitCode::from(2)
        }
        Ok(command) if trib_sim::cli::run(&command, "trib-sim") => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
    }
}
