//! A share as a bar of characters, for terminals.

/// A share as a bar of at most `cells` characters, in steps of an eighth of one. A share below 0
/// counts as 0, and one above 1 as 1.
pub fn bar(share: f64, cells: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (8 * cells) as f64).round() as usize;
    let mut text = "\u{2588}".repeat(eighths / 8);
    text.extend(eighths.checked_rem(8).filter(|rest| *rest > 0).and_then(|rest| PARTS.chars().nth(rest - 1)));
    let drawn = eighths.div_ceil(8);
    text + &" ".repeat(cells - drawn)
}

/// The character at the end of a full bar.
pub const END: char = '\u{2595}';

/// The characters for one to seven eighths of a cell.
const PARTS: &str = "\u{258f}\u{258e}\u{258d}\u{258c}\u{258b}\u{258a}\u{2589}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share_and_as_wide_as_asked() {
        let drawn = [0.0, 0.5, 0.8125, 1.0, 7.0, f64::NAN].map(|share| bar(share, 2));
        assert_eq!(drawn, ["  ", "\u{2588} ", "\u{2588}\u{258b}", "\u{2588}\u{2588}", "\u{2588}\u{2588}", "  "]);
    }
}
