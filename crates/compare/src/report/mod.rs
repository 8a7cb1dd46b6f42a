//! What is written of a comparison: JSON for programs, a page with tables, CSV and plots for people.

mod csv;
mod json;
mod markdown;
mod plot;
mod plots;

use std::io;
use std::path::Path;

pub use json::json;

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
    /// How long it took, seconds.
    pub seconds: f64,
    /// Table of the reduction kernels, if they were measured.
    pub kernels: Option<String>,
}

/// A machine, in words.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Date of the measurement, year-month-day.
    pub date: String,
}

impl Machine {
    /// This one, today.
    pub fn here() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info.lines().find(|line| line.starts_with("model name"));
        let processor = model.and_then(|line| line.split_once(':')).map_or("?", |(_, name)| name.trim()).to_owned();
        let release = read("/proc/sys/kernel/osrelease");
        let kernel = release.trim().split('-').next().unwrap_or_default().to_owned();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Machine { processor, cores, kernel, date: date(since.as_secs() / 86_400) }
    }
}

/// Year-month-day of a day counted from 1970 (the usual conversion of a day number into the Gregorian calendar).
fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Writes `performance.md` into `folder`, and beside it a folder `performance` with CSV and plots.
pub fn write(comparison: &Comparison, folder: &Path) -> io::Result<()> {
    let figures = folder.join("performance");
    std::fs::create_dir_all(&figures)?;
    std::fs::write(figures.join("results.csv"), csv::csv(&comparison.rows))?;
    let drawn = plots::draw(&comparison.rows);
    for plot in &drawn {
        std::fs::write(figures.join(format!("{}.csv", plot.name)), plot.csv())?;
        std::fs::write(figures.join(format!("{}.svg", plot.name)), plot.svg().map_err(io::Error::other)?)?;
    }
    std::fs::write(folder.join("performance.md"), markdown::page(comparison, &drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(20_778), "2026-11-21");
    }
}
