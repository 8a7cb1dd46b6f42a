//! The machine on which a comparison runs.

use std::time::Duration;

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
    /// Share of the cores that something else used just before.
    pub busy: f64,
}

impl Machine {
    /// This machine, today.
    pub fn here() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info.lines().find(|line| line.starts_with("model name"));
        let processor = model.and_then(|line| line.split_once(':')).map_or("?", |(_, name)| name.trim()).to_owned();
        let release = read("/proc/sys/kernel/osrelease");
        let kernel = release.trim().split('-').next().unwrap_or_default().to_owned();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Machine { processor, cores, kernel, date: date(since.as_secs() / 86_400), busy: busy() }
    }
}

/// Year-month-day of a day counted from 1970 (the usual conversion of a day number into the
/// Gregorian calendar).
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

/// The share of the cores that is in use, over a moment in which we do nothing.
fn busy() -> f64 {
    let before = Ticks::now();
    std::thread::sleep(MOMENT);
    Ticks::now().sum.busy_since(&before.sum).unwrap_or(0.0)
}

/// Clock ticks since boot, each [`TICK_NS`] long.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ticks {
    /// The ticks of all cores together.
    pub(crate) sum: CoreTicks,
    /// The ticks of each core.
    pub(crate) cores: Vec<CoreTicks>,
}

/// Clock ticks of one core, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CoreTicks {
    /// All ticks, idle or not.
    pub(crate) all: u64,
    /// Ticks that were neither idle nor spent waiting for a disk. Stolen ticks count, because other
    /// machines had the core then and this one could not use it.
    pub(crate) busy: u64,
    /// Ticks of the kernel's network work outside of any process.
    pub(crate) softirq: u64,
}

impl Ticks {
    /// Reads the ticks.
    pub(crate) fn now() -> Ticks {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let mut lines = text.lines().take_while(|line| line.starts_with("cpu")).map(CoreTicks::read);
        Ticks { sum: lines.next().unwrap_or_default(), cores: lines.collect() }
    }

    /// Share of the time since `before` that the busiest core was at work.
    pub(crate) fn busiest_since(&self, before: &Ticks) -> Option<f64> {
        let pairs = self.cores.iter().zip(&before.cores);
        pairs.filter_map(|(now, before)| now.busy_since(before)).max_by(f64::total_cmp)
    }
}

impl CoreTicks {
    fn read(line: &str) -> CoreTicks {
        let numbers: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // The fields are user, nice, system, idle, iowait, irq, softirq and steal. Time of guests,
        // which follows, is part of the first two already.
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        let all: u64 = numbers.iter().take(8).sum();
        CoreTicks { all, busy: all - at(3) - at(4), softirq: at(6) }
    }

    /// Share of the time since `before`; `None` if no time has passed.
    fn busy_since(&self, before: &CoreTicks) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        (all > 0).then(|| self.busy.saturating_sub(before.busy) as f64 / all as f64)
    }
}

/// The kernel reports times to programs in hundredths of a second.
pub(crate) const TICK_NS: f64 = 1e7;
/// Long enough for a hundred ticks of two cores.
const MOMENT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(20_778), "2026-11-21");
    }

    #[test]
    fn ticks_go_on() {
        let before = Ticks::now();
        std::thread::sleep(Duration::from_millis(50));
        let after = Ticks::now();
        let sum = after.sum;
        assert!(sum.all > before.sum.all && sum.all >= sum.busy && sum.busy >= sum.softirq);
        assert!(after.cores.len() >= std::thread::available_parallelism().unwrap().get(), "{after:?}");
        assert!((0.0..=1.0).contains(&busy()));
    }

    #[test]
    fn the_busiest_core_counts() {
        let ticks = |cores: &[(u64, u64)]| Ticks {
            sum: CoreTicks::default(),
            cores: cores.iter().map(|&(all, busy)| CoreTicks { all, busy, softirq: 0 }).collect(),
        };
        let before = ticks(&[(100, 50), (100, 90), (100, 0)]);
        assert_eq!(ticks(&[(200, 149), (200, 140), (100, 0)]).busiest_since(&before), Some(0.99));
        assert_eq!(before.busiest_since(&before), None);
        assert_eq!(CoreTicks::read("cpu1 5 1 2 30 4 0 6 7 9 9"), CoreTicks { all: 55, busy: 21, softirq: 6 });
    }
}
