//! What a collective over a reduction tree must give, computed plainly from all inputs at once.

use trib_wire::{Collective, Signature};

use crate::fold;

/// The logical tree of a group, in child order; every group rank is a leaf exactly once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tree {
    /// A member, by group rank.
    Rank(u32),
    /// An aggregation node.
    Node(Vec<Tree>),
}

impl Tree {
    /// One node over ranks `0..size`.
    pub fn flat(size: u32) -> Tree {
        Tree::Node((0..size).map(Tree::Rank).collect())
    }

    /// A root over nodes of consecutive ranks, at most `width` each.
    ///
    /// # Panics
    ///
    /// When `width` is 0.
    pub fn leaves(size: u32, width: u32) -> Tree {
        let firsts = (0..size).step_by(width as usize);
        let leaf = |first| (first..size.min(first + width)).map(Tree::Rank).collect();
        Tree::Node(firsts.map(|first| Tree::Node(leaf(first))).collect())
    }

    /// The ranks in the order in which they are folded.
    pub fn ranks(&self) -> Vec<u32> {
        match self {
            Tree::Rank(rank) => vec![*rank],
            Tree::Node(children) => children.iter().flat_map(Tree::ranks).collect(),
        }
    }
}

/// The bytes that each rank must receive; `None` for a rank that receives no data.
///
/// Every node folds the results of its children from the left, in child order, and rounds once.
/// What a rank receives depends on the collective:
/// - allreduce: all ranks receive the root's result;
/// - reduce: the root rank receives it;
/// - reduce-scatter: rank i receives block i of it;
/// - bcast: all ranks except the root receive the root's vector;
/// - allgather: all ranks receive the concatenation by rank;
/// - barrier: no rank receives anything.
///
/// `inputs` has one vector per rank; the vector of a rank that gives no data is ignored.
///
/// # Panics
///
/// When the inputs do not fit the signature, the tree does not hold each rank once, or the
/// operator is not defined for the type: mistakes of the test.
pub fn expected(signature: &Signature, tree: &Tree, inputs: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let size = inputs.len();
    let mut ranks = tree.ranks();
    ranks.sort_unstable();
    assert!(ranks.iter().copied().eq(0..size as u32), "the tree holds each of {size} ranks once");
    let root = signature.root as usize;
    assert!(root < size, "root {root} of {size} ranks");
    let bytes = signature.count as usize * signature.dtype.size();
    let check = |rank: usize, bytes: usize| {
        assert_eq!(inputs[rank].len(), bytes, "bytes that rank {rank} gives to {signature}");
    };
    match signature.collective {
        Collective::Barrier => vec![None; size],
        Collective::Allreduce => {
            (0..size).for_each(|rank| check(rank, bytes));
            vec![Some(reduce(signature, tree, inputs)); size]
        }
        Collective::Reduce => {
            (0..size).for_each(|rank| check(rank, bytes));
            let mut outputs = vec![None; size];
            outputs[root] = Some(reduce(signature, tree, inputs));
            outputs
        }
        Collective::Bcast => {
            check(root, bytes);
            (0..size).map(|rank| (rank != root).then(|| inputs[root].clone())).collect()
        }
        Collective::ReduceScatter => {
            (0..size).for_each(|rank| check(rank, size * bytes));
            let sums = reduce(signature, tree, inputs);
            (0..size).map(|rank| Some(sums[rank * bytes..(rank + 1) * bytes].to_vec())).collect()
        }
        Collective::Allgather => {
            (0..size).for_each(|rank| check(rank, bytes));
            vec![Some(inputs.concat()); size]
        }
    }
}

