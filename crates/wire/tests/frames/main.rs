//! Frames as bytes: what goes in comes out, nothing else is accepted, and the layout does not
//! change.
//!
//! Map: `generate` (any header, any body), `round_trip`, `total` (arbitrary bytes), `layout` (the
//! offsets of the fields), `tag` (forgery), `golden` (one committed sample per message),
//! `placement` (placements meet).

mod generate;
mod golden;
mod layout;
mod placement;
mod round_trip;
mod tag;
mod total;
