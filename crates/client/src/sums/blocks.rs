//! The rounds of a sum whose elements are quantised: a chunk's blocks are an operation each, and
//! some chunks are under way at once.

use std::collections::VecDeque;
use std::sync::Arc;

use trib_reduce::blocks::{self, Seed};
use trib_wire::{INT8_BLOCK_BYTES, Signature, WireFormat};

use super::call::{Call, post};
use super::lent::{Lent, Spares};
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;

/// The blocks of a chunk on their way.
struct Chunk {
    number: usize,
    /// What this member gives; kept until its operation is over.
    given: Lent,
    gotten: Lent,
    posted: Arc<Completion>,
}

/// Takes a sum; `wait` waits for an operation of the group.
pub(super) fn take(
    call: &Call,
    shared: &Shared,
    group: &GroupState,
    wait: impl Fn(&Arc<Completion>) -> Result<(), Error>,
) -> Result<(), Error> {
    let seed = Seed::new(call.part.number, group.rank);
    if call.rows.chunks() == 0 {
        let signature = Signature { format: WireFormat::Int8Blocks, ..call.signature };
        return wait(&call.post_empty(shared, group, &signature)?);
    }
    let (mut under_way, mut spares) = (VecDeque::with_capacity(AHEAD), Spares::default());
    // Its order is that of all members: chunk by chunk.
    for number in 0..call.rows.chunks() {
        if under_way.len() == AHEAD {
            finish(call, &mut under_way, &wait, &mut spares)?;
        }
        under_way.push_back(send(call, shared, group, seed, number, &mut spares)?);
    }
    while !under_way.is_empty() {
        finish(call, &mut under_way, &wait, &mut spares)?;
    }
    Ok(())
}

/// Quantises a chunk and sends it.
fn send(
    call: &Call,
    shared: &Shared,
    group: &GroupState,
    seed: Seed,
    number: usize,
    spares: &mut Spares,
) -> Result<Chunk, Error> {
    let elements = call.rows.elements(number);
    let count = blocks::count(elements.len() as u64);
    let bytes = count as usize * INT8_BLOCK_BYTES;
    let before = blocks::count(call.part.first + elements.start as u64);
    let mut given = spares.take(bytes * call.rows.count)?;
    for row in 0..call.rows.count {
        let first = row as u64 * blocks::count(call.part.count) + before;
        let target = &mut given.bytes_mut()[row * bytes..][..bytes];
        blocks::quantise(call.signature.dtype, call.given(row, number), seed, first, target);
    }
    let mut gotten = spares.take(if call.gets { bytes } else { 0 })?;
    let signature = Signature { format: WireFormat::Int8Blocks, count, ..call.signature };
    let (input, output) = (given.bytes().as_ptr(), gotten.bytes_mut().as_mut_ptr());
    let posted = post(shared, group, &signature, Input::At(input), output)?;
    given.lend(&posted);
    gotten.lend(&posted);
    Ok(Chunk { number, given, gotten, posted })
}

/// Waits for the chunk that was sent first, and writes its elements.
fn finish(
    call: &Call,
    under_way: &mut VecDeque<Chunk>,
    wait: &impl Fn(&Arc<Completion>) -> Result<(), Error>,
    spares: &mut Spares,
) -> Result<(), Error> {
    let Some(chunk) = under_way.front() else { return Ok(()) };
    wait(&chunk.posted)?;
    let Some(Chunk { number, given, gotten, .. }) = under_way.pop_front() else { return Ok(()) };
    if call.gets {
        blocks::dequantise(call.signature.dtype, gotten.bytes(), call.result(number));
    }
    spares.give(given);
    spares.give(gotten);
    Ok(())
}

/// How many chunks are under way at once: one travels while the ones beside it are quantised and
/// written.
const AHEAD: usize = 3;
