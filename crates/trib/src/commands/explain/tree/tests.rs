use trib_messages::explanation::{CarriedPart, Explanation, FoldsPart, GroupPart, LeaseState, TrafficPart};
use trib_messages::recovery::Replayed;
use trib_wire::ids::Rank;

use super::*;

/// A root with two leaves of two hosts each; the links of leaf1's hosts have no known rate.
fn explanation(at_us: u64, bytes: u64, late: &[(u32, u64)]) -> Explanation {
    let job = serde_json::json!({ "id": 7, "name": "p", "user": "u", "ranks": 5, "nodes": [], "since": 0 });
    let late_part = |rank: u32, child, waited_ms| LatePart {
        child: ChildIndex(child),
        rank: Rank(rank),
        ranks: 1,
        operation: 57,
        streamed: false,
        what: "barrier".into(),
        waited_ms: Some(waited_ms),
    };
    let group = |first: u32, count: u32| GroupPart {
        index: 0,
        tag: 1,
        name: String::new(),
        members: RankList::world(5),
        lease: LeaseState::None,
        relayed: false,
        board: false,
        datagrams: FoldsPart { count: bytes / 10, bytes, gathering_us: 0 },
        streams: FoldsPart::default(),
        late: late
            .iter()
            .filter(|(rank, _)| (first..first + count).contains(rank))
            .map(|(rank, ms)| late_part(*rank, (rank - first) as u16, *ms))
            .collect(),
    };
    let child = |kind, ranks: std::ops::Range<u32>| ChildPart {
        kind,
        ranks: RankList::from_ranks(ranks),
        connected: true,
        bytes_in: 0,
        bytes_out: 0,
        queued_bytes: 0,
        apart: false,
        protection: None,
    };
    let rank = |rank: u32| child(ChildKind::Rank(Rank(rank)), rank..rank + 1);
    let way = |children: &[u16], host: Option<&str>, bits_per_second| WayPart {
        children: children.iter().copied().map(ChildIndex).collect(),
        host: host.map(str::to_owned),
        bits_per_second,
    };
    let hosted = |at: &str, node: u16, children: Vec<ChildPart>, ways, groups| HostedPart {
        at: at.into(),
        lane: 0,
        traffic: Some(TrafficPart {
            node: NodeId(node),
            at_us,
            children: vec![Some(CarriedPart { bytes_in: bytes, bytes_out: bytes / 2 }); children.len()],
        }),
        ways,
        part: NodePart {
            node: NodeId(node),
            parent: (node > 0).then_some(NodeId(0)),
            children,
            groups_alive: 1,
            buffers_held: 0,
            payload_bytes_folded: 0,
            moves: Vec::new(),
            first_fold_ms: None,
            replayed: Replayed::default(),
            contexts: None,
            groups,
        },
    };
    let (leaf0, leaf1) = (child(ChildKind::Node(NodeId(1)), 0..3), child(ChildKind::Node(NodeId(2)), 3..5));
    let root_ways = vec![way(&[0], None, Some(1_000_000_000)), way(&[1], None, None)];
    let leaf0_ways = vec![way(&[0, 1], Some("h0"), Some(1_000_000_000)), way(&[2], Some("h1"), Some(1_000_000_000))];
    let leaf1_ways = vec![way(&[0], Some("h2"), None), way(&[1], Some("h3"), None)];
    Explanation {
        job: serde_json::from_value(job).unwrap(),
        parts: vec![
            hosted("root", 0, vec![leaf0, leaf1], root_ways, vec![group(99, 0)]),
            hosted("leaf0", 1, vec![rank(0), rank(1), rank(2)], leaf0_ways, vec![group(0, 3)]),
            hosted("leaf1", 2, vec![rank(3), rank(4)], leaf1_ways, vec![group(3, 2)]),
        ],
        silent: Vec::new(),
        processes: Vec::new(),
        homes: Vec::new(),
        epochs: Vec::new(),
    }
}

