//! Groups of one tag: their trees, what they have folded, which ranks are late, and
//! their right to stream.

use std::fmt::Write as _;

use trib_control::clock::span;
use trib_messages::explanation::{ContextsPart, Explanation, FoldsPart, GroupPart, HostedPart, NodePart};
use trib_wire::Directory as _;
use trib_wire::RankList;
use trib_wire::directory::{between_hosts, group_words};

use super::naming::{Naming, listed, name, stream_cell};
use super::{endings, head, lates};
use crate::table::Table;

/// All groups of the job with this tag, one after the other: ranks may have made several with the
/// same tag.
pub(super) fn text(explanation: &Explanation, tag: u64, now_ms: u64) -> String {
    let Explanation { job, parts, silent, .. } = explanation;
    let naming = Naming::of(explanation);
    let mut text = head(job, now_ms);
    let mut groups: Vec<&RankList> = Vec::new();
    for group in parts.iter().flat_map(|hosted| &hosted.part.groups) {
        if !groups.contains(&&group.members) {
            groups.push(&group.members);
        }
    }
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").expect("writing to memory cannot fail");
    for members in groups {
        let own = of_group(parts, members);
        let called = own.iter().flat_map(|hosted| &hosted.part.groups).map(|group| group.name.as_str());
        let called = called.max().unwrap_or_default();
        line(format_args!("\n{}, tag {tag}\n", capital(&group_words(called, members))));
        line(format_args!("{}", table(&own, &naming, job.lanes.len() > 1)));
        if own.iter().flat_map(|hosted| &hosted.part.groups).any(|group| group.board) {
            let between = between_hosts(called);
            let between = between.as_str();
            let is_wide = parts.iter().flat_map(|hosted| &hosted.part.groups).any(|group| group.name == between);
            if is_wide {
                line(format_args!(
                    "It works in the memory of its hosts, whose ranks say who is late. One rank of each is in \"{between}\", which does the rest; nodes see no more of this group than what founded that, and allgathers and reduce-scatters of middling length."
                ));
            } else {
                line(format_args!(
                    "It works in the memory of its host: nodes have folded what founded that and nothing since, and its ranks say who is late."
                ));
            }
        }
        let causes = causes(&own, &naming);
        for cause in &causes {
            line(format_args!("{cause}"));
        }
        if causes.is_empty() && silent.is_empty() {
            line(format_args!("It waits for nothing: no rank has begun an operation of it that others have not."));
        }
    }
    for name in silent {
        line(format_args!("node {name} does not answer: what is there is not shown; see its log, or `trib doctor`"));
    }
    text
}

fn capital(words: &str) -> String {
    words.strip_prefix("group of ").map_or_else(|| words.to_owned(), |rest| format!("Group of {rest}"))
}

/// The nodes on which the group of these members is, each with this group only.
fn of_group(parts: &[HostedPart], members: &RankList) -> Vec<HostedPart> {
    let mut own = parts.to_vec();
    own.iter_mut().for_each(|hosted| hosted.part.groups.retain(|group| group.members == *members));
    own.retain(|hosted| !hosted.part.groups.is_empty());
    own
}

fn table(parts: &[HostedPart], naming: &Naming, has_lanes: bool) -> Table {
    let mut heads = vec!["NODE", "PARENT", "DOES", "STREAM", "FOLDS", "BYTES", "APART", "LATE"];
    if has_lanes {
        heads.insert(1, "LANE");
    }
    let mut table = Table::new(heads);
    for HostedPart { lane, part, .. } in parts {
        for group in &part.groups {
            let FoldsPart { count, bytes, gathering_us } = folds(group);
            let apart = gathering_us.checked_div(count).map_or_else(|| "-".to_owned(), |us| format!("{us} us"));
            let mut row = vec![
                naming.node(part.node),
                part.parent.map_or_else(|| "-".to_owned(), |parent| naming.node(parent)),
                does(group).to_owned(),
                stream_cell(group),
                count.to_string(),
                bytes.to_string(),
                apart,
                naming.late_cell(group),
            ];
            if has_lanes {
                row.insert(1, lane.to_string());
            }
            table.row(row);
        }
    }
    table
}

/// What the node does for the group.
fn does(group: &GroupPart) -> &'static str {
    match group {
        GroupPart { relayed: true, .. } => "passes on",
        GroupPart { board: true, .. } => "nothing",
        _ => "folds",
    }
}

/// What the group has folded at this node on both paths together.
fn folds(group: &GroupPart) -> FoldsPart {
    let GroupPart { datagrams, streams, .. } = group;
    FoldsPart {
        count: datagrams.count + streams.count,
        bytes: datagrams.bytes + streams.bytes,
        gathering_us: datagrams.gathering_us + streams.gathering_us,
    }
}

/// What the group has and what it waits for, a sentence each.
fn causes(parts: &[HostedPart], naming: &Naming) -> Vec<String> {
    let of_node = |hosted: &HostedPart| {
        let HostedPart { at, part, .. } = hosted;
        let locks =
            part.contexts.iter().flat_map(|contexts| part.groups.iter().filter_map(|g| lock(at, part, g, contexts)));
        [lates(at, part, parts, naming, &|_, _| true), locks.collect(), endings(at, part)].concat()
    };
    parts.iter().flat_map(of_node).collect()
}

