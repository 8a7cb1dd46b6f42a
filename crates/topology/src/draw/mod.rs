//! A fabric for the eye: `text` draws it for a terminal, `svg` for a browser, and `layout` says
//! where things stand in a picture.

mod layout;
mod svg;
mod text;

pub use svg::svg;
pub use text::text;

#[cfg(test)]
mod tests;
