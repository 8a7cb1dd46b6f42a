//! The rate of a link.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bits per second on the wire, link-layer headers included. It is written `500mbit` or `2.5gbit`,
/// as `tc` writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct BitRate(u64);

impl BitRate {
    /// A whole number of Mbit/s.
    pub const fn mbit(rate: u64) -> Self {
        Self(rate * 1_000_000)
    }

    /// Bits per second.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The rate `numerator / denominator` times as high, rounded down.
    pub const fn times(self, numerator: u64, denominator: u64) -> Self {
        Self(self.0 * numerator / denominator)
    }
}

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no rate: say 500mbit or 2.5gbit; 1mbit to 100gbit");
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(bad)?);
        let unit = match unit {
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return Err(bad()),
        };
        let bits = number.parse::<f64>().map_err(|_| bad())? * unit;
        // A range check refuses NaN too.
        if (1e6..=1e11).contains(&bits) { Ok(Self(bits.round() as u64)) } else { Err(bad()) }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}mbit", self.0 as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for (text, bits) in [("500mbit", 500_000_000), ("2.5gbit", 2_500_000_000), ("1mbit", 1_000_000)] {
            let rate: BitRate = text.parse().unwrap();
            assert_eq!(rate.bits(), bits);
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        assert_eq!(BitRate::mbit(500).to_string(), "500mbit");
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in
            ["", "500", "mbit", "-1mbit", "0mbit", "0.5mbit", "500kbit", "500 mbit", "nanmbit", "infgbit", "101gbit"]
        {
            assert!(text.parse::<BitRate>().is_err(), "{text:?}");
        }
    }
}
