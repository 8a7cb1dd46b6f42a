//! Lists of hosts as Slurm writes them.
//!
//! Asserted: a list stands for at most as many names as it may; compressed again, it stands for the
//! same names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_topology::hostlist::{NAMES_MAX, compress, expand};

fuzz_target!(|text: &str| {
    let Ok(names) = expand(text) else { return };
    assert!(names.len() <= NAMES_MAX);
    if names.len() > NAMES_WATCHED || names.iter().any(|name| name.contains(['[', ']', ','])) {
        return;
    }
    let mut again = expand(&compress(names.iter().map(String::as_str))).expect("it was written here");
    let mut names = names;
    // Names of one stem are brought together.
    names.sort();
    again.sort();
    assert_eq!(again, names);
});

/// More names say nothing new and take longer.
const NAMES_WATCHED: usize = 4096;