fn drawing(before: Option<&Explanation>, now: &Explanation, canvas: Canvas) -> String {
    let rates = before.map_or_else(Rates::default, |before| Rates::between(before, now));
    let lane: Vec<&HostedPart> = now.parts.iter().collect();
    let lines = lines(&lane, &now.parts, &Naming::of(now), &rates, canvas);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn what_is_not_known_is_not_said_to_be_nothing() {
    let expected = "\
NODE, RANKS              STATE        UP      DOWN
root
  leaf0                                -         -
    ranks 0-2 on h[0-1]                -         -
  leaf1                                -         -
    ranks 3-4 on h[2-3]                -         -
";
    assert_eq!(drawing(None, &explanation(0, 0, &[]), Canvas::Pipe), expected);
    // A node that was started again counts by another clock.
    let (later, earlier) = (explanation(5_000_000, 9, &[]), explanation(3_000_000, 0, &[]));
    assert_eq!(drawing(Some(&later), &earlier, Canvas::Pipe), expected);
    let mut other = later.clone();
    other.job.id.0 += 1;
    assert_eq!(drawing(Some(&other), &later, Canvas::Pipe), expected);
    // A node of another version says nothing of its links.
    let mut silent = later.clone();
    silent.parts.iter_mut().for_each(|part| part.traffic = None);
    assert_eq!(drawing(Some(&silent), &later, Canvas::Pipe), expected);
}

#[test]
fn the_ranks_of_a_host_share_its_link_and_who_is_late_has_a_line() {
    let (before, now) = (explanation(1_000_000, 0, &[]), explanation(3_000_000, 62_500_000, &[(1, 12_000), (4, 200)]));
    let expected = "\
NODE, RANKS              STATE                         UP            DOWN
root
  leaf0                                     31 MB/s  25 %   16 MB/s  12 %
    ranks 0-1 on h0      rank 1 12 s late   62 MB/s  50 %   31 MB/s  25 %
    rank 2 on h1                            31 MB/s  25 %   16 MB/s  12 %
  leaf1                                     31 MB/s     -   16 MB/s     -
    ranks 3-4 on h[2-3]                     31 MB/s     -   16 MB/s     -
";
    assert_eq!(drawing(Some(&before), &now, Canvas::Pipe), expected);
}

#[test]
fn a_rank_that_only_a_node_further_up_knows_to_be_late_has_its_name_beside_the_node_below() {
    let mut now = explanation(0, 0, &[(3, 700)]);
    let late = now.parts[2].part.groups[0].late.remove(0);
    now.parts[0].part.groups[0].late.push(LatePart { child: ChildIndex(1), ..late });
    let drawn = drawing(None, &now, Canvas::Pipe);
    assert!(drawn.contains("  leaf1                  rank 3 700 ms late  "), "{drawn}");
}

#[test]
fn a_terminal_has_branches_and_bars_as_wide_as_it_is() {
    let (before, now) = (explanation(1_000_000, 0, &[]), explanation(3_000_000, 62_500_000, &[(1, 12_000)]));
    let wide = drawing(Some(&before), &now, Canvas::Terminal { columns: 120 });
    assert!(
        wide.contains("\u{251c}\u{2500} leaf0 ") && wide.contains("\u{2502}  \u{2514}\u{2500} rank 2 on h1 "),
        "{wide}"
    );
    assert!(
        wide.contains("\n\u{2514}\u{2500} leaf1 ") && wide.contains("\n   \u{2514}\u{2500} ranks 3-4 on h[2-3]"),
        "{wide}"
    );
    let half = format!("50 % {}{}\u{2595}", "\u{2588}".repeat(10), " ".repeat(10));
    assert!(wide.contains(&half), "{wide}");
    for columns in [0, 20, 40, 60, 80, 100, 120, 200] {
        let drawn = drawing(Some(&before), &now, Canvas::Terminal { columns });
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        // Below 70 columns only the name is shortened.
        assert!(columns < 70 || widest <= columns, "{columns}: {widest}\n{drawn}");
    }
}

#[test]
fn a_node_that_does_not_answer_and_a_rank_that_is_gone_are_told() {
    let mut now = explanation(0, 0, &[]);
    now.parts.retain(|part| part.at != "leaf1");
    now.parts[1].part.children[2].connected = false;
    let drawn = drawing(None, &now, Canvas::Pipe);
    assert!(drawn.contains("\n  a node with ranks 3-4  does not answer"), "{drawn}");
    assert!(drawn.contains("\n    rank 2 on h1         not connected"), "{drawn}");
    // If a root does not answer, the nodes below it are still drawn.
    now.parts.remove(0);
    assert!(drawing(None, &now, Canvas::Pipe).contains("\nleaf0\n  ranks 0-1 on h0"));
}

#[test]
fn a_rank_that_shares_no_memory_with_its_host_is_told() {
    let mut now = explanation(0, 0, &[]);
    now.parts[1].part.children[2].apart = true;
    let drawn = drawing(None, &now, Canvas::Pipe);
    assert!(drawn.contains("\n    rank 2 on h1         no shared memory"), "{drawn}");
}

#[test]
fn nodes_that_say_they_are_below_each_other_have_an_end() {
    let mut now = explanation(0, 0, &[]);
    now.parts[1].part.children[0].kind = ChildKind::Node(NodeId(0));
    assert!(drawing(None, &now, Canvas::Pipe).lines().count() < 10);
}

#[test]
fn the_drawing_in_the_documents_is_what_is_drawn() {
    let (mut before, mut now) = (explanation(1_000_000, 0, &[]), explanation(3_000_000, 16_384, &[(4, 12_000)]));
    for (at, (explanation, carried)) in [(&mut before, 0), (&mut now, 81_920_000)].into_iter().enumerate() {
        let [root, leaf0, leaf1] = &mut explanation.parts[..] else { panic!("there are three") };
        root.part.groups.clear();
        for (leaf, name, tag, members) in [(leaf0, "rows", 1, 0..3), (leaf1, "columns", 2, 3..5)] {
            let group = &mut leaf.part.groups[0];
            (group.name, group.tag, group.members) = (name.into(), tag, RankList::from_ranks(members));
            group.datagrams = FoldsPart::default();
            let is_moving = tag == 1;
            group.streams = FoldsPart {
                count: if is_moving { 2_500 * at as u64 } else { 9 },
                bytes: if is_moving { carried } else { 9 },
                gathering_us: 0,
            };
            for child in leaf.traffic.iter_mut().flat_map(|traffic| &mut traffic.children).filter(|_| is_moving) {
                *child = Some(CarriedPart { bytes_in: carried, bytes_out: carried });
            }
            leaf.ways.iter_mut().for_each(|way| way.bits_per_second = Some(1_000_000_000));
        }
        root.ways.iter_mut().for_each(|way| way.bits_per_second = Some(10_000_000_000));
    }
    let rates = Rates::between(&before, &now);
    let moves = super::super::moves::lines(&now.parts, &rates);
    let drawn = drawing(Some(&before), &now, Canvas::Terminal { columns: 80 });
    let moves: String = moves.iter().map(|line| format!("{line}\n")).collect();
    let indented: String =
        format!("{drawn}\n{moves}").lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/jobs.md");
    let text = std::fs::read_to_string(document).unwrap();
    assert!(text.contains(&indented), "docs/jobs.md should have\n{indented}");
}

#[test]
fn what_stands_still_is_told_before_what_moves() {
    let said = |before: &Explanation, now: &Explanation| {
        let rates = Rates::between(before, now);
        super::super::moves::lines(&now.parts, &rates).iter().map(Line::to_string).collect::<Vec<_>>()
    };
    let (before, now) = (explanation(1_000_000, 100, &[]), explanation(3_000_000, 100, &[(3, 2_000)]));
    assert_eq!(said(&before, &now), ["stands still: the group of ranks 0-4 (tag 1), at its 57th operation, barrier"]);
    assert_eq!(said(&before, &explanation(3_000_000, 100, &[])), ["rests: the group of ranks 0-4 (tag 1)"]);
    assert_eq!(said(&now, &before), ["not known yet: the group of ranks 0-4 (tag 1)"]);
    let mut many = explanation(3_000_000, 900, &[]);
    let mut slow = many.parts[0].part.groups[0].clone();
    for tag in 2..7 {
        slow.tag = tag;
        many.parts[0].part.groups.push(slow.clone());
    }
    let mut earlier = many.clone();
    earlier.parts[0].traffic.as_mut().unwrap().at_us = 1_000_000;
    earlier.parts[0].part.groups[5].datagrams.bytes -= 800;
    earlier.parts[0].part.groups[5].datagrams.count -= 8;
    let lines = said(&earlier, &many);
    assert_eq!(lines[0], "moves: the group of ranks 0-4 (tag 6), 4.0 folds/s, 400 B/s");
    assert_eq!((lines.len(), lines[4].as_str()), (5, "(2 more groups)"));
}
