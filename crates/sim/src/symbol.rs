//! Symbolic vectors: what a buffer would hold, as expressions instead of numbers.
//!
//! A buffer is a list of runs. Every element of a run carries the same expression, which is the
//! structural hash of a contribution or of a fold of expressions in order, and says from which
//! element of the vector it was made. A fold in another order, a contribution that is missing or
//! comes twice, a piece of another operation or from another position in the vector: each gives a
//! value that differs from the expected one, whatever the operator, and a million elements cost as
//! little as one.

use trib_wire::Signature;

use crate::random::mix;

/// Structural hash of an expression; 0 is the neutral element of a merge.
pub type Expr = u64;

/// Elements to which nothing was written.
pub const ZERO: Expr = 0;

/// What rank `rank` gives to operation `op`.
pub fn contribution(rank: u32, op: u32) -> Expr {
    mix(mix(u64::from(rank) + 1) ^ (u64::from(op) << 32 | 1)) | 1
}

/// A value that no operation produces.
pub fn poison(expr: Expr) -> Expr {
    mix(expr ^ 0xdead) | 1
}

/// The ordered fold of some values; the fold of one value is that value.
pub fn fold(signature: &Signature, parts: impl IntoIterator<Item = Expr>) -> Expr {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return ZERO;
    };
    let mut hash = None;
    for part in parts {
        let before = hash.unwrap_or_else(|| mix(first ^ operator(signature)));
        hash = Some(mix(before.rotate_left(7) ^ part));
    }
    hash.map_or(first, |h| mix(h) | 1)
}

fn operator(signature: &Signature) -> u64 {
    u64::from(signature.dtype.code()) << 8
        | u64::from(signature.op.code())
        | 1 << 20
        | u64::from(signature.format.code()) << 24
}

/// Elements that share one expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first element, within the buffer.
    pub at: u32,
    /// Elements.
    pub len: u32,
    /// The element of the vector from which the first element was made.
    pub origin: u64,
    /// The value.
    pub expr: Expr,
}

/// The contents of a buffer: runs in order, without gaps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Value {
    runs: Vec<Run>,
    len: u32,
}

impl Value {
    /// Elements of one expression whose first is element `origin` of the vector.
    pub fn uniform(expr: Expr, origin: u64, len: u32) -> Value {
        let run = Run { at: 0, len, origin, expr };
        Value { runs: if len == 0 { Vec::new() } else { vec![run] }, len }
    }

    /// Elements.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// `len` elements from element `from` on; `None` if the buffer is shorter.
    pub fn slice(&self, from: u32, len: u32) -> Option<Value> {
        let end = from.checked_add(len)?;
        if end > self.len {
            return None;
        }
        let mut value = Value { runs: Vec::with_capacity(1), len };
        for run in &self.runs {
            let (low, high) = (run.at.max(from), (run.at + run.len).min(end));
            if low < high {
                value.runs.push(Run {
                    at: low - from,
                    len: high - low,
                    origin: run.origin + u64::from(low - run.at),
                    expr: run.expr,
                });
            }
        }
        Some(value)
    }

    /// The same elements with other contents everywhere: what a forged or stale frame carries.
    pub fn poisoned(&self) -> Value {
        let mut value = self.clone();
        for run in &mut value.runs {
            run.expr = poison(run.expr);
        }
        value
    }

