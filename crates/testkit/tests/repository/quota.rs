//! Compares the table of limits in `docs/topology.md` with the one that everything checks by.

use std::fs;
use std::path::Path;

use trib_messages::quota::{QUOTA, QuotaRow, Speaker};

/// No more than the largest number: nobody bounds it.
const UNBOUNDED: u64 = u32::MAX as u64;

#[test]
fn the_documentation_has_every_limit_with_its_range_default_meaning_and_cost() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/topology.md")).unwrap();
    let (_, after) = page.split_once("<!-- table: quota -->").expect("docs/topology.md has a table of limits");
    let table: Vec<&str> =
        after.lines().skip(1).take_while(|line| line.starts_with('|')).skip(2).map(str::trim_end).collect();
    let expected: Vec<String> = QUOTA.iter().map(written).collect();
    assert_eq!(table, expected, "docs/topology.md is to say:\n{}\n", expected.join("\n"));
}

fn written(row: &QuotaRow) -> String {
    let maximum = match row.maximum {
        UNBOUNDED | u64::MAX => "none".to_owned(),
        most => row.written(most).to_string(),
    };
    let (default, maximum) = match row.speaker {
        Speaker::Job => ("-".to_owned(), "-".to_owned()),
        Speaker::Both | Speaker::Fabric => (row.written(row.default).to_string(), maximum),
    };
    let buffers = if row.memory.is_empty() { "-" } else { row.memory };
    format!("| `{}` | {} | {default} | {maximum} | {} | {buffers} |", row.name, row.range(), row.meaning)
}
