//! `ARCHITECTURE.md` tells each decision in the same parts, in the same order, so that a reader
//! finds in each what asked for it and what it costs.

use std::fs;
use std::path::Path;

/// The parts of a decision. The first two are always there.
const PARTS: [&str; 4] = ["Context", "Decision", "Rejected", "Cost"];
const ALWAYS: usize = 2;

/// What is wrong with the decisions of a document, as sentences, and how many decisions it has.
fn faults(document: &str) -> (usize, Vec<String>) {
    let section = document.split("\n## ").find(|section| section.starts_with("Decisions\n")).unwrap_or_default();
    let decisions: Vec<&str> = section.split("\n#### ").skip(1).collect();
    let found = decisions.iter().flat_map(|decision| faults_of(decision)).collect();
    (decisions.len(), found)
}

fn faults_of(decision: &str) -> Vec<String> {
    let title = decision.lines().next().unwrap_or_default();
    let at: Vec<Option<usize>> = PARTS.iter().map(|part| decision.find(&format!("\n*{part}.* "))).collect();
    let missing = PARTS[..ALWAYS].iter().zip(&at).filter(|(_, at)| at.is_none());
    let mut found: Vec<String> = missing.map(|(part, _)| format!("{title:?} has no *{part}.*")).collect();
    if !at.iter().flatten().is_sorted() {
        found.push(format!("{title:?} has its parts in another order than {PARTS:?}"));
    }
    found
}

#[test]
fn every_decision_has_its_parts_in_order() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let (decisions, found) = faults(&fs::read_to_string(path).unwrap());
    assert!(decisions >= 20, "only {decisions} decisions were found: the document was not read");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_decision_without_its_parts_is_named() {
    let document = "# A\n\n## Decisions\n\n#### Good\n\n*Context.* a\n*Decision.* b\n*Cost.* c\n\n\
                    #### Bare\n\n*Context.* a\n\n#### Turned\n\n*Decision.* a\n*Context.* b\n\n## Invariants\n";
    let (decisions, found) = faults(document);
    assert_eq!(decisions, 3);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("\"Bare\" has no *Decision.*"));
    assert!(found[1].contains("\"Turned\" has its parts in another order"));
}
