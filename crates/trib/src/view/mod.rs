//! What people see: lines with tones (`line`), shown on a terminal or in a pipe (`canvas`), a
//! screen that is drawn again and again (`screen`), and the loop that looks again (`watch`).

mod canvas;
mod line;
mod screen;
mod watch;

pub use canvas::{Canvas, text};
pub use line::{Line, Tone};
pub use watch::{FIRST_SPAN, View, watch};
