//! Frames as bytes: what goes in comes out, nothing else gets in, and the layout stays what it is.
//!
//! Map: `generate` (any header, any body), `round_trip`, `total` (arbitrary bytes), `layout` (where
//! the fields stand), `tag` (forgery), `golden` (one committed sample per message).

mod generate;
mod golden;
mod layout;
mod round_trip;
mod tag;
mod total;
