//! What a job's groups do between two looks: which move, and which stand still and at which
//! operation.

use std::collections::BTreeMap;

use trib_messages::explanation::{GroupPart, HostedPart, LatePart};
use trib_wire::directory::ordinal;

use super::naming::name;
use super::rates::{Pace, Rates};
use crate::commands::units::{bytes_per_second, number};
use crate::view::{Line, Tone};

/// A line for each group: first those that stand still, then those that move most. Of the groups
/// beyond a few, only the number is told.
pub(super) fn lines(parts: &[HostedPart], rates: &Rates<'_>) -> Vec<Line> {
    let mut groups: BTreeMap<(u64, String), Moving<'_>> = BTreeMap::new();
    for HostedPart { lane, part, .. } in parts {
        // A group's data go no further than the first node that folds them, and parents stand
        // before their children.
        for group in part.groups.iter().filter(|group| !group.relayed) {
            let moving = groups.entry((group.tag, group.members.to_string())).or_insert_with(|| Moving::new(group));
            moving.paces.entry(*lane).or_insert_with(|| rates.pace(part.node, group.tag, &group.members));
            let later = |late: &&LatePart| moving.at.is_none_or(|at| at.operation < late.operation);
            moving.at = group.late.iter().filter(later).max_by_key(|late| late.operation).or(moving.at);
        }
    }
    let mut groups: Vec<Moving<'_>> = groups.into_values().collect();
    groups.sort_by(|one, other| other.rank().total_cmp(&one.rank()));
    let mut lines: Vec<Line> = groups.iter().take(GROUPS_SHOWN).map(Moving::line).collect();
    if groups.len() > GROUPS_SHOWN {
        lines.push(Line::new(Tone::Faint, format!("({} more groups)", groups.len() - GROUPS_SHOWN)));
    }
    lines
}

struct Moving<'a> {
    group: &'a GroupPart,
    /// The pace on each lane, as far as it is known.
    paces: BTreeMap<u32, Option<Pace>>,
    /// The last operation that some ranks have come to and others have not.
    at: Option<&'a LatePart>,
}

impl<'a> Moving<'a> {
    fn new(group: &'a GroupPart) -> Moving<'a> {
        Moving { group, paces: BTreeMap::new(), at: None }
    }

    /// The pace over all lanes, if that of each is known.
    fn pace(&self) -> Option<Pace> {
        let none = Pace { folds: 0.0, bytes: 0.0 };
        let add = |sum: Pace, more: Pace| Pace { folds: sum.folds + more.folds, bytes: sum.bytes + more.bytes };
        self.paces.values().try_fold(none, |sum, pace| pace.map(|pace| add(sum, pace)))
    }

    fn rank(&self) -> f64 {
        match self.pace() {
            Some(pace) if pace.folds == 0.0 && self.at.is_some() => f64::INFINITY,
            Some(pace) => pace.bytes,
            None => -1.0,
        }
    }

    fn line(&self) -> Line {
        let at = self.at.map(|late| {
            let what = if late.what.is_empty() { String::new() } else { format!(", {}", late.what) };
            format!("at its {} operation{what}", ordinal(late.operation))
        });
        let name = name(self.group);
        match (self.pace(), at) {
            (None, None) => Line::new(Tone::Faint, format!("not known yet: {name}")),
            (None, Some(at)) => Line::new(Tone::Plain, format!("not known yet: {name}, {at}")),
            (Some(pace), None) if pace.folds == 0.0 && self.group.board => {
                Line::new(Tone::Faint, format!("in the memory of its host: {name}"))
            }
            (Some(pace), None) if pace.folds == 0.0 => Line::new(Tone::Faint, format!("rests: {name}")),
            (Some(pace), Some(at)) if pace.folds == 0.0 => {
                Line::new(Tone::Alarm, "stands still: ").and(Tone::Plain, format!("{name}, {at}"))
            }
            (Some(Pace { folds, bytes }), at) => {
                let at = at.map_or_else(String::new, |at| format!(", {at}"));
                let pace = format!("{} folds/s, {}", number(folds), bytes_per_second(bytes));
                Line::new(Tone::Strong, "moves: ").and(Tone::Plain, format!("{name}, {pace}{at}"))
            }
        }
    }
}

const GROUPS_SHOWN: usize = 4;
