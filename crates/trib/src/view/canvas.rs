//! Where lines are shown: on a terminal of some width, or in a pipe, which gets no bars, no colours
//! and lines of any length.

use std::env;
use std::io::{IsTerminal as _, stdout};

use super::line::Line;

/// For what lines are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Canvas {
    /// A file or another program.
    Pipe,
    /// A terminal with this many characters on a line.
    Terminal {
        /// How many.
        columns: usize,
    },
}

impl Canvas {
    /// What stdout leads to. A terminal that says of itself that it can do nothing is treated as a
    /// pipe.
    pub fn of_stdout() -> Canvas {
        let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if is_dumb || !stdout().is_terminal() {
            return Canvas::Pipe;
        }
        let columns = crossterm::terminal::size().map_or(0, |(columns, _)| usize::from(columns));
        // A terminal that does not know its width, as on a serial line, is taken to have the usual
        // one.
        Canvas::Terminal { columns: if columns == 0 { 80 } else { columns } }
    }
}

impl Canvas {
    /// A sentence as lines: one line for a pipe, wrapped for a terminal.
    pub fn sentence(self, line: Line) -> Vec<Line> {
        match self {
            Canvas::Pipe => vec![line],
            Canvas::Terminal { columns } => line.wrapped(columns),
        }
    }
}

/// Whether tones are shown as colours (<https://no-color.org>).
pub(super) fn has_colours() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The text of lines that are printed once.
pub fn text(lines: &[Line], canvas: Canvas) -> String {
    let coloured = canvas != Canvas::Pipe && has_colours();
    lines.iter().map(|line| if coloured { line.coloured() } else { line.to_string() } + "\n").collect()
}
