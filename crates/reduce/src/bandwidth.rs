//! This module measures how fast the kernels are, and how fast this memory is beside them.
//!
//! Each cell folds two sources into a first vector: for each element of the result, three elements
//! are read and one is written. A copy, measured the same way, reads one and writes one; a read
//! reads one. The rates count these bytes as the program sees them, not the lines that a cache
//! fetches before it overwrites them. The vectors lie in the cache or far beyond it; beyond it,
//! every round takes the next window of large vectors. A rate is the best of its rounds, because
//! other work on the machine can only slow a round down.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use half::{bf16, f16};
use trib_wire::{DataType, ReduceOp, Scalar};

use crate::{Path, cells, fold_into_on};

/// Where the vectors lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residence {
    /// Vectors of 32 KiB, in the first or second cache.
    Cache,
    /// Windows of 2 MiB that were last used long ago.
    Memory,
}

impl Residence {
    /// Both, the nearer one first.
    pub const ALL: [Residence; 2] = [Residence::Cache, Residence::Memory];
}

impl fmt::Display for Residence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Residence::Cache => "cache",
            Residence::Memory => "memory",
        })
    }
}

/// The rates of this memory when nothing is computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Baseline {
    /// Where the vectors lie.
    pub residence: Residence,
    /// Copying: bytes read and written, in 10^9 per second.
    pub copy_gb_per_s: f64,
    /// Reading alone, in 10^9 bytes per second.
    pub read_gb_per_s: f64,
}

/// One cell of the table on one path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// Type of the elements.
    pub dtype: DataType,
    /// Operator.
    pub op: ReduceOp,
    /// Instructions used.
    pub path: Path,
    /// Where the vectors lie.
    pub residence: Residence,
    /// Bytes read and written, in 10^9 per second.
    pub gb_per_s: f64,
    /// The rate as a share of the rate of a copy between vectors that lie in the same memory.
    pub share_of_memcpy: f64,
}

/// Everything measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Bytes of each of the three large vectors.
    pub memory_bytes: usize,
    /// One per residence.
    pub baselines: Vec<Baseline>,
    /// One per path, residence and cell, in this order.
    pub rows: Vec<Row>,
}

/// What to measure, and how long.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Time for all measurements together; preparing the vectors adds about a second.
    pub budget: Duration,
    /// Paths to compare; those that this processor lacks are left out.
    pub paths: Vec<Path>,
    /// Types of elements.
    pub types: Vec<DataType>,
    /// Bytes of each of the three large vectors, at least a window of 2 MiB, best beyond the last
    /// cache.
    pub memory_bytes: usize,
}

impl Default for Options {
    /// 8 seconds, the best path, every type, 128 MiB.
    fn default() -> Options {
        let (paths, types) = (vec![Path::best()], DataType::ALL.to_vec());
        Options { budget: Duration::from_secs(8), paths, types, memory_bytes: 128 << 20 }
    }
}

/// Measures every cell of the types that the options name.
pub fn measure(options: &Options) -> Report {
    let memory_bytes = options.memory_bytes.max(WINDOW_BYTES) / WINDOW_BYTES * WINDOW_BYTES;
    let paths: Vec<Path> = options.paths.iter().copied().filter(|path| path.is_available()).collect();
    let count = cells().filter(|cell| options.types.contains(&cell.0)).count();
    let each = options.budget / ((count * paths.len() + 2) * 2) as u32;
    let mut vectors = Vectors::new(memory_bytes);
    let baselines = Residence::ALL.map(|residence| Baseline {
        residence,
        copy_gb_per_s: best_rate(each, residence, &mut vectors, 2, |[target, source, _]| {
            target.copy_from_slice(source);
        }),
        read_gb_per_s: best_rate(each, residence, &mut vectors, 1, |[source, _, _]| {
            black_box(read(source));
        }),
    });
    let mut rows = Vec::new();
    for &dtype in &options.types {
        vectors.fill(dtype);
        for &path in &paths {
            for (at, residence) in Residence::ALL.into_iter().enumerate() {
                for (_, op) in cells().filter(|cell| cell.0 == dtype) {
                    let gb_per_s = best_rate(each, residence, &mut vectors, 4, |[first, left, right]| {
                        let rest: [&[u8]; 2] = [left, right];
                        fold_into_on(path, dtype, op, first, &rest).expect("a cell");
                    });
                    let share_of_memcpy = gb_per_s / baselines[at].copy_gb_per_s;
                    rows.push(Row { dtype, op, path, residence, gb_per_s, share_of_memcpy });
                }
            }
        }
    }
    Report { memory_bytes, baselines: baselines.to_vec(), rows }
}

/// Three large vectors, and where their next window begins.
struct Vectors {
    large: [Vec<u8>; 3],
    next: usize,
    /// Bytes of one element. A window holds whole elements only.
    element: usize,
    contents: Option<Contents>,
}

