//! A terminal's alternate screen, on which everything is drawn again. When this value is dropped,
//! however that comes, the terminal is as it was before.

use std::io::{self, Write as _, stdout};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, queue};

use super::canvas::has_colours;
use super::line::{Line, Tone};

/// The alternate screen, for as long as this value lives.
pub(super) struct Screen(());

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(Screen(()))
    }

    /// Draws these lines in place of those that are there; as many as fit.
    pub(super) fn show(&self, lines: &[Line]) -> io::Result<()> {
        let (columns, rows) = crossterm::terminal::size()?;
        let mut frame = Vec::new();
        queue!(frame, BeginSynchronizedUpdate)?;
        for (row, line) in fitting(lines, usize::from(rows)).iter().enumerate() {
            let line = line.cut(usize::from(columns));
            let text = if has_colours() { line.coloured() } else { line.to_string() };
            queue!(frame, MoveTo(0, row as u16))?;
            // The rest of the line is cleared first, because after the last column the cursor would
            // still be on it.
            queue!(frame, Clear(ClearType::UntilNewLine))?;
            frame.extend_from_slice(text.as_bytes());
        }
        if lines.len() < usize::from(rows) {
            queue!(frame, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
        }
        queue!(frame, EndSynchronizedUpdate)?;
        let mut out = stdout().lock();
        out.write_all(&frame)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone cannot be restored, and need not be.
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    }
}

/// All lines, or the first ones and a last one that says how many are missing.
fn fitting(lines: &[Line], rows: usize) -> Vec<Line> {
    if lines.len() <= rows {
        return lines.to_vec();
    }
    let shown = rows.saturating_sub(1);
    let mut fitting = lines[..shown].to_vec();
    let missing = lines.len() - shown;
    fitting.push(Line::new(Tone::Faint, format!("({missing} more lines: a higher terminal shows them)")));
    fitting.truncate(rows);
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines = Line::all_of("a\nb\nc");
        let shown = |rows| fitting(&lines, rows).iter().map(Line::to_string).collect::<Vec<_>>();
        assert_eq!(shown(3), ["a", "b", "c"]);
        assert_eq!(shown(2), ["a", "(2 more lines: a higher terminal shows them)"]);
        assert!(shown(0).is_empty());
    }
}
