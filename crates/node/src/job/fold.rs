//! The pieces of a fragment become one buffer, in child order, without allocation.

use trib_proto::Token;
use trib_proto::node::{Fold, Part};
use trib_transport::landing::{Landing, Source};
use trib_wire::ids::CHILDREN_MAX;

use super::{Buffers, JobBuffer};

/// Folds the pieces. All their tokens are free afterwards but the one that is returned. An error
/// means that the kernels know no such fold. What the token holds then is not a result.
pub(super) fn fold(buffers: &mut Buffers, fold: &Fold, parts: &[Part]) -> Result<Token, (Token, String)> {
    if fold.reduce { reduce(buffers, fold, parts) } else { Ok(merge(buffers, fold, parts)) }
}

fn reduce(buffers: &mut Buffers, fold: &Fold, parts: &[Part]) -> Result<Token, (Token, String)> {
    let (first, rest) = parts.split_first().expect("a fold has parts");
    let len = fold.len as usize;
    let copy = (!buffers.get(first.token).is_sole()).then(|| buffers.zeros_like(first.token, len));
    let mut result = buffers.remove(first.token);
    if let Some(mut copy) = copy {
        // The buffer is still on its way out elsewhere, so its bytes must not change.
        copy.bytes_mut().copy_from_slice(&result.bytes()[..len]);
        result = copy;
    }
    result.set_len(len);
    let outcome = {
        let mut sources: [&[u8]; CHILDREN_MAX] = [&[]; CHILDREN_MAX];
        for (source, part) in sources.iter_mut().zip(rest) {
            *source = &buffers.get(part.token).bytes()[..part.len as usize];
        }
        let signature = &fold.signature;
        trib_reduce::fold_into(signature.dtype, signature.op, result.bytes_mut(), &sources[..rest.len()])
    };
    let token = finish(buffers, result, rest);
    outcome.map(|()| token).map_err(|error| (token, error.to_string()))
}

fn merge(buffers: &mut Buffers, fold: &Fold, parts: &[Part]) -> Token {
    let first = parts.first().expect("a fold has parts");
    let mut result = buffers.zeros_like(first.token, fold.len as usize);
    let empty: (usize, &[u8]) = (0, &[]);
    let mut pieces = [empty; CHILDREN_MAX];
    for (piece, part) in pieces.iter_mut().zip(parts) {
        *piece = ((part.window - fold.window) as usize, &buffers.get(part.token).bytes()[..part.len as usize]);
    }
    trib_reduce::merge_into(result.bytes_mut(), &pieces[..parts.len()]);
    finish(buffers, result, parts)
}

/// Frees the pieces' tokens and gives the result a token.
fn finish(buffers: &mut Buffers, result: JobBuffer, parts: &[Part]) -> Token {
    for part in parts {
        drop(buffers.remove(part.token));
    }
    buffers.refill();
    buffers.insert(result)
}
