//! The results, for people or for programs. Rank 0 writes them.

use serde_json::{Value, json};
use trib_client::{Collective, Context, DataType, ReduceOp};

use super::measure::Row;
use crate::bar;
use crate::failure::Failure;
use crate::view::Canvas;

/// The report of one run.
pub(super) struct Report {
    writes: bool,
    ranks: u32,
    dtype: DataType,
    op: ReduceOp,
    /// Cells a decade of the bar beside the figures. 0 stands for no bar.
    scale: usize,
    /// The rows so far, if a program reads them.
    json: Option<Vec<Value>>,
}

impl Report {
    pub(super) fn new(context: &Context, dtype: DataType, op: ReduceOp, json: bool) -> Report {
        Report {
            writes: context.rank() == 0,
            ranks: context.size(),
            dtype,
            op,
            scale: scale(Canvas::of_stdout()),
            json: json.then(Vec::new),
        }
    }

    /// Prints the head of a table.
    pub(super) fn begin(&self, collective: Collective) -> Result<(), Failure> {
        if !self.writes || self.json.is_some() {
            return Ok(());
        }
        let kind = match collective {
            Collective::Barrier => String::new(),
            Collective::Bcast | Collective::Allgather => ", bytes".to_owned(),
            _ => format!(", {} {}", self.dtype, self.op),
        };
        say!("# {collective}, {} ranks{kind}; every element of every iteration checked", self.ranks)?;
        say!(
            "{:>10} {:>10} {:>11} {:>10} {:>10} {:>8} {:>4} {:>10}{}",
            "size [B]",
            "avg [us]",
            "median [us]",
            "min [us]",
            "max [us]",
            "MB/s",
            "path",
            "iterations",
            if self.scale > 0 { "  0.01 MB/s to 100 GB/s" } else { "" }
        )
    }

    /// Adds the row of one size.
    pub(super) fn row(&mut self, row: Row) -> Result<(), Failure> {
        if !self.writes {
            return Ok(());
        }
        let path = if row.streamed { "sat" } else { "llt" };
        match &mut self.json {
            Some(rows) => rows.push(json!({
                "collective": row.collective.name(),
                "bytes": row.bytes,
                "iterations": row.iterations,
                "avg_us": row.average,
                "median_us": row.median,
                "min_us": row.min,
                "max_us": row.max,
                "mb_per_s": row.bandwidth(),
                "path": path,
                "checked": "every element of every iteration",
            })),
            None => say!(
                "{:>10} {:>10.2} {:>11.2} {:>10.2} {:>10.2} {:>8.1} {path:>4} {:>10}{}",
                row.bytes,
                row.average,
                row.median,
                row.min,
                row.max,
                row.bandwidth(),
                row.iterations,
                beside(row.bandwidth(), self.scale)
            )?,
        }
        Ok(())
    }

    /// The end.
    pub(super) fn end(self) -> Result<(), Failure> {
        let Report { writes, ranks, dtype, op, json, .. } = self;
        if let Some(rows) = json
            && writes
        {
            say!("{:#}", json!({ "ranks": ranks, "dtype": dtype.to_string(), "op": op.name(), "rows": rows }))?;
        }
        Ok(())
    }
}

/// As many cells a decade as there is room for beside the figures, on a terminal.
fn scale(canvas: Canvas) -> usize {
    match canvas {
        Canvas::Pipe => 0,
        Canvas::Terminal { columns } => (columns.saturating_sub(FIGURES + GAP) / DECADES).min(MOST),
    }
}

/// A bar for a bandwidth in MB/s. Its scale is logarithmic, because sizes differ by factors and
/// bandwidths do so too, and because a row need not know what comes after it.
fn beside(mb_per_s: f64, scale: usize) -> String {
    if mb_per_s <= 0.0 || scale == 0 {
        return String::new();
    }
    let share = (mb_per_s.log10() - LEAST.log10()) / DECADES as f64;
    format!("{:GAP$}{}", "", bar::bar(share, scale * DECADES)).trim_end().to_owned()
}

const LEAST: f64 = 0.01;
const DECADES: usize = 7;
/// More would make one size hard to tell from the next.
const MOST: usize = 3;
/// Characters of a row without a bar: it fits the narrowest terminal that is usual.
const FIGURES: usize = 80;
const GAP: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_the_bandwidth_is_three_cells_more() {
        let cells = |mb_per_s| beside(mb_per_s, 3).chars().count() - 2;
        assert_eq!([0.1, 1.0, 10.0, 1e5, 1e9].map(cells), [3, 6, 9, 21, 21]);
        assert_eq!(beside(0.0, 3), "", "a barrier has none");
        assert_eq!(beside(10.0, 0), "", "nor has a pipe");
    }

    #[test]
    fn bars_take_what_a_terminal_leaves_them() {
        let scales = [40, 80, 88, 89, 96, 103, 300].map(|columns| scale(Canvas::Terminal { columns }));
        assert_eq!(scales, [0, 0, 0, 1, 2, 3, 3]);
        assert_eq!(scale(Canvas::Pipe), 0);
    }
}
