//! What is measured at a time: one collective of one size in one mode.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trib_wire::Collective;

/// How a cell's operations follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Back to back, with no barrier between them.
    Sustained,
    /// One at a time, each after a pause and a barrier.
    Single,
    /// Eight non-blocking operations at once, back to back.
    Flight,
}

impl Mode {
    /// How many operations are under way together.
    pub fn in_flight(self) -> u64 {
        match self {
            Self::Sustained | Self::Single => 1,
            Self::Flight => 8,
        }
    }

    /// Its name in cells and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sustained => "sustained",
            Self::Single => "single",
            Self::Flight => "flight",
        }
    }
}

/// One cell. Its text form is `COLLECTIVE:BYTES:MODE[:ITERATIONS]`, which all programs of the
/// comparison read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cell {
    /// The collective.
    pub collective: Collective,
    /// Bytes of the whole vector; programs round it up to whole blocks.
    pub bytes: u64,
    /// How operations follow each other.
    pub mode: Mode,
    /// How many operations are timed; `None`: as many as fit into the time budget.
    pub iterations: Option<u32>,
}

impl Cell {
    /// Back to back, as often as the budget allows.
    pub fn sustained(collective: Collective, bytes: u64) -> Cell {
        Cell { collective, bytes, mode: Mode::Sustained, iterations: None }
    }

    /// One at a time.
    pub fn single(collective: Collective, bytes: u64) -> Cell {
        Cell { mode: Mode::Single, ..Cell::sustained(collective, bytes) }
    }

    /// The same cell with this many timed operations.
    pub fn times(self, iterations: u32) -> Cell {
        Cell { iterations: Some(iterations), ..self }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.collective.name(), self.bytes, self.mode.name())?;
        self.iterations.map_or(Ok(()), |iterations| write!(f, ":{iterations}"))
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(':').collect();
        let (&[collective, size, mode], iterations) = (match &words[..] {
            [head @ .., iterations] if head.len() == 3 => {
                let count = iterations.parse().map_err(|_| format!("`{iterations}` is not a number of iterations"))?;
                (head, Some(count))
            }
            all => (all, None),
        }) else {
            return Err("a cell is COLLECTIVE:BYTES:MODE[:ITERATIONS]".to_owned());
        };
        let collective = Collective::from_name(collective).ok_or_else(|| {
            let names: Vec<&str> = Collective::ALL.iter().map(|collective| collective.name()).collect();
            format!("`{collective}` is not one of {}", names.join(", "))
        })?;
        let modes = [Mode::Sustained, Mode::Single, Mode::Flight];
        let mode = modes
            .into_iter()
            .find(|known| known.name() == mode)
            .ok_or_else(|| format!("`{mode}` is none of sustained, single and flight"))?;
        Ok(Cell { collective, bytes: bytes(size)?, mode, iterations })
    }
}

/// Reads a number of bytes; K and M are 2^10 and 2^20.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is not a number of bytes, perhaps with K or M"))?;
    number.checked_mul(factor).filter(|bytes| *bytes <= BYTES_MAX).ok_or_else(|| "at most 1 GiB".to_owned())
}

/// Sizes as people write them: 64 KiB, 1 MiB.
pub fn human(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        b if b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

const BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_are_written() {
        for text in ["allreduce:1048576:sustained", "barrier:0:single:100", "reduce_scatter:65536:flight"] {
            assert_eq!(text.parse::<Cell>().unwrap().to_string(), text);
        }
        let short: Cell = "bcast:64K:single".parse().unwrap();
        assert_eq!((short.bytes, short.iterations), (65_536, None));
        for nonsense in [
            "",
            "allreduce",
            "allreduce:4",
            "gather:4:single",
            "allreduce:x:single",
            "allreduce:4:idle",
            "bcast:4:single:x:1",
        ] {
            assert!(nonsense.parse::<Cell>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!([0, 5, 2048, 3 << 20].map(human), ["0", "5 B", "2 KiB", "3 MiB"]);
        assert!(bytes("2000M").is_err());
    }
}
