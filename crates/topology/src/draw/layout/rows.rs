//! A row for each level, with hosts at the bottom. A switch stands over the middle of what it is
//! connected to below, as far as its neighbours in the row let it.

use std::collections::BTreeMap;

use super::{Item, half_width, neighbours};
use crate::graph::Graph;

pub(super) fn lay(graph: &Graph, items: &mut [Item], item_of: &[usize]) {
    let level = |item: &Item| graph.vertices()[item.vertices[0]].level;
    let mut levels: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        levels.entry(level(item)).or_default().push(at);
    }
    let row_width = |row: &Vec<usize>| row.iter().map(|at| 2.0 * half_width(&items[*at]) + GAP).sum::<f64>();
    let width = levels.values().map(row_width).fold(600.0, f64::max);
    // In low rows the links of a wide fabric would be flat lines.
    let height = (width * FLATTEST).max(ROW);
    for (level, row) in levels {
        let mut wanted: Vec<(f64, usize)> = match level {
            // Hosts stand below their switches, in the order of these, which is the file's.
            0 => {
                let mut row = row;
                row.sort_by_key(|at| (neighbours(graph, &items[*at]).min().map(|vertex| item_of[vertex]), *at));
                let step = width / row.len() as f64;
                row.into_iter().enumerate().map(|(nth, at)| (step * (nth as f64 + 0.5), at)).collect()
            }
            _ => row
                .into_iter()
                .map(|at| (middle(graph, items, item_of, at, level).unwrap_or(width / 2.0), at))
                .collect(),
        };
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let apart = LOOSE * width / wanted.len() as f64;
        let gaps: Vec<f64> = wanted
            .windows(2)
            .map(|pair| (half_width(&items[pair[0].1]) + half_width(&items[pair[1].1]) + GAP).max(apart))
            .collect();
        let wishes: Vec<f64> = wanted.iter().map(|(x, _)| *x).collect();
        for ((_, at), x) in wanted.iter().zip(settle(&wishes, &gaps)) {
            (items[*at].x, items[*at].y) = (x, -height * f64::from(level));
        }
    }
}

// The middle of the items in the rows below to which an item is connected.
fn middle(graph: &Graph, items: &[Item], item_of: &[usize], at: usize, level: u32) -> Option<f64> {
    let below = neighbours(graph, &items[at]).filter(|other| graph.vertices()[*other].level < level);
    let (sum, count) = below.fold((0.0, 0), |(sum, count), other| (sum + items[item_of[other]].x, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

// The positions that are nearest to the wanted ones, which ascend, and keep the gaps. When each gap
// is subtracted from all positions after it, the rest only has to ascend. Neighbours that do not
// ascend are put at their middle (isotonic regression).
fn settle(wanted: &[f64], gaps: &[f64]) -> Vec<f64> {
    let mut offset = 0.0;
    let offsets: Vec<f64> = std::iter::once(0.0)
        .chain(gaps.iter().map(|gap| {
            offset += gap;
            offset
        }))
        .collect();
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (want, offset) in wanted.iter().zip(&offsets) {
        let (mut sum, mut count) = (want - offset, 1);
        while let Some((before, members)) = blocks.last().copied().filter(|(s, n)| s / *n as f64 > sum / count as f64) {
            blocks.pop();
            (sum, count) = (sum + before, count + members);
        }
        blocks.push((sum, count));
    }
    let settled = blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count));
    settled.zip(&offsets).map(|(x, offset)| x + offset).collect()
}

/// The gap between boxes, in pixels.
const GAP: f64 = 10.0;
/// The least distance between rows, in pixels.
const ROW: f64 = 130.0;
/// The least height of a row, as a share of the width of all.
const FLATTEST: f64 = 0.1;
/// The share of an even distance that neighbours keep, even if they are connected to the same
/// items.
const LOOSE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_room_stands_where_it_wants_and_the_rest_around_its_middle() {
        assert_eq!(settle(&[0.0, 10.0, 30.0], &[5.0, 5.0]), [0.0, 10.0, 30.0]);
        assert_eq!(settle(&[10.0, 10.0, 10.0], &[4.0, 4.0]), [6.0, 10.0, 14.0]);
        assert_eq!(settle(&[0.0, 0.0, 100.0], &[6.0, 6.0]), [-3.0, 3.0, 100.0]);
    }

    proptest! {
        #[test]
        fn gaps_are_kept(pairs in proptest::collection::vec((0.0f64..100.0, 0.0f64..20.0), 1..30)) {
            let (mut wanted, gaps): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            wanted.sort_by(f64::total_cmp);
            let settled = settle(&wanted, &gaps[1..]);
            for (pair, gap) in settled.windows(2).zip(&gaps[1..]) {
                prop_assert!(pair[1] - pair[0] >= gap - 1e-9);
            }
            let moved: f64 = settled.iter().zip(&wanted).map(|(x, want)| x - want).sum();
            prop_assert!(moved.abs() < 1e-6, "as far to the left as to the right");
        }
    }
}