/// Whether the group holds a stream context or stands in line for one, at the node that grants it.
fn lock(at: &str, part: &NodePart, group: &GroupPart, contexts: &ContextsPart) -> Option<String> {
    let ContextsPart { capacity, held, line, held_ms, line_ms, held_tags, .. } = contexts;
    let age = |ages: &[u64], at: usize| ages.get(at).map_or_else(String::new, |ms| format!(" for {}", span(*ms)));
    if let Some(position) = held.iter().position(|index| *index == group.index) {
        let age = age(held_ms, position);
        let waiting = line.len();
        return Some(format!("{at}: {} holds one of {capacity} stream contexts{age}; {waiting} in line", name(group)));
    }
    let position = line.iter().position(|index| *index == group.index)?;
    Some(format!(
        "{at}: {} is number {} in line{} for one of {capacity} stream contexts, held by {} (more at once: TRIB_QUOTA=streams=N)",
        name(group),
        position + 1,
        age(line_ms, position),
        listed(part, held, held_tags, held_ms)
    ))
}

#[cfg(test)]
mod tests {
    use trib_messages::explanation::{LatePart, LeaseState};
    use trib_messages::recovery::Replayed;
    use trib_wire::ids::{ChildIndex, NodeId, Rank};

    use super::*;

    fn group(index: u32, ranks: u32, relayed: bool) -> GroupPart {
        GroupPart {
            index,
            tag: 42,
            name: String::new(),
            members: RankList::world(ranks),
            lease: LeaseState::None,
            relayed,
            board: false,
            datagrams: FoldsPart { count: 3, bytes: 30, gathering_us: 90 },
            streams: FoldsPart { count: 1, bytes: 70, gathering_us: 30 },
            late: Vec::new(),
        }
    }

    fn hosted(at: &str, node: u16, lane: u32, groups: Vec<GroupPart>) -> HostedPart {
        let part = NodePart {
            node: NodeId(node),
            parent: None,
            children: Vec::new(),
            groups_alive: 1,
            buffers_held: 0,
            payload_bytes_folded: 0,
            moves: Vec::new(),
            first_fold_ms: None,
            replayed: Replayed::default(),
            contexts: None,
            groups,
        };
        HostedPart { at: at.into(), lane, part, traffic: None, ways: Vec::new() }
    }

    fn explained(parts: Vec<HostedPart>) -> String {
        let job = serde_json::json!({ "id": 7, "name": "p", "user": "u", "ranks": 4, "nodes": [], "since": 0 });
        let job = serde_json::from_value(job).unwrap();
        text(
            &Explanation {
                job,
                parts,
                silent: Vec::new(),
                processes: Vec::new(),
                homes: Vec::new(),
                epochs: Vec::new(),
            },
            42,
            1_000,
        )
    }

    #[test]
    fn groups_of_one_tag_are_told_apart_by_their_members() {
        let spine = hosted("spine", 0, 0, vec![group(5, 4, false), group(6, 2, true)]);
        let leaf = hosted("leaf0", 1, 0, vec![group(0, 4, false), group(1, 2, false)]);
        let told = explained(vec![spine, leaf]);
        let sections: Vec<&str> = told.split("\nGroup of ranks ").skip(1).collect();
        assert_eq!(sections.len(), 2, "{told}");
        assert!(sections[0].starts_with("0-3, tag 42\n") && !sections[0].contains("passes on"), "{told}");
        assert!(sections[1].starts_with("0-1, tag 42\n") && sections[1].contains("passes on"), "{told}");
        for word in [" 4 ", " 100 ", "30 us", "It waits for nothing"] {
            assert!(sections.iter().all(|section| section.contains(word)), "{word} is missing in {told}");
        }
    }

    #[test]
    fn a_group_that_works_in_the_memory_of_its_host_is_told_as_one() {
        let board = GroupPart { board: true, ..group(0, 4, false) };
        let told = explained(vec![hosted("rank 0 on h0", 0, 0, vec![board])]);
        assert!(told.contains("It works in the memory of its host"), "{told}");
        assert!(told.contains("nothing") && told.contains("host memory") && !told.contains("folds   "), "{told}");
        let told = explained(vec![hosted("leaf0", 0, 0, vec![group(0, 4, false)])]);
        assert!(!told.contains("memory"), "{told}");
        let own = GroupPart { board: true, name: "field".into(), ..group(0, 4, false) };
        let heads = GroupPart { name: between_hosts("field").as_str().into(), ..group(1, 2, false) };
        let told = explained(vec![hosted("rank 0 on h0", 0, 0, vec![own, heads])]);
        assert!(told.contains("memory of its hosts") && told.contains("\"field between hosts\""), "{told}");
    }

    #[test]
    fn the_group_is_found_among_those_that_stream_and_those_in_line() {
        let contexts = |held: u32, line: u32| ContextsPart {
            capacity: 1,
            held: vec![held],
            line: vec![9, line],
            held_ms: vec![7_000],
            line_ms: vec![65_000, 300],
            held_tags: vec![11],
            line_tags: vec![12, 42],
        };
        let mut spine = hosted("spine", 0, 0, vec![group(5, 4, false)]);
        spine.part.contexts = Some(contexts(5, 1));
        let holds = explained(vec![spine.clone()]);
        assert!(
            holds.contains("spine: the group of ranks 0-3 (tag 42) holds one of 1 stream contexts for 7 s; 2 in line"),
            "{holds}"
        );
        spine.part.contexts = Some(contexts(1, 5));
        spine.part.groups[0].late = vec![LatePart {
            child: ChildIndex(1),
            rank: Rank(3),
            ranks: 1,
            operation: 57,
            streamed: false,
            what: String::new(),
            waited_ms: None,
        }];
        let waits = explained(vec![spine]);
        let line =
            "is number 2 in line for 300 ms for one of 1 stream contexts, held by a group with the tag 11 for 7 s";
        assert!(waits.contains(line) && waits.contains("waits for rank 3 to come to its 57th operation"), "{waits}");
    }
}
