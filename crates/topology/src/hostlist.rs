//! Many names in few characters: `tux[0-15,20],login` as Slurm writes lists of hosts.
//!
//! A bracket holds numbers and ranges. Leading zeros are kept (`n[08-10]` is `n08 n09 n10`). A name
//! may have several brackets.

use std::collections::BTreeMap;

/// The most names of one list.
pub const NAMES_MAX: usize = 1 << 18;

/// The most bytes of one name, so that a short file does not ask for all of the memory.
pub const LENGTH_MAX: usize = 255;

/// What is wrong with a list of names.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostlistError {
    /// A name is missing, or empty between two commas.
    #[error("`{0}` has an empty name; write names such as h0 or h[0-15], with single commas between")]
    Empty(String),
    /// A bracket is not closed, or is closed twice.
    #[error("`{0}` has an unpaired bracket; close every `[` with a `]`")]
    Bracket(String),
    /// A range is malformed.
    #[error("`{0}` is no range of numbers; write 7 or 0-15, the smaller first")]
    Range(String),
    /// There are too many names.
    #[error("`{0}` stands for more than {NAMES_MAX} names; split the fabric")]
    TooMany(String),
    /// A name is too long.
    #[error("a name that begins with `{0}` is longer than {LENGTH_MAX} bytes; shorten it")]
    TooLong(String),
}

/// The names that a list stands for, in its order.
pub fn expand(list: &str) -> Result<Vec<String>, HostlistError> {
    let mut names = Vec::new();
    for item in split(list)? {
        let parts = parts(item)?;
        if parts.iter().map(Part::length).sum::<usize>() > LENGTH_MAX {
            return Err(HostlistError::TooLong(item.chars().take(40).collect()));
        }
        let count = parts.iter().try_fold(1usize, |count, part| count.checked_mul(part.count()));
        if count.is_none_or(|count| count > NAMES_MAX - names.len()) {
            return Err(HostlistError::TooMany(item.into()));
        }
        expand_parts(&parts, String::new(), &mut names);
    }
    Ok(names)
}

/// A short list for names, in their order. Runs of consecutive numbers become ranges.
pub fn compress<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut words: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut words_of: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let (stem, number) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        let at = *words_of.entry(stem).or_insert_with(|| {
            words.push((stem, Vec::new()));
            words.len() - 1
        });
        words[at].1.push(number);
    }
    let texts = words.iter().map(|(stem, numbers)| match numbers[..] {
        [number] => format!("{stem}{number}"),
        _ if numbers.iter().all(|number| fits(number)) => format!("{stem}[{}]", ranges(numbers)),
        _ => numbers.iter().map(|number| format!("{stem}{number}")).collect::<Vec<_>>().join(","),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// A key that sorts names as people do: `n2` before `n10`. Each piece is a text and the number
/// after it.
pub(crate) fn natural_key(name: &str) -> Vec<(String, u64, usize)> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, after) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let (digits, after) = after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
        let number = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
        pieces.push((text.to_owned(), number, digits.len()));
        rest = after;
    }
    pieces
}

// One piece of a name: a text, or the numbers of a bracket.
enum Part<'a> {
    Text(&'a str),
    Numbers(Vec<Run>),
}

struct Run {
    first: u64,
    last: u64,
    width: usize,
}

impl Part<'_> {
    fn count(&self) -> usize {
        match self {
            Part::Text(_) => 1,
            Part::Numbers(runs) => runs.iter().fold(0, |count, run| {
                count.saturating_add(usize::try_from(run.last - run.first).unwrap_or(usize::MAX).saturating_add(1))
            }),
        }
    }

    // The most bytes that it adds to a name.
    fn length(&self) -> usize {
        match self {
            Part::Text(text) => text.len(),
            Part::Numbers(_) => DIGITS_MAX,
        }
    }
}

