//! How fast the kernels are of sums that are taken otherwise than as they are, beside a copy.
//!
//! A rate counts the bytes that a step reads and writes, of the vector and of what travels. All
//! steps are of float32, normally distributed, and cover the same elements: 8,192 of them again and
//! again, which stay in the cache, or windows of 2 MiB, of which each was last used long ago.

use std::fmt::Write as _;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use trib_client::DataType;
use trib_reduce::bandwidth::Residence;
use trib_reduce::blocks::{self, Seed};
use trib_reduce::{Path, fold_blocks_on};
use trib_sums::{Kind, Layout, settle, spread, survey};
use trib_wire::INT8_BLOCK_BYTES;

/// A step of a sum.
struct Row {
    sum: &'static str,
    step: &'static str,
    path: &'static str,
    /// By residence: nanoseconds for an element, and bytes read and written for one.
    costs: Vec<(f64, f64)>,
}

/// What a member or a node computes, for `elements` of each window of the vectors.
struct Vectors {
    elements: usize,
    windows: usize,
    vector: Vec<u8>,
    /// What travels, three of them: a node sums two into a third.
    travels: [Vec<u8>; 3],
}

/// The table, measured within about `budget`.
pub(super) fn table(budget: Duration, paths: &[Path]) -> String {
    let steps = 3 * paths.len() + 6;
    let each = budget / (2 * (steps + 1)) as u32;
    let mut copies = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for residence in Residence::ALL {
        let mut vectors = Vectors::new(residence);
        copies.push(vectors.copied(each));
        let measured = vectors.steps(each, paths);
        match rows.is_empty() {
            true => rows = measured,
            false => rows.iter_mut().zip(measured).for_each(|(row, more)| row.costs.extend(more.costs)),
        }
    }
    let mut text = String::from("\n| sum of float32 | step | instructions |");
    Residence::ALL.iter().for_each(|residence| text.push_str(&format!(" {residence} | of copy | ns an element |")));
    text.push_str("\n|---|---|---|---:|---:|---:|---:|---:|---:|\n");
    for row in rows {
        let _ = write!(text, "| {} | {} | {} |", row.sum, row.step, row.path);
        for ((ns, bytes), copy) in row.costs.iter().zip(&copies) {
            let rate = bytes / ns;
            let _ = write!(text, " {rate:.1} | {:.0} % | {ns:.2} |", 100.0 * rate / copy);
        }
        text.push('\n');
    }
    text
}

impl Vectors {
    fn new(residence: Residence) -> Vectors {
        let (elements, windows) = match residence {
            Residence::Cache => (8192, 1),
            Residence::Memory => (512 << 10, 16),
        };
        let window: Vec<u8> = (0..elements as u32).flat_map(|at| normal(at).to_le_bytes()).collect();
        // Blocks and surveys take less than 2 bytes an element, limbs of such numbers less than 12.
        let travels = [2, 12, 2].map(|bytes| vec![1; windows * elements * bytes]);
        Vectors { elements, windows, vector: window.repeat(windows), travels }
    }

    /// How many bytes a copy reads and writes in a nanosecond.
    fn copied(&mut self, time: Duration) -> f64 {
        let Vectors { elements, windows, vector, travels: [_, target, _] } = self;
        let ns = best(time, *elements, *windows, |window| {
            let bytes = bytes_of(&window, 4.0);
            target[bytes.clone()].copy_from_slice(&vector[bytes]);
        });
        8.0 / ns
    }

    fn steps(&mut self, time: Duration, paths: &[Path]) -> Vec<Row> {
        let mut rows = Vec::new();
        for path in paths.iter().filter(|path| path.is_available()) {
            rows.extend(self.int8(time, *path));
        }
        rows.extend(Kind::ALL.into_iter().flat_map(|kind| self.order_free(time, kind)));
        rows
    }

