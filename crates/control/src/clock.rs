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

#[cfg(test)]
mod tests {
    use super::*;

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