fn reduce(signature: &Signature, tree: &Tree, inputs: &[Vec<u8>]) -> Vec<u8> {
    match tree {
        Tree::Rank(rank) => inputs[*rank as usize].clone(),
        Tree::Node(children) => {
            let results: Vec<_> = children.iter().map(|child| reduce(signature, child, inputs)).collect();
            let operands: Vec<_> = results.iter().map(Vec::as_slice).collect();
            fold(signature.dtype, signature.op, &operands)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;
    use trib_wire::{DataType, ReduceOp, WireFormat};

    fn signature(collective: Collective, dtype: DataType, root: u32, count: u64) -> Signature {
        Signature { collective, dtype, op: ReduceOp::Sum, format: WireFormat::Plain, root, count }
    }

    fn halves(values: [f32; 4]) -> Vec<Vec<u8>> {
        values.iter().map(|value| f16::from_f32(*value).to_le_bytes().to_vec()).collect()
    }

    #[test]
    fn half_precision_is_rounded_once_per_node() {
        let inputs = halves([1.0, 1.0, 2048.0, 1.0]);
        let sum = |tree: &Tree| {
            let outputs = expected(&signature(Collective::Allreduce, DataType::F16, 0, 1), tree, &inputs);
            assert!(outputs.iter().all(|output| *output == outputs[0]));
            f16::from_le_bytes(outputs[0].clone().unwrap().try_into().unwrap()).to_f32()
        };
        // 2051 lies between 2050 and 2052, a tie that goes to the even one.
        assert_eq!(sum(&Tree::flat(4)), 2052.0);
        // 2048 + 1 is a tie too and loses the 1 at its own node.
        assert_eq!(sum(&Tree::leaves(4, 2)), 2050.0);
    }

    #[test]
    fn nodes_fold_in_child_order() {
        let values = [1e30_f32, 1.0, -1e30, 3.0];
        let inputs: Vec<_> = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
        let sum = |order: [u32; 4]| {
            let tree = Tree::Node(order.map(Tree::Rank).to_vec());
            let operation = signature(Collective::Reduce, DataType::F32, 2, 1);
            let outputs = expected(&operation, &tree, &inputs);
            assert_eq!(outputs.iter().filter(|output| output.is_some()).count(), 1);
            f32::from_le_bytes(outputs[2].clone().unwrap().try_into().unwrap())
        };
        assert_eq!(sum([0, 1, 2, 3]), 3.0);
        assert_eq!(sum([0, 2, 1, 3]), 4.0);
    }

    #[test]
    fn blocks_go_to_their_ranks() {
        let inputs = vec![vec![1, 2, 3, 4, 5, 6], vec![10; 6], vec![100; 6]];
        let operation = signature(Collective::ReduceScatter, DataType::U8, 0, 2);
        assert_eq!(
            expected(&operation, &Tree::flat(3), &inputs),
            [Some(vec![111, 112]), Some(vec![113, 114]), Some(vec![115, 116])]
        );
        let blocks = vec![vec![1, 2], vec![3, 4], vec![5, 6]];
        let operation = signature(Collective::Allgather, DataType::U8, 0, 2);
        let tree = Tree::Node([2, 0, 1].map(Tree::Rank).to_vec());
        assert_eq!(expected(&operation, &tree, &blocks), vec![Some(vec![1, 2, 3, 4, 5, 6]); 3]);
    }

    #[test]
    fn a_bcast_looks_at_the_root_alone() {
        let inputs = vec![vec![], vec![7, 8], vec![0; 9]];
        let operation = signature(Collective::Bcast, DataType::U8, 1, 2);
        let outputs = expected(&operation, &Tree::flat(3), &inputs);
        assert_eq!(outputs, [Some(vec![7, 8]), None, Some(vec![7, 8])]);
        let operation = signature(Collective::Barrier, DataType::U8, 0, 0);
        assert_eq!(expected(&operation, &Tree::flat(3), &inputs), [None, None, None]);
    }

    #[test]
    #[should_panic(expected = "the tree holds each of 3 ranks once")]
    fn a_tree_with_a_rank_too_few_is_refused() {
        let operation = signature(Collective::Barrier, DataType::U8, 0, 0);
        expected(&operation, &Tree::flat(2), &vec![vec![]; 3]);
    }
}
