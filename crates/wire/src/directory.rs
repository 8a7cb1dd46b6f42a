//! How people call the nodes, ranks and groups of a job: one maker for the words in which faults,
//! errors and explanations name them.

use alloc::format;
use alloc::string::{String, ToString};

use crate::bytes::{Reader, Writer};
use crate::error::ParseError;
use crate::ids::{NodeId, Rank};
use crate::operation::Collective;
use crate::ranks::RankList;

/// Names of a job's nodes and ranks, and of what they call.
pub trait Directory {
    /// An aggregation node, by its name in the topology: `leaf1`.
    fn node(&self, node: NodeId) -> String;

    /// A rank, with its host and process where they are known: `rank 3 on h3 (PID 4242)`.
    fn rank(&self, rank: Rank) -> String;

    /// A collective, by the name of the call with which the program asks for it: `allreduce`, or
    /// `MPI_Allreduce`.
    fn call(&self, collective: Collective) -> String {
        collective.to_string()
    }
}

/// A directory without a page: numbers. For the simulator, and for logs that speak of no job.
pub struct Numbers;

impl Directory for Numbers {
    fn node(&self, node: NodeId) -> String {
        node.to_string()
    }

    fn rank(&self, rank: Rank) -> String {
        format!("rank {}", rank.0)
    }
}

/// What its program calls a group, for people: a short text on one line. It never decides anything;
/// members may give different ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupName(String);

impl GroupName {
    /// Most bytes of a name.
    pub const MAX: usize = 63;

    /// The text, cut where it is too long. What moves a cursor is replaced.
    pub fn new(text: &str) -> GroupName {
        let mut kept = String::new();
        for c in text.chars() {
            let c = if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
            if kept.len() + c.len_utf8() > Self::MAX {
                break;
            }
            kept.push(c);
        }
        GroupName(kept)
    }

    /// The text; empty: it has no name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn wire_len(&self) -> usize {
        2 + self.0.len()
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.0.len() as u16);
        self.0.bytes().for_each(|byte| w.u8(byte));
    }

    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<GroupName, ParseError> {
        let len = usize::from(r.u16()?);
        if len > Self::MAX {
            return Err(ParseError::BadField("name"));
        }
        let mut bytes = [0; Self::MAX];
        for byte in &mut bytes[..len] {
            *byte = r.u8()?;
        }
        let text = core::str::from_utf8(&bytes[..len]).map_err(|_| ParseError::BadField("name"))?;
        Ok(GroupName::new(text))
    }
}

/// The name of the group of one rank of each host that a group of several hosts has:
/// `MPI_COMM_WORLD between hosts`.
pub fn between_hosts(name: &str) -> GroupName {
    derived(name, " between hosts", "one rank of each host")
}

/// The name of the groups in which ranks combine what their GPUs have, on a host, and then between
/// hosts: `MPI_COMM_WORLD between GPUs`.
pub fn between_devices(name: &str) -> GroupName {
    derived(name, " between GPUs", "ranks with GPUs")
}

fn derived(name: &str, suffix: &str, nameless: &str) -> GroupName {
    let end = (0..=name.len().min(GroupName::MAX - suffix.len())).rev().find(|end| name.is_char_boundary(*end));
    GroupName::new(&match &name[..end.unwrap_or(0)] {
        "" => String::from(nameless),
        name => format!("{name}{suffix}"),
    })
}

/// A group in words: `MPI_COMM_WORLD (ranks 0-3)`, or `group of ranks 0-3` if it has no name.
pub fn group_words(name: &str, members: &RankList) -> String {
    let list = members.to_string();
    let ranks = match members.len() {
        1 => format!("rank {list}"),
        count if list.len() > LIST_MAX => format!("{count} ranks"),
        _ => format!("ranks {list}"),
    };
    match name {
        "" => format!("group of {ranks}"),
        name => format!("{name} ({ranks})"),
    }
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(number: u64) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

/// A list of members that is longer is counted.
const LIST_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_numbers_are_said_as_people_say_them() {
        let world = RankList::world(4);
        assert_eq!(group_words("MPI_COMM_WORLD", &world), "MPI_COMM_WORLD (ranks 0-3)");
        assert_eq!(group_words("", &world), "group of ranks 0-3");
        assert_eq!(group_words("", &RankList::from_ranks([5])), "group of rank 5");
        let wild = RankList::from_ranks((0..200).map(|n| n * n));
        assert_eq!(group_words("c", &wild), "c (200 ranks)");
        let said = [1, 2, 3, 4, 11, 12, 13, 21, 112, 103].map(ordinal);
        assert_eq!(said.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 112th 103rd");
    }

    #[test]
    fn a_name_is_short_and_on_one_line() {
        assert_eq!(GroupName::new("a\u{1b}[2J\nb").as_str(), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(between_hosts("field").as_str(), "field between hosts");
        assert_eq!(between_hosts("").as_str(), "one rank of each host");
        assert_eq!(between_devices("field").as_str(), "field between GPUs");
        assert!(between_hosts(&"ä".repeat(31)).as_str().ends_with("ä between hosts"));
        let long = GroupName::new(&"ä".repeat(50));
        assert_eq!(long.as_str().len(), 62);
    }
}
