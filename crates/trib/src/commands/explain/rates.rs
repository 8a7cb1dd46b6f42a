//! What happened between two explanations of a job: bytes a second over each link, folds a second
//! of each group.
//!
//! Every node says by its own clock when it was asked, so that nothing else that takes time is in a
//! rate. What one of the two does not say, or what began anew in between, is not known, which is
//! not the same as nothing.

use std::collections::BTreeMap;

use trib_wire::RankList;
use trib_wire::control::explanation::{Explanation, FoldsPart, GroupPart, HostedPart, LatePart, TrafficPart};
use trib_wire::ids::NodeId;

/// Bytes a second of a link, each way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LinkRates {
    pub(super) up: f64,
    pub(super) down: f64,
}

/// What a group folds in a second, at one node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Pace {
    pub(super) folds: f64,
    pub(super) bytes: f64,
}

/// Everything that is known of the time in between.
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
    /// Between these two; nothing is known of different jobs.
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

    /// Of the link to one child of a node.
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

    /// Of a group at a node.
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

    /// Whether a child is late for longer than somebody always is. Where it is not known for how
    /// long, it was so already before, at the same operation.
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
        // Another group that was made with the same tag has begun to count anew.
        (before.index == after.index).then_some([before, after])
    }
}

const NOTICED_MS: u64 = 500;
