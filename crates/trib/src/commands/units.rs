//! Units of options, the same for all subcommands: a time is a number of seconds, with a fraction if wanted.
//!
//! Rates are read by the type that they become: `500mbit`, `2.5gbit`.

use std::time::Duration;

/// No time at all, or more.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| "say a number of seconds, 0 to 86400".to_owned())
}

/// More than no time.
pub(super) fn some_seconds(text: &str) -> Result<Duration, String> {
    let time = read(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "say a number of seconds, more than 0 and at most 86400".to_owned())
}

fn read(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    // Written so that what is no number is refused too.
    (0.0..=DAY).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

const DAY: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

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
