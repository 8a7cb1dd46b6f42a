//! The NUMA domain of its host to which this process is bound: the one NUMA node of the machine
//! that has all the processors on which the thread that joins may run.

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::params::{NUMA_ENV, setting};
use crate::processors;

/// The domain, as `TRIB_NUMA` says it, else as the system does; `None` if it is bound to none.
pub(super) fn domain() -> Result<Option<u16>, Error> {
    match setting(NUMA_ENV)? {
        Some(text) => read(&text),
        None => Ok(processors::own().and_then(|own| find(Path::new(NODES), &own))),
    }
}

fn read(text: &str) -> Result<Option<u16>, Error> {
    let wrong = |_| {
        let most = u16::MAX;
        Error::Invalid(format!("{NUMA_ENV}={text} is neither the number of a NUMA node, 0 to {most}, nor `{UNBOUND}`"))
    };
    if text == UNBOUND { Ok(None) } else { text.parse().map(Some).map_err(wrong) }
}

/// The lowest of the NUMA nodes in this folder that have all of these processors.
fn find(nodes: &Path, own: &[u32]) -> Option<u16> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("node")?.parse::<u16>().ok();
    let has_all = |node: &u16| {
        let list = fs::read_to_string(nodes.join(format!("node{node}/cpulist")));
        list.ok().and_then(|list| ranges(&list)).is_some_and(|ranges| {
            own.iter().all(|processor| ranges.iter().any(|(first, last)| (first..=last).contains(&processor)))
        })
    };
    // A process without a processor would be bound to every node.
    let nodes = fs::read_dir(nodes).ok().filter(|_| !own.is_empty())?;
    nodes.flatten().filter_map(number).filter(has_all).min()
}

/// A list as the kernel writes it, `0-3,8`. That of a node with memory alone is empty.
fn ranges(list: &str) -> Option<Vec<(u32, u32)>> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    list.trim().split(',').filter(|text| !text.is_empty()).map(range).collect()
}

/// The value of `TRIB_NUMA` for a rank that is bound to no domain.
const UNBOUND: &str = "none";
/// Where Linux tells about NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A folder of the test's own, which is removed however the test ends.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn machine(test: &str, nodes: &[(&str, &str)]) -> Folder {
        let folder = Folder(std::env::temp_dir().join(format!("trib-numa-{}-{test}", std::process::id())));
        for (node, list) in nodes {
            fs::create_dir_all(folder.0.join(node)).unwrap();
            fs::write(folder.0.join(node).join("cpulist"), list).unwrap();
        }
        folder
    }

    #[test]
    fn a_process_is_bound_to_the_one_node_that_has_all_its_processors() {
        // Two sockets with two threads a core, a node with memory alone, and what is no node.
        let nodes = [("node0", "0-3,8-11\n"), ("node1", "4-7,12-15\n"), ("node2", "\n"), ("power", "0-15\n")];
        let machine = machine("sockets", &[&nodes[..], &[("node70000", "0-15\n"), ("node3", "0-all\n")]].concat());
        let bound = |own: &[u32]| find(&machine.0, own);
        assert_eq!((bound(&[3, 8]), bound(&[4]), bound(&[12, 13, 14, 15])), (Some(0), Some(1), Some(1)));
        assert_eq!((bound(&[3, 4]), bound(&(0..16).collect::<Vec<_>>()), bound(&[16]), bound(&[])), Default::default());
        assert_eq!(find(Path::new("/nonexistent"), &[0]), None);
    }

    #[test]
    fn a_setting_is_a_number_or_none() {
        assert_eq!((read("0"), read("65535"), read("none")), (Ok(Some(0)), Ok(Some(65_535)), Ok(None)));
        for wrong in ["-1", "65536", "node0", "0-3", " 1", "None"] {
            let text = read(wrong).unwrap_err().to_string();
            assert_eq!(text, format!("TRIB_NUMA={wrong} is neither the number of a NUMA node, 0 to 65535, nor `none`"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_none(text in "\\PC*", numbers in "[0-9,\\-\n]*") {
            let _ = (ranges(&text), ranges(&numbers), read(&text));
        }
    }
}
