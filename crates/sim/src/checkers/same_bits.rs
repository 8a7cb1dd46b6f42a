//! Every element that a rank receives has the value that the logical tree alone determines.

use trib_proto::window;
use trib_wire::{ChildKind, Collective};

use super::Checkers;
use crate::fabric::Tree;
use crate::symbol::{self, Expr, Value};

const NAME: &str = "same_bits";

impl Checkers {
    /// Compares what is written to the operation's result, from element `from` on, with what must
    /// be there.
    pub fn check_value(&mut self, operation: usize, rank: u32, from: u64, value: &Value) {
        if self.work.operations[operation].odd.is_some() {
            return;
        }
        for run in value.runs() {
            let start = from + u64::from(run.at);
            if run.origin != start {
                let what = format!(
                    "{}: rank {rank} gets element {} of the vector at element {start}",
                    self.name(operation),
                    run.origin
                );
                return self.fail(NAME, what);
            }
            let mut at = start;
            while at < start + u64::from(run.len) {
                let (expected, end) = self.expected(operation, at);
                if run.expr != expected {
                    let what = format!(
                        "{}: rank {rank} gets {:016x} at element {at}, expected {expected:016x}",
                        self.name(operation),
                        run.expr
                    );
                    return self.fail(NAME, what);
                }
                at = end;
            }
        }
    }

    /// The value at an element of the result, and where the next value begins.
    fn expected(&mut self, operation: usize, at: u64) -> (Expr, u64) {
        let plan = &self.work.operations[operation];
        let (signature, members) = (plan.signature, &self.work.groups[plan.group].members);
        let op = operation as u32;
        match signature.collective {
            Collective::Bcast => {
                let root = members[signature.root as usize];
                (symbol::contribution(root, op), u64::MAX)
            }
            Collective::Allgather => {
                let size = members.len() as u32;
                let owner = (0..size)
                    .map(|rank| (rank, window::given(&signature, size, rank)))
                    .find(|(_, range)| range.contains(&at));
                owner.map_or((symbol::ZERO, u64::MAX), |(rank, range)| {
                    (symbol::contribution(members[rank as usize], op), range.end)
                })
            }
            _ => {
                let tree = &self.tree;
                let known = &mut self.operations[operation].expected;
                let expr = *known.get_or_insert_with(|| {
                    let parts = fold_of(tree, 0, members, &|rank| symbol::contribution(rank, op));
                    let fold = |parts: &[Expr]| symbol::fold(&signature, parts.iter().copied());
                    parts.value(&fold).unwrap_or(symbol::ZERO)
                });
                (expr, u64::MAX)
            }
        }
    }
}

/// The shape of a fold: a rank's contribution, or the fold of children in order.
enum Shape {
    Given(Expr),
    Fold(Vec<Shape>),
}

impl Shape {
    fn value(&self, fold: &impl Fn(&[Expr]) -> Expr) -> Option<Expr> {
        match self {
            Shape::Given(expr) => Some(*expr),
            Shape::Fold(children) => {
                let values: Vec<Expr> = children.iter().filter_map(|c| c.value(fold)).collect();
                (!values.is_empty()).then(|| fold(&values))
            }
        }
    }
}

fn fold_of(tree: &Tree, node: usize, members: &[u32], given: &impl Fn(u32) -> Expr) -> Shape {
    let children = tree.nodes[node].children.iter();
    let shapes = children.filter_map(|child| match child {
        ChildKind::Rank(rank) => members.contains(&rank.0).then(|| Shape::Given(given(rank.0))),
        ChildKind::Node(id) => Some(fold_of(tree, usize::from(id.0), members, given)),
    });
    Shape::Fold(shapes.collect())
}
