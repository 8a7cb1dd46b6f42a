//! What is computed, from which inputs, and what must come out.

use trib_client::operation;
use trib_testkit::{Tree, expected, input};
use trib_wire::combination::combinations;
use trib_wire::{Collective, DataType, ReduceOp, Signature};

/// One operation.
pub struct Case {
    pub signature: Signature,
    /// What each rank gives; of a broadcast all but the root's only say how long it is.
    pub inputs: Vec<Vec<u8>>,
    /// What each rank gets; `None`: nothing, its buffer stays as it is.
    pub expected: Vec<Option<Vec<u8>>>,
}

/// Three collectives of every cell, and two of every type.
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
    // What does not compute is bytes to the tree; they are elements of the type all the same.
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

/// Elements of a vector, and of a block.
const COUNT: u64 = 25;
const BLOCK: u64 = 3;