// Splits a list at the commas outside brackets.
fn split(list: &str) -> Result<Vec<&str>, HostlistError> {
    let (mut items, mut start, mut open) = (Vec::new(), 0, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' if !open => open = true,
            b']' if open => open = false,
            b'[' | b']' => return Err(HostlistError::Bracket(list.into())),
            b',' if !open => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    match open {
        true => Err(HostlistError::Bracket(list.into())),
        false if items.iter().any(|item| item.is_empty()) => Err(HostlistError::Empty(list.into())),
        false => Ok(items),
    }
}

fn parts(item: &str) -> Result<Vec<Part<'_>>, HostlistError> {
    let (mut parts, mut rest) = (Vec::new(), item);
    while let Some((text, after)) = rest.split_once('[') {
        let (inside, after) = after.split_once(']').ok_or_else(|| HostlistError::Bracket(item.into()))?;
        parts.push(Part::Text(text));
        parts.push(Part::Numbers(inside.split(',').map(run).collect::<Result<_, _>>()?));
        rest = after;
    }
    // This bound on brackets bounds the recursion over them too.
    if parts.len() / 2 > BRACKETS_MAX {
        return Err(HostlistError::TooMany(item.into()));
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

fn run(text: &str) -> Result<Run, HostlistError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    if !fits(first) || !fits(last) {
        return Err(HostlistError::Range(text.into()));
    }
    let parsed = (first.parse::<u64>(), last.parse::<u64>());
    match parsed {
        (Ok(low), Ok(high)) if low <= high => Ok(Run { first: low, last: high, width: first.len() }),
        _ => Err(HostlistError::Range(text.into())),
    }
}

// Whether a number has digits only, and so few that differences and widths stay small.
fn fits(number: &str) -> bool {
    (1..=DIGITS_MAX).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn expand_parts(parts: &[Part<'_>], name: String, names: &mut Vec<String>) {
    match parts {
        [] => names.push(name),
        [Part::Text(text), rest @ ..] => expand_parts(rest, name + text, names),
        [Part::Numbers(runs), rest @ ..] => {
            for run in runs {
                for number in run.first..=run.last {
                    expand_parts(rest, format!("{name}{number:0width$}", width = run.width), names);
                }
            }
        }
    }
}

fn ranges(numbers: &[&str]) -> String {
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if follows(last, number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts = runs.iter().map(|(first, last)| match first == last {
        true => (*first).to_owned(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

// Whether a range that starts with this width would write `next` after `last`.
fn follows(last: &str, next: &str) -> bool {
    let width = if last.starts_with('0') || next.starts_with('0') { last.len() } else { 0 };
    last.parse::<u64>().is_ok_and(|last| format!("{:0width$}", last + 1) == next)
}

const BRACKETS_MAX: usize = 8;
const DIGITS_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_expanded_in_their_order() {
        let expanded = |list: &str| expand(list).unwrap().join(" ");
        assert_eq!(expanded("tux[0-2,5],login"), "tux0 tux1 tux2 tux5 login");
        assert_eq!(expanded("n[08-10]"), "n08 n09 n10");
        assert_eq!(expanded("r[0-1]n[0-1]-ib"), "r0n0-ib r0n1-ib r1n0-ib r1n1-ib");
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_reason() {
        let wrong = |list: &str| expand(list).unwrap_err();
        for list in ["", "a,,b", "a,"] {
            assert!(matches!(wrong(list), HostlistError::Empty(_)), "{list}");
        }
        for list in ["a[0", "a]0", "a[0[1]]", "a[0-1]]"] {
            assert!(matches!(wrong(list), HostlistError::Bracket(_)), "{list}");
        }
        for list in ["a[]", "a[3-1]", "a[x]", "a[0-]", "a[1-2-3]", "a[99999999999999999999]"] {
            assert!(matches!(wrong(list), HostlistError::Range(_)), "{list}");
        }
        for list in ["a".repeat(256), "a".repeat(250) + "[0-10]b[0-10]"] {
            assert!(matches!(wrong(&list), HostlistError::TooLong(start) if start.len() == 40), "{list}");
        }
        assert_eq!(expand(&"a".repeat(255)).unwrap().len(), 1);
        for list in ["a[0-999999999999]", "a[0-999]b[0-999]c[0-999]", "a[0][0][0][0][0][0][0][0][0]"] {
            assert!(matches!(wrong(list), HostlistError::TooMany(_)), "{list}");
        }
    }

    #[test]
    fn names_are_compressed() {
        let compressed = |names: &[&str]| compress(names.iter().copied());
        assert_eq!(compressed(&["h0", "h1", "h2", "h7", "x"]), "h[0-2,7],x");
        assert_eq!(compressed(&["n08", "n09", "n10", "n11"]), "n[08-11]");
        assert_eq!(compressed(&["h9", "h10", "h11"]), "h[9-11]");
        assert_eq!(compressed(&["a", "a1"]), "a,a1");
    }

    #[test]
    fn names_are_sorted_as_people_do() {
        let mut names = ["n10", "n2", "a", "n1x9", "n1x10", "n02", "n", "n99999999999999999999"];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["a", "n", "n1x9", "n1x10", "n2", "n02", "n10", "n99999999999999999999"]);
    }

    proptest! {
        #[test]
        fn compressed_names_expand_again(names in proptest::collection::vec("[ab]{1,2}[0-9]{0,3}", 1..40)) {
            let mut back = expand(&compress(names.iter().map(String::as_str))).unwrap();
            let mut names = names;
            back.sort();
            names.sort();
            prop_assert_eq!(back, names);
        }

        #[test]
        fn any_text_is_expanded_or_refused(list in "[a0-9,\\[\\]-]{0,24}") {
            let _ = expand(&list);
        }
    }
}
