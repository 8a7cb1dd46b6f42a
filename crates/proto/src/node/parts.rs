//! How the children's pieces of a fragment become one piece.

use trib_wire::Header;

use super::output::{Fold, NodeOutput, Part};
use trib_wire::ids::CHILDREN_MAX;

/// Folds the pieces, which stand in child order. Returns `None` if no child gave a byte.
pub(super) fn fold(
    header: &Header,
    pieces: impl Iterator<Item = Option<Part>>,
    out: &mut impl NodeOutput,
) -> Option<Part> {
    let mut parts = [Part { token: crate::Token(0), window: 0, len: 0 }; CHILDREN_MAX];
    let mut count = 0;
    for part in pieces.flatten() {
        parts[count] = part;
        count += 1;
    }
    let parts = &parts[..count];
    if let [only] = parts {
        return Some(*only);
    }
    let window = parts.iter().map(|p| p.window).min()?;
    let end = parts.iter().map(|p| p.window + p.len).max()?;
    let fold =
        Fold { signature: header.signature, window, len: end - window, reduce: header.signature.collective.computes() };
    let token = out.fold(&fold, parts);
    Some(Part { token, window, len: end - window })
}
