//! The time of day, for people and other machines, and spans of time in words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time in milliseconds since 1970-01-01 UTC.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

/// A span of milliseconds in its two largest units: `7 s`, `2 min 5 s`, `3 h`, `4 d 1 h`.
pub fn span(ms: u64) -> String {
    let seconds = Duration::from_millis(ms).as_secs();
    if seconds == 0 {
        return format!("{ms} ms");
    }
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(units.len() - 1);
    let (unit, word) = units[first];
    let whole = format!("{} {word}", seconds / unit);
    match units.get(first + 1).map(|(unit_below, word)| (seconds % unit / unit_below, word)) {
        Some((rest, word)) if rest > 0 => format!("{whole} {rest} {word}"),
        _ => whole,
    }
}

/// The time in seconds since 1970-01-01 UTC.
pub fn unix_s() -> u64 {
    unix_ms() / 1000
}

/// A moment, in seconds since 1970-01-01 UTC, as `2027-11-26 15:48:01 UTC`.
pub fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / DAY, seconds % DAY);
    // Years count from March, so that the day that is not in every year is the last.
    let shifted = days + DAYS_TO_1970;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The seconds from 1970-01-01 UTC to the beginning of a day; 0 for days before.
pub(crate) fn seconds_of(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    days.saturating_sub(DAYS_TO_1970) * DAY
}

/// A day in seconds.
pub const DAY: u64 = 86_400;
/// From the first of March of the year 0.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_the_calendar_and_has_its_seconds() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_827_244_081, "2027-11-26 15:48:01 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
        for day in 0..50_000 {
            let text = date(day * DAY);
            let part = |at: std::ops::Range<usize>| text[at].parse().unwrap();
            assert_eq!(seconds_of(part(0..4), part(5..7), part(8..10)), day * DAY, "{text}");
        }
    }

    #[test]
    fn spans_have_two_units_at_most() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (125_000, "2 min 5 s"),
            (120_999, "2 min"),
            (3 * 3_600_000, "3 h"),
            (3 * 3_600_000 + 59_000, "3 h"),
            (4 * 86_400_000 + 3_600_000 + 61_000, "4 d 1 h"),
        ] {
            assert_eq!(span(ms), text);
        }
    }
}
