//! How the children's parts of a piece become one.

use core::ops::Range;

use trib_wire::{Header, Way};

use super::output::{Fold, NodeOutput, Part};

/// What several parts cover together.
pub(super) struct Hull {
    count: usize,
    elements: Range<u64>,
}

impl Hull {
    /// The hull of these parts. `None` if no child gave an element.
    pub(super) fn of<'a, B: 'a>(mut parts: impl Iterator<Item = &'a Part<B>>) -> Option<Hull> {
        let first = Hull { count: 1, elements: parts.next()?.elements.clone() };
        Some(parts.fold(first, |Hull { count, elements }, part| Hull {
            count: count + 1,
            elements: elements.start.min(part.elements.start)..elements.end.max(part.elements.end),
        }))
    }
}

/// Folds the parts, which stand in child order and have this hull, for this way. One part stays as
/// it is.
pub(super) fn fold<B>(
    header: &Header,
    hull: Option<Hull>,
    mut parts: impl Iterator<Item = Part<B>>,
    way: Way,
    out: &mut impl NodeOutput<Buffer = B>,
) -> Option<Part<B>> {
    let part = match hull {
        None => None,
        Some(Hull { count: 1, .. }) => parts.next(),
        Some(Hull { elements, .. }) => {
            let signature = header.signature;
            let bytes = signature.layout().bytes(&elements, way) as u32;
            let fold = Fold { signature, elements, bytes, reduce: signature.collective.computes() };
            let buffer = out.fold(&fold, parts.by_ref());
            Some(Part { buffer, elements: fold.elements, bytes })
        }
    };
    // The parts of this piece are gone, whatever the driver has taken of them.
    parts.for_each(drop);
    part
}
