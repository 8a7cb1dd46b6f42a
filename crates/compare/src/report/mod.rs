//! What is written of a comparison: JSON for programs, a page with tables, CSV and plots for
//! people.

mod csv;
mod json;
mod markdown;
mod pictures;
mod plot;
mod plots;

use std::io;
use std::path::Path;

pub use json::json;

use crate::machine::Machine;
use crate::pace::Spent;
use crate::result::ResultRow;
use crate::targets::Target;

/// All that is known at the end.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Rows of all scenarios.
    pub rows: Vec<ResultRow>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The machine it ran on.
    pub machine: Machine,
    /// The command that was run.
    pub command: String,
    /// What was done for steadier figures.
    pub spent: Spent,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Table of the reduction kernels, if they were measured.
    pub kernels: Option<String>,
}

/// Writes `performance.md` into `folder`, and beside it a folder `performance` with CSV, plots and
/// the pictures of the README.
pub fn write(comparison: &Comparison, folder: &Path) -> io::Result<()> {
    let figures = folder.join("performance");
    std::fs::create_dir_all(&figures)?;
    let results = csv::csv(&comparison.rows);
    std::fs::write(figures.join("results.csv"), &results)?;
    for (name, picture) in pictures::pictures(&results) {
        std::fs::write(figures.join(name), picture)?;
    }
    let drawn = plots::draw(&comparison.rows);
    for plot in &drawn {
        std::fs::write(figures.join(format!("{}.csv", plot.name)), plot.csv())?;
        std::fs::write(figures.join(format!("{}.svg", plot.name)), plot.svg().map_err(io::Error::other)?)?;
    }
    std::fs::write(folder.join("performance.md"), markdown::page(comparison, &drawn))
}
