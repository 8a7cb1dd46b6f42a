//! How the children's pieces of a fragment become one piece.

use trib_wire::Header;

use super::output::{Fold, NodeOutput, Part};

/// What several pieces cover together.
pub(super) struct Hull {
    count: usize,
    window: u32,
    end: u32,
}

impl Hull {
    /// The hull of these pieces. `None` if no child gave a byte.
    pub(super) fn of<'a, B: 'a>(mut pieces: impl Iterator<Item = &'a Part<B>>) -> Option<Hull> {
        let first = pieces.next()?;
        let hull = Hull { count: 1, window: first.window, end: first.window + first.len };
        Some(pieces.fold(hull, |hull, piece| Hull {
            count: hull.count + 1,
            window: hull.window.min(piece.window),
            end: hull.end.max(piece.window + piece.len),
        }))
    }
}

/// Folds the pieces, which stand in child order and have this hull. One piece stays as it is.
pub(super) fn fold<B>(
    header: &Header,
    hull: Option<Hull>,
    mut pieces: impl Iterator<Item = Part<B>>,
    out: &mut impl NodeOutput<Buffer = B>,
) -> Option<Part<B>> {
    let part = match hull {
        None => None,
        Some(Hull { count: 1, .. }) => pieces.next(),
        Some(Hull { window, end, .. }) => {
            let (signature, len) = (header.signature, end - window);
            let fold = Fold { signature, window, len, reduce: signature.collective.computes() };
            Some(Part { buffer: out.fold(&fold, pieces.by_ref()), window, len })
        }
    };
    // The pieces of this fragment are gone, whatever the driver has taken of them.
    pieces.for_each(drop);
    part
}
