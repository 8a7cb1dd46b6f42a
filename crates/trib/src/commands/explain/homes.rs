//! How a job went on when its nodes died: which of them have moved, where they are, and who found
//! what when.

use trib_control::clock::span;
use trib_messages::explanation::Explanation;
use trib_messages::recovery::{Dwelling, EpochCause, EpochPart, EpochTold, Replayed};
use trib_wire::Directory as _;

use super::naming::Naming;
use crate::commands::units;
use crate::view::{Line, Tone};

/// Where the nodes are that have moved, in one line; and a line for each of the last epochs.
pub(super) fn lines(explanation: &Explanation, naming: &Naming, now_ms: u64) -> Vec<Line> {
    let moved = explanation.homes.iter().filter(|home| home.moves > 0);
    let homes: Vec<String> = moved.map(whereabouts).collect();
    if homes.is_empty() {
        return Vec::new();
    }
    let found =
        epochs(explanation).into_iter().map(|told| Line::new(Tone::Plain, epoch(told, explanation, naming, now_ms)));
    std::iter::once(Line::new(Tone::Warning, format!("{}.", homes.join("; ")))).chain(found).collect()
}

/// `leaf0 is at rank 3 on h2 after 2 moves`.
pub(in crate::commands) fn whereabouts(home: &Dwelling) -> String {
    let moves = if home.moves == 1 { "move" } else { "moves" };
    format!("{} is at {} after {} {moves}", home.name, home.at, home.moves)
}

/// Of each epoch what says most: those that found a node gone know more than those that were told.
/// The list is sorted by lane, epoch and time.
fn epochs(explanation: &Explanation) -> Vec<&EpochTold> {
    let mut each: Vec<&EpochTold> = Vec::new();
    for told in &explanation.epochs {
        let same = |other: &&EpochTold| (other.epoch.lane, other.epoch.moves) == (told.epoch.lane, told.epoch.moves);
        match each.last_mut().filter(|last| same(last)) {
            Some(last) if last.epoch.cause == EpochCause::Told => *last = told,
            Some(_) => {}
            None => each.push(told),
        }
    }
    each
}

fn epoch(told: &EpochTold, explanation: &Explanation, naming: &Naming, now_ms: u64) -> String {
    let EpochTold { by, epoch } = told;
    let why = match epoch.cause {
        EpochCause::Lost { node } => format!("{by} lost {}", naming.node(node)),
        EpochCause::Unreached { node } => format!("{by} did not reach {}", naming.node(node)),
        EpochCause::Told => {
            let moved: Vec<String> = epoch.moved.iter().map(|node| naming.node(*node)).collect();
            format!("{by} was told that {} moved", moved.join(", "))
        }
    };
    let lane = if explanation.job.lanes.len() > 1 { format!(" of lane {}", epoch.lane) } else { String::new() };
    let here = explanation.parts.iter().filter(|hosted| hosted.lane == epoch.lane);
    let now = here.filter(|hosted| hosted.part.epoch() == epoch.moves);
    let first_fold = now.filter_map(|hosted| hosted.part.first_fold_ms).max();
    let stood = first_fold.map(|ms| format!("folded again after {}", span(ms)));
    let replayed = Some(replayed(epoch, explanation)).filter(|replayed| !replayed.is_none());
    let became: Vec<String> = stood.into_iter().chain(replayed.map(again)).collect();
    let became = if became.is_empty() { String::new() } else { format!("; it {}", became.join(" and ")) };
    format!("epoch {}{lane}, {} ago: {why}{became}", epoch.moves + 1, span(now_ms.saturating_sub(epoch.at_ms)))
}

/// What was replayed in an epoch, by all that tell of it.
fn replayed(epoch: &EpochPart, explanation: &Explanation) -> Replayed {
    let of_all = explanation.epochs.iter().map(|told| &told.epoch);
    let same = of_all.filter(|other| (other.lane, other.moves) == (epoch.lane, epoch.moves));
    same.fold(Replayed::default(), |mut sum, other| {
        sum += other.replayed;
        sum
    })
}

/// `replayed 12 fragments and 1 segment (48 kB)`.
fn again(replayed: Replayed) -> String {
    let Replayed { fragments, segments, bytes } = replayed;
    let of = |count: u64, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        more => Some(format!("{more} {what}s")),
    };
    let pieces: Vec<String> = [of(fragments, "fragment"), of(segments, "segment")].into_iter().flatten().collect();
    format!("replayed {} ({})", pieces.join(" and "), units::bytes(bytes as f64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_that_have_moved_are_told_with_their_homes_and_each_epoch_with_its_cause_and_what_was_replayed() {
        let told = |moves: u64, by: &str, cause: serde_json::Value| json!({"by": by, "lane": 0, "moves": moves, "moved": [1], "cause": cause, "at_ms": 10_000 + moves});
        let replaying = |mut told: serde_json::Value, fragments: u64, segments: u64, bytes: u64| {
            told["replayed"] = json!({"fragments": fragments, "segments": segments, "bytes": bytes});
            told
        };
        let text = |homes: serde_json::Value, epochs: serde_json::Value| {
            let job = json!({"id": 1, "name": "p", "user": "u", "ranks": 2, "nodes": ["root", "leaf0", "leaf1"], "homes": [0, 1, 2],
                "since": 0, "lanes": [{"tree": 0, "root": "root", "first": 0, "nodes": 3, "weight": 1}]});
            let part = json!({"at": "rank 1 on h1", "lane": 0, "part": {"node": 1, "parent": 0, "children": [], "groups_alive": 0,
                "buffers_held": 0, "payload_bytes_folded": 0, "moves": [[1, 2]], "first_fold_ms": 43, "contexts": null, "groups": []}});
            let text = json!({"job": job, "parts": [part], "silent": [], "homes": homes, "epochs": epochs});
            let explanation: Explanation = serde_json::from_value(text).unwrap();
            let lines = lines(&explanation, &Naming::of(&explanation), 12_002);
            lines.iter().map(|line| line.to_string()).collect::<Vec<_>>()
        };
        let home = |node: u16, name: &str, at: &str, moves: u16| json!({"node": node, "name": name, "lane": 0, "at": at, "moves": moves});
        assert!(text(json!([home(0, "root", "root", 0)]), json!([])).is_empty());
        let homes =
            json!([home(0, "root", "root", 0), home(1, "leaf0", "rank 1 on h1", 2), home(2, "leaf1", "root", 1)]);
        let epochs = json!([
            replaying(told(1, "root", json!("told")), 1, 0, 8),
            told(2, "leaf1", json!("told")),
            replaying(told(2, "root", json!({"lost": {"node": 1}})), 11, 0, 700),
            replaying(told(2, "leaf1", json!("told")), 1, 3, 48_000)
        ]);
        assert_eq!(
            text(homes, epochs),
            [
                "leaf0 is at rank 1 on h1 after 2 moves; leaf1 is at root after 1 move.",
                "epoch 2, 2 s ago: root was told that leaf0 moved; it replayed 1 fragment (8.0 B)",
                "epoch 3, 2 s ago: root lost leaf0; it folded again after 43 ms and replayed 12 fragments and 3 segments (49 kB)"
            ]
        );
    }
}
