//! Inside the manager, too, arrows point one way: what the top of this list does not know, nothing
//! below it may know.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the manager; each uses only those that follow it.
const ORDER: &[&str] = &[
    "lib",
    "server",
    "desk",
    "conversations",
    "answers",
    "admission",
    "fabric",
    "inputs",
    "error",
    "programs",
    "records",
    "nodes",
    "tenancy",
    "planning",
    "names",
    "time",
    "lock",
    "refuse",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| sources(folder)));
    files
}

/// The position of a module in the order.
fn position(module: &str, named_by: &str) -> usize {
    let position = ORDER.iter().position(|known| *known == module);
    position.unwrap_or_else(|| panic!("{named_by} names a module `{module}` that is not in the order"))
}

/// The modules of its crate that a file names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let ends = |path: &str| path.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(path.len());
    text.split("crate::").skip(1).map(move |path| &path[..ends(path)]).filter(|module| !module.is_empty())
}

/// What a file may not name, as sentences.
fn offences(file: &str, text: &str) -> Vec<String> {
    let own = file.split(['/', '.']).next().unwrap();
    if text.contains("crate::{") {
        return vec![format!(
            "{file} imports from several modules at once: write a line for each, which this test reads"
        )];
    }
    let above = |other: &&str| position(other, file) < position(own, file);
    named(text).filter(above).map(|other| format!("{file} uses {other}, which is above it")).collect()
}

#[test]
fn modules_of_the_manager_use_only_what_follows_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manager/src");
    let files = sources(&root);
    assert!(files.len() > ORDER.len(), "the manager was not found: {files:?}");
    let offence = |path: &PathBuf| {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        offences(&file, &fs::read_to_string(path).unwrap())
    };
    let found: Vec<String> = files.iter().flat_map(offence).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn an_arrow_upwards_is_named() {
    let text = "use crate::refuse::lasting;\nuse crate::admission::admit;\nuse crate::Error;\n";
    assert_eq!(offences("records/jobs.rs", text), ["records/jobs.rs uses admission, which is above it"]);
    assert!(offences("server/node.rs", text).is_empty());
    assert_eq!(offences("records/jobs.rs", "use crate::{admission, Error};").len(), 1);
}
