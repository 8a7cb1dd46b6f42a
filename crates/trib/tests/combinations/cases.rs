//! What is computed, from which inputs, and which result must come out.

use trib_client::operation;
use trib_testkit::{Tree, expected, input};
use trib_wire::combination::combinations;
use trib_wire::{Collective, DataType, ReduceOp, Signature};

/// One operation.
pub struct Case {
    pub signature: Signature,
    /// What each rank gives. In a broadcast only the root's input counts; the others only say how
    /// long it is.
    pub inputs: Vec<Vec<u8>>,
    /// What each rank gets. `None`: the rank gets nothing, and its buffer stays as it is.
    pub expected: Vec<Option<Vec<u8>>>,
}

/// Three collectives for every cell, and two for every type.
pub fn cases(ranks: u32, tree: &Tree) -> Vec<Case> {
    let computing = combinations().flat_map(|(dtype, op)| {
        let root = seed(dtype, op) as u32 % ranks;
        let signatures = [
            operation::allreduce(COUNT, dtype, op),
            operation::reduce(COUNT, dtype, op, root),
            operation::reduce_scatter(BLOCK, dtype, op),
        ];
        signatures.map(|signature| (dtype, signature))
    });
    let moving = DataType::ALL.iter().flat_map(|dtype| {
        let bytes = |count: u64| count * dtype.size() as u64;
        let root = u32::from(dtype.code()) % ranks;
        [operation::bcast(bytes(COUNT), root), operation::allgather(bytes(BLOCK))].map(|signature| (*dtype, signature))
    });
    computing.chain(moving).map(|(dtype, signature)| case(dtype, signature, ranks, tree)).collect()
}

fn case(dtype: DataType, signature: Signature, ranks: u32, tree: &Tree) -> Case {
    // The vector of a collective that computes nothing is bytes to the tree; here it has elements
    // of the type all the same.
    let op = if signature.collective.computes() { signature.op } else { ReduceOp::Max };
    let count = match signature.collective {
        Collective::ReduceScatter => BLOCK * u64::from(ranks),
        Collective::Allgather => BLOCK,
        _ => COUNT,
    };
    let given = |rank| input(dtype, op, seed(dtype, op), rank, count as usize);
    let inputs: Vec<Vec<u8>> = (0..ranks).map(given).collect();
    let expected = expected(&signature, tree, &inputs);
    Case { signature, inputs, expected }
}

fn seed(dtype: DataType, op: ReduceOp) -> u64 {
    u64::from(dtype.code()) << 8 | u64::from(op.code())
}

/// The number of elements of a vector, or of a block.
const COUNT: u64 = 25;
const BLOCK: u64 = 3;
