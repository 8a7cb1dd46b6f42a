//! Comments are no wider than a window in which they are read beside the code, and in them a
//! thread, a rank or a program is "it".

use std::fs;
use std::path::{Path, PathBuf};

/// The folders whose comments are checked, in all files whose names end in one of [`ENDINGS`].
const FOLDERS: [&str; 11] =
    ["bench", "capi", "crates", "examples", "fuzz", "models", "mpi", "nccl", "scripts", "sharp-coll", "tests"];
const ENDINGS: [&str; 5] = ["rs", "c", "h", "cc", "py"];
const COLUMNS: usize = 100;

/// Words for a person, which no comment is about.
const PERSONS: [&str; 6] = ["whoever", "whom", "he", "his", "him", "she"];

/// A line's comment, if the line is nothing else; `block` is whether a C comment goes on over it.
fn comment<'a>(line: &'a str, ending: &str, block: &mut bool) -> Option<&'a str> {
    let text = line.trim_start();
    if ending == "py" {
        return text.starts_with('#').then_some(text);
    }
    let is_comment = *block || text.starts_with("//") || text.starts_with("/*");
    if ending != "rs" {
        *block = (*block || text.starts_with("/*")) && !text.contains("*/");
    }
    is_comment.then_some(text)
}

/// What is wrong with the comments of one file, as sentences.
fn faults(name: &str, text: &str) -> Vec<String> {
    let ending = name.rsplit('.').next().unwrap_or_default();
    let mut block = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(comment) = comment(line, ending, &mut block) else { continue };
        let (line_number, columns) = (at + 1, line.chars().count());
        if columns > COLUMNS {
            found.push(format!("{name}:{line_number}: a comment of {columns} columns, at most {COLUMNS}"));
        }
        let words = comment.split(|letter: char| !letter.is_alphanumeric());
        for word in words.filter(|word| PERSONS.contains(&word.to_lowercase().as_str())) {
            found.push(format!("{name}:{line_number}: {word:?} is for persons"));
        }
    }
    found
}

/// The files below a folder that have one of the endings.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_ours = |path: &PathBuf| path.extension().is_some_and(|ending| ENDINGS.iter().any(|ours| *ours == ending));
    files.into_iter().filter(is_ours).chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

#[test]
fn comments_fit_a_window_and_speak_of_things() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| files(&root.join(folder))).collect();
    assert!(paths.len() > 200, "only {} files were found", paths.len());
    let this_file = Path::new(file!()).file_name().unwrap();
    let found: Vec<String> = paths
        .iter()
        .filter(|path| path.file_name() != Some(this_file))
        .flat_map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy();
            faults(&name, &fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_wide_comment_and_a_person_are_named() {
    let wide = format!("fn f() {{}}\n    // {}\n", "a".repeat(COLUMNS));
    assert_eq!(faults("wide.rs", &wide), ["wide.rs:2: a comment of 107 columns, at most 100"]);
    let person = "/* the heir\n * of whoever\n * sends */\nint whom;\n";
    assert_eq!(faults("person.c", person), ["person.c:2: \"whoever\" is for persons"]);
    assert_eq!(faults("person.py", "x = 1  # he\n# Who is he?\n"), ["person.py:2: \"he\" is for persons"]);
}
