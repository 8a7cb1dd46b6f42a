//! Lines whose parts have a tone. A terminal shows tones as colours; a pipe does not get them.

use std::fmt;

use crossterm::style::{StyledContent, Stylize as _};

/// The tone of a part of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// The tone of most parts.
    Plain,
    /// For what a reader looks for first.
    Strong,
    /// For what only guides the eye.
    Faint,
    /// Near a limit.
    Warning,
    /// For what a person has to look at.
    Alarm,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    parts: Vec<(Tone, String)>,
}

impl Line {
    /// A line with one tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Line {
        Line::default().and(tone, text)
    }

    /// Adds a part at the line's end. Programs and hosts may have any name, and no part of it may
    /// move the cursor.
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Line {
        let mut text: String = text.into();
        if text.contains(char::is_control) {
            text = text.replace(char::is_control, "\u{fffd}");
        }
        self.parts.push((tone, text));
        self
    }

    /// The lines of a text, in the plain tone.
    pub fn all_of(text: &str) -> Vec<Line> {
        text.lines().map(|line| Line::new(Tone::Plain, line)).collect()
    }

    /// The number of its characters.
    pub fn width(&self) -> usize {
        self.parts.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// At most `columns` characters of it. If some are left out, the last character says so.
    pub fn cut(&self, columns: usize) -> Line {
        if self.width() <= columns {
            return self.clone();
        }
        let mut left = columns.saturating_sub(1);
        let mut line = Line::default();
        for (tone, text) in &self.parts {
            let kept: String = text.chars().take(left).collect();
            left -= kept.chars().count();
            line = line.and(*tone, kept);
        }
        if columns == 0 { line } else { line.and(Tone::Faint, "\u{2026}") }
    }

    /// The line as lines of at most `columns` characters, broken at blanks. Those after the first
    /// are indented.
    pub fn wrapped(&self, columns: usize) -> Vec<Line> {
        let (mut lines, mut line, mut width) = (Vec::new(), Line::default(), 0);
        for (tone, text) in &self.parts {
            for word in text.split_inclusive(' ') {
                let length = word.trim_end().chars().count();
                if width > 0 && width + length > columns {
                    lines.push(std::mem::take(&mut line).without_last_blank());
                    line = Line::new(Tone::Plain, INDENT);
                    width = INDENT.len();
                }
                line = line.and(*tone, word);
                width += word.chars().count();
            }
        }
        lines.push(line);
        lines
    }

    fn without_last_blank(mut self) -> Line {
        if let Some((_, text)) = self.parts.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
        }
        self
    }

    /// The line with the codes that make a terminal show the tones.
    pub fn coloured(&self) -> String {
        self.parts.iter().map(|(tone, text)| styled(*tone, text).to_string()).collect()
    }
}

const INDENT: &str = "  ";

fn styled(tone: Tone, text: &str) -> StyledContent<&str> {
    match tone {
        Tone::Plain => text.stylize(),
        Tone::Strong => text.bold(),
        Tone::Faint => text.dim(),
        Tone::Warning => text.yellow(),
        Tone::Alarm => text.red().bold(),
    }
}

impl fmt::Display for Line {
    /// Writes the line without tones, and without blanks at its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.parts.iter().map(|(_, text)| text.as_str()).collect();
        f.write_str(text.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_its_characters_and_says_so() {
        let line = Line::new(Tone::Strong, "\u{2588}\u{2588}b").and(Tone::Plain, "cd");
        assert_eq!(
            [6, 5, 4, 3, 1, 0].map(|columns| line.cut(columns).to_string()),
            [
                "\u{2588}\u{2588}bcd",
                "\u{2588}\u{2588}bcd",
                "\u{2588}\u{2588}b\u{2026}",
                "\u{2588}\u{2588}\u{2026}",
                "\u{2026}",
                ""
            ]
        );
    }

    #[test]
    fn a_sentence_is_broken_at_blanks_and_keeps_its_tones() {
        let line = Line::new(Tone::Alarm, "stands still: ").and(Tone::Plain, "the group of ranks");
        let broken = |columns| line.wrapped(columns).iter().map(Line::to_string).collect::<Vec<_>>();
        assert_eq!(broken(32), ["stands still: the group of ranks"]);
        assert_eq!(broken(20), ["stands still: the", "  group of ranks"]);
        assert_eq!(line.wrapped(17)[0].width(), 17, "the blank where it is broken is gone");
        assert_eq!(broken(3).len(), 6, "words are longer than the line");
        assert_eq!(line.wrapped(20)[1].parts[1].0, Tone::Plain);
        assert_eq!(Line::default().wrapped(9), [Line::default()]);
    }

    #[test]
    fn what_a_program_calls_itself_moves_no_cursor() {
        let line = Line::new(Tone::Plain, "a\u{1b}[2Jb\n  ");
        assert_eq!(line.to_string(), "a\u{fffd}[2Jb\u{fffd}");
        assert!(!line.coloured().contains('\u{1b}'), "{:?}", line.coloured());
    }
}