    /// The ordered fold of buffers of equal length.
    pub fn reduce(signature: &Signature, parts: &[&Value]) -> Value {
        let len = parts.first().map_or(0, |p| p.len);
        let mut cuts: Vec<u32> = parts.iter().flat_map(|p| p.runs.iter().map(|r| r.at)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.push(len);
        let mut runs = Vec::with_capacity(cuts.len() - 1);
        for cut in cuts.windows(2) {
            let (at, end) = (cut[0], cut[1]);
            let origin = parts[0].origin_at(at);
            let exprs = parts.iter().map(|part| {
                let skew = part.origin_at(at).wrapping_sub(origin);
                let expr = part.expr_at(at);
                if skew == 0 { expr } else { mix(expr ^ skew) }
            });
            runs.push(Run { at, len: end - at, origin, expr: fold(signature, exprs) });
        }
        Value { runs, len }
    }

    /// Pieces that are laid over `len` zeros; `Err` has an element that belongs to two pieces.
    pub fn merge(len: u32, pieces: &[(u32, &Value)]) -> Result<Value, u32> {
        let mut runs: Vec<Run> = Vec::new();
        for (start, piece) in pieces {
            for run in piece.runs.iter().filter(|r| r.expr != ZERO) {
                runs.push(Run { at: start + run.at, ..*run });
            }
        }
        runs.sort_unstable_by_key(|r| r.at);
        let mut whole = Vec::with_capacity(runs.len());
        let mut at = 0;
        for run in runs {
            if run.at < at {
                return Err(run.at);
            }
            whole.extend(gap(at, run.at));
            at = run.at + run.len;
            whole.push(run);
        }
        if at > len {
            return Err(len);
        }
        whole.extend(gap(at, len));
        Ok(Value { runs: whole, len })
    }

    fn run_at(&self, at: u32) -> Option<&Run> {
        let after = self.runs.partition_point(|r| r.at <= at);
        after.checked_sub(1).map(|i| &self.runs[i])
    }

    fn expr_at(&self, at: u32) -> Expr {
        self.run_at(at).map_or(ZERO, |r| r.expr)
    }

    fn origin_at(&self, at: u32) -> u64 {
        self.run_at(at).map_or(0, |r| r.origin + u64::from(at - r.at))
    }
}

/// A run of zeros, if there is room for one.
fn gap(at: u32, end: u32) -> Option<Run> {
    (at < end).then(|| Run { at, len: end - at, origin: 0, expr: ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trib_wire::{Collective, DataType, ReduceOp, WireFormat};

    const SUM: Signature = Signature {
        collective: Collective::Allreduce,
        dtype: DataType::I32,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count: 8,
    };

    fn part(rank: u32) -> Value {
        Value::uniform(contribution(rank, 1), 64, 32)
    }

    #[test]
    fn order_number_and_position_change_a_fold() {
        let (a, b) = (part(0), part(1));
        let right = Value::reduce(&SUM, &[&a, &b]);
        assert_eq!(right, Value::reduce(&SUM, &[&a, &b]));
        assert_ne!(right, Value::reduce(&SUM, &[&b, &a]));
        assert_ne!(right, Value::reduce(&SUM, &[&a, &b, &b]));
        assert_ne!(right, a);
        let elsewhere = Value::uniform(contribution(1, 1), 72, 32);
        assert_ne!(right, Value::reduce(&SUM, &[&a, &elsewhere]));
        let other = Value::uniform(contribution(1, 2), 64, 32);
        assert_ne!(right, Value::reduce(&SUM, &[&a, &other]));
        assert_eq!(Value::reduce(&SUM, &[&a]), a);
    }

    #[test]
    fn nesting_is_part_of_the_value() {
        let e = [contribution(0, 1), contribution(1, 1), contribution(2, 1)];
        let flat = fold(&SUM, e);
        let nested = fold(&SUM, [fold(&SUM, [e[0], e[1]]), e[2]]);
        assert_ne!(flat, nested);
    }

    #[test]
    fn merging_fills_gaps_with_zeros_and_finds_overlaps() {
        let (a, b) = (part(0), part(1));
        let whole = Value::merge(100, &[(50, &b), (0, &a)]).unwrap();
        assert_eq!(whole.slice(0, 32).unwrap(), a);
        assert_eq!(whole.slice(50, 32).unwrap(), b);
        assert_eq!(whole.slice(32, 18).unwrap().runs()[0].expr, ZERO);
        assert_eq!(Value::merge(100, &[(0, &a), (31, &b)]), Err(31));
        assert_eq!(whole.slice(90, 11), None);
        let holes = Value::merge(100, &[(0, &whole), (40, &Value::uniform(9, 0, 10))]);
        assert!(holes.is_ok(), "zeros give way");
    }

    #[test]
    fn runs_of_different_length_fold_piecewise() {
        let long = part(0);
        let two = Value::merge(32, &[(0, &Value::uniform(5, 64, 8)), (8, &Value::uniform(7, 72, 24))]).unwrap();
        let folded = Value::reduce(&SUM, &[&long, &two]);
        assert_eq!(folded.runs().len(), 2);
        assert_eq!(folded.runs()[1].origin, 72);
    }
}
