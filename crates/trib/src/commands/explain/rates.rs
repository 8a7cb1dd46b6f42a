//! What happened between two explanations of a job: bytes per second over each link, and folds per
//! second of each group.
//!
//! Every node says by its own clock when it was asked, so the time that other things take is in no
//! rate. If one of the two explanations does not tell a count, or if the count began anew between
//! them, the rate is unknown, which is not the same as 0.

use std::collections::BTreeMap;

use trib_messages::explanation::{Explanation, FoldsPart, GroupPart, HostedPart, LatePart, TrafficPart};
use trib_wire::RankList;
use trib_wire::ids::NodeId;

/// Bytes per second of a link, in each direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LinkRates {
    pub(super) up: f64,
    pub(super) down: f64,
}

/// What a group folds per second at one node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Pace {
    pub(super) folds: f64,
    pub(super) bytes: f64,
}

/// All that is known of the time between two explanations.
#[derive(Default)]
pub(super) struct Rates<'a> {
    nodes: BTreeMap<NodeId, Span<'a>>,
}

struct Span<'a> {
    seconds: f64,
    before: &'a HostedPart,
    after: &'a HostedPart,
}

impl<'a> Rates<'a> {
    /// The rates between these two explanations. Nothing is known if they are of different jobs.
    pub(super) fn between(before: &'a Explanation, after: &'a Explanation) -> Rates<'a> {
        if before.job.id != after.job.id {
            return Rates::default();
        }
        let before: BTreeMap<NodeId, &HostedPart> = before.parts.iter().map(|part| (part.part.node, part)).collect();
        let span = |after: &'a HostedPart| {
            let node = after.part.node;
            let before = *before.get(&node).filter(|before| before.at == after.at)?;
            let us = after.traffic.as_ref()?.at_us.checked_sub(before.traffic.as_ref()?.at_us)?;
            (us > 0).then(|| (node, Span { seconds: us as f64 / 1e6, before, after }))
        };
        Rates { nodes: after.parts.iter().filter_map(span).collect() }
    }

    /// The rates of the link to one child of a node.
    pub(super) fn link(&self, node: NodeId, child: usize) -> Option<LinkRates> {
        let Span { seconds, before, after } = self.nodes.get(&node)?;
        let of = |part: &HostedPart| {
            let TrafficPart { children, .. } = part.traffic.as_ref()?;
            *children.get(child)?
        };
        let (before, after) = (of(before)?, of(after)?);
        let rate = |before: u64, after: u64| after.checked_sub(before).map(|bytes| bytes as f64 / seconds);
        Some(LinkRates { up: rate(before.bytes_in, after.bytes_in)?, down: rate(before.bytes_out, after.bytes_out)? })
    }

    /// The pace of a group at a node.
    pub(super) fn pace(&self, node: NodeId, tag: u64, members: &RankList) -> Option<Pace> {
        let Span { seconds, .. } = self.nodes.get(&node)?;
        let [before, after] = self.group(node, tag, members)?;
        let of = |group: &GroupPart| [group.datagrams, group.streams];
        let mut pace = Pace { folds: 0.0, bytes: 0.0 };
        for (before, after) in of(before).into_iter().zip(of(after)) {
            let more = |of: fn(&FoldsPart) -> u64| of(&after).checked_sub(of(&before));
            pace.folds += more(|folds| folds.count)? as f64 / seconds;
            pace.bytes += more(|folds| folds.bytes)? as f64 / seconds;
        }
        Some(pace)
    }

    /// Whether a child is late for longer than some child always is. If it is not known for how
    /// long, it must have been late at the same operation before.
    pub(super) fn is_noticed(&self, node: NodeId, group: &GroupPart, late: &LatePart) -> bool {
        late.waited_ms.map_or_else(|| self.was_late(node, group, late), |ms| ms >= NOTICED_MS)
    }

    fn was_late(&self, node: NodeId, group: &GroupPart, late: &LatePart) -> bool {
        let same = |other: &LatePart| (other.child, other.operation) == (late.child, late.operation);
        self.group(node, group.tag, &group.members).is_some_and(|[before, _]| before.late.iter().any(same))
    }

    fn group(&self, node: NodeId, tag: u64, members: &RankList) -> Option<[&'a GroupPart; 2]> {
        let Span { before, after, .. } = self.nodes.get(&node)?;
        let find = |part: &'a HostedPart| {
            let mut same = part.part.groups.iter().filter(|group| group.tag == tag && group.members == *members);
            same.next()
        };
        let [before, after] = [find(before)?, find(after)?];
        // Another group that was made with the same tag has another index, and its counts began
        // anew.
        (before.index == after.index).then_some([before, after])
    }
}

const NOTICED_MS: u64 = 500;
