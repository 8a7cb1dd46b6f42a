//! Units of options, the same for all subcommands: a time is a number of seconds, with a fraction
//! if wanted.
//!
//! Rates are read by the type that they become: `500mbit`, `2.5gbit`. Measured rates are told in
//! bytes: `62 MB/s`.

use std::time::Duration;

/// Reads a time of 0 seconds or more.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| "say a number of seconds, 0 to 86400".to_owned())
}

/// Reads a time of more than 0 seconds.
pub(super) fn some_seconds(text: &str) -> Result<Duration, String> {
    let time = read(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "say a number of seconds, more than 0 and at most 86400".to_owned())
}

fn read(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    // A range check refuses NaN too.
    (0.0..=DAY).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Two or three digits and a unit: `9.4 MB/s`, `940 kB/s`.
pub(super) fn bytes_per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate))
}

/// Two or three digits and a unit: `9.4 MB`, `940 kB`.
pub(super) fn bytes(count: f64) -> String {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    // A number that would be rounded to a thousand gets the next letter.
    let (scale, letter) = scales.into_iter().find(|(scale, _)| count >= 0.9995 * scale).unwrap_or((1.0, ""));
    format!("{} {letter}B", number(count / scale))
}

/// A number, with one decimal if that says something: `0.3`, `2013`.
pub(super) fn number(value: f64) -> String {
    if value > 0.0 && value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

const DAY: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_two_or_three_digits_and_a_unit() {
        let rates = [0.0, 0.4, 7.2, 999.4, 999.6, 9_940.0, 9_960.0, 940_123.0, 62.5e6, 12.4e9, 3e12];
        let words = [
            "0 B/s", "0.4 B/s", "7.2 B/s", "999 B/s", "1.0 kB/s", "9.9 kB/s", "10 kB/s", "940 kB/s", "62 MB/s",
            "12 GB/s", "3.0 TB/s",
        ];
        assert_eq!(rates.map(bytes_per_second), words);
        assert_eq!([0.0, 0.3, 12.0, 2013.4].map(number), ["0", "0.3", "12", "2013"]);
    }

    #[test]
    fn a_time_is_a_number_of_seconds_within_a_day() {
        assert_eq!(some_seconds("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert!(some_seconds("0").is_err());
        for text in ["", "-1", "nan", "inf", "5s", "86401"] {
            assert!(seconds(text).is_err() && some_seconds(text).is_err(), "{text:?}");
        }
    }
}
