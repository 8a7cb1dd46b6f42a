//! The children's parts of a piece become one buffer, in child order, without allocation.

use trib_proto::node::{Fold, Part};
use trib_transport::landing::{Landing, Source};
use trib_wire::Way;
use trib_wire::ids::CHILDREN_MAX;

use super::{Buffers, JobBuffer};

/// Folds the parts. An error means that the kernels know no such fold. What the buffer holds then
/// is not a result.
pub(super) fn fold(
    buffers: &mut Buffers,
    fold: &Fold,
    parts: impl Iterator<Item = Part<JobBuffer>>,
) -> Result<JobBuffer, (JobBuffer, String)> {
    let mut pieces = buffers.take_pieces();
    pieces.extend(parts);
    let result = if fold.reduce { reduce(buffers, fold, &mut pieces) } else { Ok(merge(buffers, fold, &pieces)) };
    buffers.put_pieces(pieces);
    result
}

fn reduce(
    buffers: &mut Buffers,
    fold: &Fold,
    pieces: &mut Vec<Part<JobBuffer>>,
) -> Result<JobBuffer, (JobBuffer, String)> {
    let mut rest = pieces.drain(..);
    let Part { buffer: mut result, .. } = rest.next().expect("a fold has parts");
    let len = fold.bytes as usize;
    if !result.is_sole() {
        // The buffer is still on its way out elsewhere, so its bytes must not change.
        let mut copy = buffers.zeros_like(&result, len);
        copy.bytes_mut().copy_from_slice(&result.bytes()[..len]);
        result = copy;
    }
    result.set_len(len);
    let mut sources: [&[u8]; CHILDREN_MAX] = [&[]; CHILDREN_MAX];
    let rest = rest.as_slice();
    for (source, part) in sources.iter_mut().zip(rest) {
        *source = &part.buffer.bytes()[..part.bytes as usize];
    }
    match trib_reduce::fold_as(fold.signature.arithmetic(), result.bytes_mut(), &sources[..rest.len()]) {
        Ok(()) => Ok(result),
        Err(error) => Err((result, error.to_string())),
    }
}

fn merge(buffers: &mut Buffers, fold: &Fold, pieces: &[Part<JobBuffer>]) -> JobBuffer {
    let first = pieces.first().expect("a fold has parts");
    let mut result = buffers.zeros_like(&first.buffer, fold.bytes as usize);
    // What is laid side by side has the same form on every way.
    let before = |part: &Part<JobBuffer>| {
        fold.signature.layout().bytes(&(fold.elements.start..part.elements.start), Way::FromRank) as usize
    };
    let empty: (usize, &[u8]) = (0, &[]);
    let mut laid = [empty; CHILDREN_MAX];
    for (slice, part) in laid.iter_mut().zip(pieces) {
        *slice = (before(part), &part.buffer.bytes()[..part.bytes as usize]);
    }
    trib_reduce::merge_into(result.bytes_mut(), &laid[..pieces.len()]);
    result
}
