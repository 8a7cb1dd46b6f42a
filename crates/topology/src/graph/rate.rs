//! The rate of a link, in bits per second.

use std::fmt;
use std::str::FromStr;

/// Bits per second, each way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkRate(u64);

impl LinkRate {
    /// The rate of links if a file says nothing.
    pub const DEFAULT: Self = Self::gbit(100);

    /// A rate of `rate` Gbit/s.
    pub const fn gbit(rate: u64) -> Self {
        Self(rate * 1_000_000_000)
    }

    /// A rate of `rate` bits per second; `None` for 0.
    pub fn bits(rate: u64) -> Option<Self> {
        (1..=MOST).contains(&rate).then_some(Self(rate))
    }

    /// The rate in bits per second. It is never 0.
    pub fn bits_per_second(self) -> u64 {
        self.0
    }
}

impl FromStr for LinkRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale = match unit.trim_start().to_ascii_lowercase().as_str() {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            "tbit" => 1e12,
            _ => return Err(EXPECTED),
        };
        let bits = (number.parse::<f64>().map_err(|_| EXPECTED)? * scale).round();
        if bits > MOST as f64 { Err(EXPECTED) } else { Self::bits(bits as u64).ok_or(EXPECTED) }
    }
}

impl fmt::Display for LinkRate {
    /// Writes the rate as [`LinkRate::from_str`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000_000, "tbit"), (1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")];
        // The largest unit that needs at most three decimals is taken, so that nothing is lost.
        for (scale, unit) in units {
            if self.0 >= scale && self.0.is_multiple_of(scale / 1000) {
                return write!(f, "{}{unit}", self.0 as f64 / scale as f64);
            }
        }
        write!(f, "{}bit", self.0)
    }
}

impl serde::Serialize for LinkRate {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

const MOST: u64 = 1_000_000_000_000_000;
const EXPECTED: &str = "a rate is a number and a unit, up to 1000tbit, for example 100gbit or 500mbit";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_they_are_written() {
        for text in ["100gbit", "2.5gbit", "500mbit", "1.6tbit", "54.545gbit", "1bit", "999bit", "1.001kbit"] {
            assert_eq!(text.parse::<LinkRate>().unwrap().to_string(), text);
        }
        for bits in [1, 999, 1000, 1001, 1_000_001, 54_545_454_545] {
            let rate = LinkRate::bits(bits).unwrap();
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in ["", "100", "gbit", "-1gbit", "0gbit", "1.2.3gbit", "100 parsec", "1001tbit", "0.1bit"] {
            assert_eq!(text.parse::<LinkRate>(), Err(EXPECTED), "{text}");
        }
    }
}
