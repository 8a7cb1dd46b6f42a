//! Modules of one parent import each other one way: they form no circle, at any depth. What a
//! module and its own children share stays between them, because a type and its `impl` blocks may
//! have a file each.
//!
//! An arrow goes from sibling to sibling: what `engine::wait` names in `group::state` is an arrow
//! from `engine` to `group`. Re-exports are followed to where a thing is.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

use source::{Named, Path, Source, joined};

/// The crates whose modules still form circles. The list only becomes shorter: a crate on it that
/// has none fails the test, too.
const NOT_YET: &[&str] = &[
    "wire",
    "messages",
    "reduce",
    "topology",
    "proto",
    "transport",
    "control",
    "manager",
    "node",
    "lab",
    "service",
    "trib",
    "capi",
    "sharp-coll",
];

/// The modules of one crate.
#[derive(Default)]
struct Modules {
    paths: BTreeSet<Path>,
    /// By file: what it names.
    named: Vec<(Path, Named)>,
    /// What the imports of a module call something, and the path that they give for it.
    names: BTreeMap<(Path, String), Path>,
}

/// The arrows between the children of one parent, each with what stands in the source.
type Arrows = BTreeMap<Path, BTreeMap<(String, String), String>>;

impl Modules {
    fn of(files: &[(Path, String)]) -> Modules {
        let sources: Vec<(&Path, Source)> = files.iter().map(|(path, text)| (path, Source::read(path, text))).collect();
        let for_tests: Vec<&Path> = sources.iter().flat_map(|(_, source)| &source.for_tests).collect();
        let is_for_tests = |path: &Path| for_tests.iter().any(|hidden| path.starts_with(hidden));
        let mut modules = Modules::default();
        modules.paths.extend(files.iter().map(|(path, _)| path.clone()).filter(|path| !is_for_tests(path)));
        for (file, source) in &sources {
            if is_for_tests(file) {
                continue;
            }
            for Named { within, path, name } in &source.named {
                if let Some(name) = name {
                    modules.names.insert((within.clone(), name.clone()), path.clone());
                }
                let named = Named { within: within.clone(), path: path.clone(), name: name.clone() };
                modules.named.push(((*file).clone(), named));
            }
        }
        modules
    }

    /// A path of this crate from its root; `None` for one of another crate.
    fn seen_from_root(&self, within: &[String], path: &[String], steps: u32) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Path::new(),
            "self" => within.to_vec(),
            "super" => {
                let mut start = within.split_last()?.1;
                let mut rest = rest;
                while let [next, after @ ..] = rest
                    && next == "super"
                {
                    (start, rest) = (start.split_last()?.1, after);
                }
                return Some([start, rest].concat());
            }
            _ if self.paths.contains(&joined(within, first)) => joined(within, first),
            // An import may build upon another one.
            _ => {
                let earlier = self.names.get(&(within.to_vec(), first.clone())).filter(|earlier| *earlier != path)?;
                self.seen_from_root(within, earlier, steps.checked_sub(1)?)?
            }
        };
        Some([&start, rest].concat())
    }

    /// The module in which the thing is that a path from the root names.
    fn home(&self, path: &[String], steps: u32) -> Path {
        let mut home = Path::new();
        for (at, segment) in path.iter().enumerate() {
            let next = joined(&home, segment);
            if self.paths.contains(&next) {
                home = next;
                continue;
            }
            let imported = self.names.get(&(home.clone(), segment.clone()));
            let imported = imported.and_then(|imported| self.seen_from_root(&home, imported, STEPS));
            return match (imported, steps.checked_sub(1)) {
                (Some(imported), Some(steps)) => self.home(&[&imported, &path[at + 1..]].concat(), steps),
                _ => home,
            };
        }
        home
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (file, Named { within, path, .. }) in &self.named {
            let Some(target) = self.seen_from_root(within, path, STEPS) else { continue };
            let target = self.home(&target, STEPS);
            let shared = file.iter().zip(&target).take_while(|(ours, theirs)| ours == theirs).count();
            if let (Some(from), Some(to)) = (file.get(shared), target.get(shared)) {
                let word = format!("{} has {}", file.join("::"), path.join("::"));
                let siblings = arrows.entry(file[..shared].to_vec()).or_default();
                siblings.entry((from.clone(), to.clone())).or_insert(word);
            }
        }
        arrows
    }

    /// One circle for each parent that has any, and imports that hide what they bring.
    fn faults(&self) -> Vec<String> {
        let circles = self.arrows().into_values().filter_map(|arrows| circle(&arrows));
        let globs = self.named.iter().filter(|(_, named)| named.path.last().is_some_and(|last| last == "*"));
        let globs = globs.filter(|(_, named)| self.seen_from_root(&named.within, &named.path, STEPS).is_some());
        let globs =
            globs.map(|(file, named)| format!("{} has {}: name the things", file.join("::"), named.path.join("::")));
        circles.chain(globs).collect()
    }
}