    fn int8(&mut self, time: Duration, path: Path) -> [Row; 3] {
        let Vectors { elements, windows, vector, travels: [one, two, sum] } = self;
        let size = INT8_BLOCK_BYTES as f64 / trib_wire::INT8_BLOCK as f64;
        let row = |step, ns, bytes| Row { sum: "int8", step, path: path.name(), costs: vec![(ns, bytes)] };
        let quantised = best(time, *elements, *windows, |window| {
            let own = &vector[bytes_of(&window, 4.0)];
            blocks::quantise_on(path, DataType::F32, own, Seed::new(1, 2), 0, &mut one[bytes_of(&window, size)]);
        });
        two[..one.len()].copy_from_slice(one);
        sum.copy_from_slice(one);
        let folded = best(time, *elements, *windows, |window| {
            let own = bytes_of(&window, size);
            let rest: [&[u8]; 2] = [&one[own.clone()], &two[own.clone()]];
            fold_blocks_on(path, &mut sum[own], &rest).expect("whole blocks");
        });
        let back = best(time, *elements, *windows, |window| {
            blocks::dequantise_on(
                path,
                DataType::F32,
                &sum[bytes_of(&window, size)],
                &mut vector[bytes_of(&window, 4.0)],
            );
        });
        self.refill();
        [row("quantise", quantised, 4.0 + size), row("fold", folded, 4.0 * size), row("back", back, 4.0 + size)]
    }

    fn order_free(&mut self, time: Duration, kind: Kind) -> [Row; 3] {
        let Vectors { elements, windows, vector, travels: [surveys, limbs, _] } = self;
        let survey_len = kind.survey_bytes(*elements);
        let row = |step, ns, bytes| Row { sum: kind.name(), step, path: "best", costs: vec![(ns, bytes)] };
        let surveyed = best(time, *elements, *windows, |window| {
            let target = window.start / *elements * survey_len;
            survey(kind, DataType::F32, &vector[bytes_of(&window, 4.0)], &mut surveys[target..][..survey_len]);
        });
        // All windows have the same elements.
        let layout = Layout::new(kind, DataType::F32, 8, *elements, &surveys[..survey_len]);
        let size = layout.bytes() as f64 / *elements as f64;
        let laid = |window: &Range<usize>| {
            let from = window.start / *elements * layout.bytes();
            from..from + layout.bytes()
        };
        let spread_out = best(time, *elements, *windows, |window| {
            spread(&layout, &vector[bytes_of(&window, 4.0)], &mut limbs[laid(&window)]);
        });
        let settled = best(time, *elements, *windows, |window| {
            settle(&layout, &limbs[laid(&window)], &mut vector[bytes_of(&window, 4.0)]);
        });
        let read = survey_len as f64 / *elements as f64;
        [row("survey", surveyed, 4.0 + read), row("spread", spread_out, 4.0 + size), row("settle", settled, 4.0 + size)]
    }

    /// Makes the vector what it was before its elements were rounded.
    fn refill(&mut self) {
        for (at, element) in self.vector.chunks_exact_mut(4).enumerate() {
            element.copy_from_slice(&normal((at % self.elements) as u32).to_le_bytes());
        }
    }
}

/// The bytes of these elements, of so many each.
fn bytes_of(window: &Range<usize>, each: f64) -> Range<usize> {
    (window.start as f64 * each) as usize..(window.end as f64 * each) as usize
}

/// The best nanoseconds for an element over rounds of `work`, which takes one window after the
/// other. Other work on the machine can only slow a round down.
fn best(time: Duration, elements: usize, windows: usize, mut work: impl FnMut(Range<usize>)) -> f64 {
    let (began, mut best, mut rounds) = (Instant::now(), Duration::MAX, 0);
    while rounds < 3 || began.elapsed() < time {
        let first = rounds % windows * elements;
        let round = Instant::now();
        work(black_box(first..first + elements));
        best = best.min(round.elapsed());
        rounds += 1;
    }
    best.as_secs_f64().max(1e-9) * 1e9 / elements as f64
}

/// A number as normally distributed ones are, by its position: the sum of twelve evenly distributed
/// ones.
fn normal(at: u32) -> f32 {
    let mut state = u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..12).map(|_| next()).sum::<f32>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_sum_has_a_rate() {
        let text = table(Duration::ZERO, &[Path::Portable, Path::best()]);
        for words in ["| int8 | quantise | portable |", "| int8 | fold |", "| fixed | survey |", "| exact | settle |"] {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(text.lines().filter(|line| line.ends_with(" |")).count(), 1 + 2 * 3 + 6, "{text}");
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    }
}
