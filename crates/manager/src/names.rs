//! Names that programs give, made fit to be kept and shown: short, on one line, with nothing that
//! moves a cursor.

use std::collections::HashSet;

use trib_messages::jobs::Names;
use trib_topology::hostlist::compress;

/// At most `max` bytes of the text. A control character becomes a replacement character. A text
/// that was cut ends in `...`.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        let c = if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        if kept.len() + c.len_utf8() > max {
            let fits = |len: &usize| kept.is_char_boundary(*len);
            kept.truncate((0..=max.saturating_sub(CUT.len())).rev().find(fits).unwrap_or(0));
            kept.push_str(CUT);
            break;
        }
        kept.push(c);
    }
    kept
}

/// These names in their order, each counted once.
pub(crate) fn names<'a, S: AsRef<str> + ?Sized + 'a>(all: impl IntoIterator<Item = &'a S>) -> Names {
    let mut seen = HashSet::new();
    let each: Vec<&str> = all.into_iter().map(S::as_ref).filter(|name| seen.insert(*name)).collect();
    let first = each.iter().take(COMPRESSED_MAX).copied();
    let mut list = compress(first);
    if each.len() > COMPRESSED_MAX {
        list.push_str(CUT);
    }
    Names { count: u32::try_from(each.len()).unwrap_or(u32::MAX), list: cut(&list, LIST_MAX) }
}

const CUT: &str = "...";
/// The largest length of a list of names, in bytes.
pub(crate) const LIST_MAX: usize = 256;
/// Names beyond this number are counted and not looked at, because the list would be cut before
/// them.
const COMPRESSED_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_lose_what_is_not_to_be_shown() {
        assert_eq!(cut("train.py", 8), "train.py");
        assert_eq!(cut("train.pyc", 8), "train...");
        assert_eq!(cut("äääää", 8), "ää...");
        assert_eq!(cut("a\u{1b}[2J\nb", 20), "a\u{fffd}[2J\u{fffd}b");
    }

    #[test]
    fn names_are_counted_once_and_listed_as_people_write_them() {
        let list = |words: &[&str]| names(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(list(&[]), Names::default());
        assert_eq!(list(&["h1", "h0", "h1", "h2", "login"]), Names { count: 4, list: "h[1,0,2],login".into() });
        let many: Vec<String> = (0..20_000).map(|n| format!("h{}", n * 2)).collect();
        let many = names(&many);
        assert_eq!((many.count, many.list.len()), (20_000, LIST_MAX));
        assert!(many.list.ends_with("..."), "{}", many.list);
    }
}
