//! A fabric for the eye: `text` for a terminal, `svg` for a browser; `layout` says where things stand in a picture.

mod layout;
mod svg;
mod text;

pub use svg::svg;
pub use text::text;

#[cfg(test)]
mod tests;