/// What the vectors are filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Ones(Scalar),
    Mixed,
}

impl Vectors {
    fn new(bytes: usize) -> Vectors {
        // The bytes are not zero, because zeroed pages would all be one page until they are
        // written.
        Vectors { large: [1, 2, 3].map(|value| vec![value; bytes]), next: 0, element: 1, contents: None }
    }

    /// Fills the vectors. Numbers are all 1: under no operator do they become denormals, which are
    /// slow and not what is measured here. Pairs take any bits, as long as their values are
    /// numbers, so that no branch predictor can foresee which of two pairs wins.
    fn fill(&mut self, dtype: DataType) {
        self.element = dtype.size();
        let contents = dtype.index().map_or(Contents::Ones(dtype.value()), |_| Contents::Mixed);
        if self.contents == Some(contents) {
            return;
        }
        self.contents = Some(contents);
        let window = match contents {
            Contents::Ones(number) => one(number).repeat(WINDOW_BYTES / number.size()),
            Contents::Mixed => mixed(),
        };
        for vector in &mut self.large {
            vector.chunks_exact_mut(WINDOW_BYTES).for_each(|target| target.copy_from_slice(&window));
        }
    }

    /// The next window of each vector. In the cache these are always the same bytes, in memory
    /// those that were unused for longest.
    fn window(&mut self, residence: Residence) -> [&mut [u8]; 3] {
        let range = match residence {
            Residence::Cache => 0..CACHE_BYTES - CACHE_BYTES % self.element,
            Residence::Memory => {
                self.next = (self.next + WINDOW_BYTES) % self.large[0].len();
                self.next..self.next + WINDOW_BYTES - WINDOW_BYTES % self.element
            }
        };
        self.large.each_mut().map(|vector| &mut vector[range.clone()])
    }
}

/// The number 1 as it lies in a vector.
fn one(scalar: Scalar) -> Vec<u8> {
    match scalar {
        Scalar::F64 => 1_f64.to_le_bytes().to_vec(),
        Scalar::F32 => 1_f32.to_le_bytes().to_vec(),
        Scalar::F16 => f16::ONE.to_le_bytes().to_vec(),
        Scalar::BF16 => bf16::ONE.to_le_bytes().to_vec(),
        integer => 1_u64.to_le_bytes()[..integer.size()].to_vec(),
    }
}

/// A window of random bits (xorshift). One bit in each byte is never set, so that a float is a
/// number at whatever byte it begins.
fn mixed() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state & !0x4040_4040_4040_4040).to_le_bytes()
    };
    core::iter::repeat_with(next).take(WINDOW_BYTES / 8).flatten().collect()
}

/// Best rate over rounds of `work`, which touches every byte of a window `touches` times.
fn best_rate(
    time: Duration,
    residence: Residence,
    vectors: &mut Vectors,
    touches: usize,
    mut work: impl FnMut([&mut [u8]; 3]),
) -> f64 {
    let repeats = match residence {
        Residence::Cache => 16,
        Residence::Memory => 1,
    };
    let start = Instant::now();
    let mut best = Duration::MAX;
    let mut bytes = 0;
    let mut rounds = 0;
    // The first rounds fetch what the caches lacked, so at least three are measured, even on a
    // budget of nothing.
    while rounds < 3 || start.elapsed() < time {
        let round = Instant::now();
        bytes = 0;
        for _ in 0..repeats {
            let window = vectors.window(residence);
            bytes += touches * window[0].len();
            work(black_box(window));
        }
        best = best.min(round.elapsed());
        rounds += 1;
    }
    bytes as f64 / best.as_secs_f64().max(1e-9) / 1e9
}

/// Loads every byte, with the widest instructions that every processor of the build's baseline has.
fn read(bytes: &[u8]) -> u64 {
    let (lines, _) = bytes.as_chunks::<64>();
    let mut sums = [0_u64; 8];
    for line in lines {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum |= u64::from_le_bytes(*word);
        }
    }
    sums.iter().fold(0, |all, sum| all | sum)
}

const CACHE_BYTES: usize = 32 << 10;

const WINDOW_BYTES: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_gets_a_rate_in_either_residence() {
        let paths = vec![Path::Portable, Path::best()];
        let options = Options { budget: Duration::ZERO, paths, memory_bytes: 1, ..Options::default() };
        let report = measure(&options);
        assert_eq!(report.memory_bytes, WINDOW_BYTES);
        assert_eq!(report.rows.len(), 2 * 2 * cells().count());
        let rates = report
            .rows
            .iter()
            .map(|row| row.gb_per_s)
            .chain(report.baselines.iter().flat_map(|base| [base.copy_gb_per_s, base.read_gb_per_s]));
        assert!(rates.into_iter().all(|rate| rate > 0.0 && rate.is_finite()));
    }
}
