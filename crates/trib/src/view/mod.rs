//! What people see: lines with tones (`line`), on a page or a screen (`canvas`), a screen that is
//! drawn again and again (`screen`), and the loop of looks (`watch`).

mod canvas;
mod line;
mod screen;
mod watch;

pub use canvas::{Canvas, text};
pub use line::{Line, Tone};
pub use watch::{FIRST_SPAN, View, watch};