/// A circle of arrows, as a sentence.
fn circle(arrows: &BTreeMap<(String, String), String>) -> Option<String> {
    let mut left: BTreeMap<&(String, String), &String> = arrows.iter().collect();
    // An arrow that nothing goes on from is in no circle.
    loop {
        let starts: BTreeSet<&String> = left.keys().map(|(from, _)| from).collect();
        let before = left.len();
        left.retain(|(_, to), _| starts.contains(to));
        if left.len() == before {
            break;
        }
    }
    let mut way: Vec<(&String, &String)> = Vec::new();
    let mut at = left.keys().next().map(|(from, _)| from)?;
    loop {
        if let Some(begin) = way.iter().position(|(from, _)| *from == at) {
            let names: Vec<&str> = way[begin..].iter().map(|(from, _)| from.as_str()).chain([at.as_str()]).collect();
            let words: Vec<&str> = way[begin..].iter().map(|(_, word)| word.as_str()).collect();
            return Some(format!("{} ({})", names.join(" -> "), words.join("; ")));
        }
        let ((_, to), word) = left.iter().find(|((from, _), _)| from == at)?;
        way.push((at, word));
        at = to;
    }
}

/// The modules below a folder of sources, with their texts.
fn files(folder: &FilePath, within: &[String]) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        if file.is_dir() {
            found.extend(files(&file, &joined(within, &stem)));
        } else if file.extension().is_some_and(|ending| ending == "rs") {
            let is_root = ["mod", "lib", "main"].contains(&stem.as_str());
            let path = if is_root { within.to_vec() } else { joined(within, &stem) };
            found.push((path, fs::read_to_string(&file).unwrap()));
        }
    }
    found
}

#[test]
fn modules_form_no_circle() {
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let crates = crates.chain(["capi", "nccl", "sharp-coll"].map(|name| root.join(name)));
    let (mut found, mut checked, mut modules) = (Vec::new(), 0, 0);
    for folder in crates.filter(|folder| folder.join("src").is_dir()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let files = files(&folder.join("src"), &[]);
        let faults = Modules::of(&files).faults();
        (checked, modules) = (checked + 1, modules + files.len());
        match (faults.is_empty(), NOT_YET.contains(&name.as_str())) {
            (true, true) => found.push(format!("{name} has no circle any more: take it off the list")),
            (false, true) | (true, false) => {}
            (false, false) => found.extend(faults.iter().map(|fault| format!("{name}: {fault}"))),
        }
    }
    assert!(checked > 12 && modules > 200, "only {modules} modules of {checked} crates were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let path = |name: &str| name.split("::").filter(|segment| !segment.is_empty()).map(String::from).collect();
    let files: Vec<(Path, String)> = files.iter().map(|(name, text)| (path(name), text.to_string())).collect();
    Modules::of(&files).faults()
}

#[test]
fn circles_are_named_however_they_are_written() {
    let other = ("b", "use crate::a::A; pub struct B;");
    for way_back in [
        "use crate::b::B;",
        "use super::{b::{self, B as C}};",
        "fn f(b: crate::b::B) {}",
        "fn f() { println!(\"{}\", super::b::B::new()) }",
        "mod inner { use super::super::b::B; }",
        "use crate::B;",
        "use crate::b;\nuse b::B;",
    ] {
        let found = faults(&[("", "mod a; mod b; pub use b::B;"), ("a", way_back), other]);
        assert_eq!(found.len(), 1, "{way_back}: {found:?}");
        assert!(found[0].starts_with("a -> b -> a (a has "), "{found:?}");
    }
    let deep = [("", ""), ("a", ""), ("a::x", "use crate::b::y::Y;"), ("b", ""), ("b::y", "use crate::c::C;")];
    let found = faults(&[&deep[..], &[("c", "use super::a::A;")]].concat());
    assert_eq!(found, ["a -> b -> c -> a (a::x has crate::b::y::Y; b::y has crate::c::C; c has super::a::A)"]);
}

#[test]
fn what_is_no_circle_is_not_named() {
    let other = ("b", "use crate::a::A; pub struct B; use outside::a::A as D;");
    for harmless in [
        "// use crate::b::B;\nconst TEXT: &str = \"crate::b::B\";",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] use crate::b::B;",
        "use b::B; pub(crate) fn f() -> impl Iterator + use<> {}",
        "use std::b::B;",
    ] {
        let found = faults(&[("", "mod a; mod b; pub use b::B; use a::A;"), ("a", harmless), other]);
        assert_eq!(found, Vec::<String>::new(), "{harmless}");
    }
    let beside = |declared| faults(&[("", ""), ("a", declared), ("a::tests", "use crate::b::B;"), other]).len();
    assert_eq!((beside("#[cfg(test)] mod tests;"), beside("mod tests;")), (0, 1));
    let family = [("", "mod a;"), ("a", "mod b; use b::B; pub struct A;"), ("a::b", "use super::A;")];
    assert_eq!(faults(&family), Vec::<String>::new());
}

#[test]
fn an_import_of_everything_is_named() {
    let found = faults(&[("", ""), ("a", "use super::b::*; use std::io::*;"), ("b", "")]);
    assert_eq!(found, ["a has super::b::*: name the things"]);
}

/// The longest chain of imports that is followed.
const STEPS: u32 = 16;
