//! A place is a host or a switch of a laboratory (`docs/glossary.md`), so that code which is not
//! the laboratory's gives nothing this name.

use std::fs;
use std::path::Path;

use super::comments::files;

const FOLDERS: [&str; 5] = ["capi", "crates", "mpi", "nccl", "sharp-coll"];
const ENDINGS: [&str; 4] = ["rs", "c", "h", "cc"];

/// Where the laboratory is, and what shows it.
const LABORATORY: [&str; 3] = ["crates/lab/", "crates/trib/src/commands/lab/", "crates/trib/tests/commands/lab"];

const NAMES: [&str; 4] = ["place", "places", "Place", "Places"];

/// A line without its comment and what it quotes.
fn code(line: &str) -> String {
    let line = line.trim_start();
    if ["//", "/*", "* "].iter().any(|start| line.starts_with(start)) {
        return String::new();
    }
    let unquoted: String = line.replace("\\\"", "").split('"').step_by(2).collect::<Vec<_>>().join(" ");
    unquoted.split("//").next().unwrap_or_default().to_owned()
}

/// The names in a line that are a place's. What is called, `place(`, is the verb.
fn names(line: &str) -> Vec<String> {
    let code = code(line);
    let mut rest = code.as_str();
    let mut found = Vec::new();
    while let Some(start) = rest.find(|letter: char| letter.is_alphanumeric() || letter == '_') {
        let word = &rest[start..];
        let len = word.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(word.len());
        let (name, behind) = word.split_at(len);
        if NAMES.contains(&name) && !behind.starts_with('(') {
            found.push(name.to_owned());
        }
        rest = behind;
    }
    found
}

#[test]
fn nothing_but_the_laboratorys_is_called_a_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut count = 0;
    for path in FOLDERS.iter().flat_map(|folder| files(&root.join(folder))) {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let is_read = ENDINGS.iter().any(|ending| name.ends_with(&format!(".{ending}")));
        if !is_read || LABORATORY.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        count += 1;
        for (at, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            found.extend(names(line).into_iter().map(|word| format!("{name}:{}: {word:?} is a laboratory's", at + 1)));
        }
    }
    assert!(count > 200, "only {count} files were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn names_are_found_and_verbs_and_words_in_texts_are_not() {
    assert_eq!(names("    let place = places[at]; // a place"), ["place", "places"]);
    assert_eq!(names("pub struct Place<'a>(Places);"), ["Place", "Places"]);
    for line in ["// a place", " * a place", "self.place(at); in_place", "tell(\"in its place\", misplaced)"] {
        assert!(names(line).is_empty(), "{line}");
    }
}
