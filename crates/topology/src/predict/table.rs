//! What the ranks of a job are told: for each shape of a communicator, the vectors for which the
//! tree is predicted to pay.
//!
//! A tree's time is a line over the bytes of a vector, and that of the best way of the hosts is the
//! lowest of several lines. So the tree is at least as fast from one size to another, and nowhere
//! else. With several lanes there is one such range below the size from which vectors are cut, and
//! one above.
//!
//! The job as a whole is judged exactly, on its own hosts and links. Its other communicators are
//! judged by their shape: how many hosts they have, at most how many ranks on each, and whether a
//! ring of them leaves each host once or as often as it has ranks. Rows are powers of two. A
//! look-up takes a row with fewer hosts and more ranks on each than there are, which is in favour
//! of the hosts' own ways. The time of such a communicator's tree is bounded by that of the whole
//! job's tree.

use trib_messages::prediction::{Range, ShapePrediction};

use super::host_based::{Members, steps_of};
use super::tree_cost::TreeCost;
use super::{Candidate, Model};

/// The tree of the job, and the links of its hosts.
pub(super) struct Ground<'a> {
    /// The cost of vectors that are not cut.
    pub(super) short: &'a TreeCost,
    /// The cost of vectors that are cut.
    pub(super) long: Option<&'a TreeCost>,
    /// Vectors of at least this many bytes are cut.
    pub(super) threshold: u64,
    /// The rate of all links together of the host with the least, in bits per second.
    pub(super) rate: f64,
}

/// A time as a line over bytes: seconds, and seconds per byte.
type Line = (f64, f64);

/// The table. The job's own row comes first.
pub(super) fn table(
    ground: &Ground<'_>,
    members: &Members<'_>,
    [allreduces, reduces]: [&[Candidate]; 2],
    model: &Model,
) -> Vec<ShapePrediction> {
    let lines = |ways: &[Candidate]| ways.iter().map(|way| (way.latency, way.byte)).collect::<Vec<Line>>();
    let (hosts, each) = (members.hosts().len(), members.each());
    let own = |cost: &TreeCost| (cost.latency, cost.byte);
    let tree = (own(ground.short), ground.long.map(own));
    let whole = row([hosts, each, members.ring_streams()], ground, tree, &lines(allreduces), &lines(reduces));
    let mut rows = vec![whole];
    for hosts in powers(2, hosts) {
        for each in powers(1, each) {
            for streams in [1, each].into_iter().take(1 + usize::from(each > 1)) {
                let shape = Shape { hosts, each, streams, rate: ground.rate };
                let part = |cost: &TreeCost| (cost.latency, cost.byte_of_part(hosts as f64, each as f64, model));
                let tree = (part(ground.short), ground.long.map(part));
                rows.push(row([hosts, each, streams], ground, tree, &shape.allreduces(model), &shape.reduces(model)));
            }
        }
    }
    rows
}

/// The powers of two times `least`. From 1 they go up to the first that is at least `most`; from 2
/// they end at or below `most`.
fn powers(least: usize, most: usize) -> impl Iterator<Item = usize> {
    let top = if least == 1 { most.next_power_of_two() } else { most };
    std::iter::successors(Some(least), |power| power.checked_mul(2)).take_while(move |power| *power <= top)
}

fn row(
    [hosts, each, streams]: [usize; 3],
    ground: &Ground<'_>,
    (short, long): (Line, Option<Line>),
    allreduces: &[Line],
    reduces: &[Line],
) -> ShapePrediction {
    let end = if long.is_some() { ground.threshold.saturating_sub(1) } else { u64::MAX };
    let ranges = |ways: &[Line]| {
        let below = range(short, ways, 0, end);
        let above = long.and_then(|long| range(long, ways, ground.threshold, u64::MAX));
        match (below, above) {
            (Some(below), Some(above)) if below.to.checked_add(1) == Some(above.from) => {
                vec![Range { from: below.from, to: above.to }]
            }
            (below, above) => below.into_iter().chain(above).collect(),
        }
    };
    ShapePrediction {
        hosts: hosts as u32,
        ranks_per_host: each as u32,
        streams: streams as u32,
        allreduce: ranges(allreduces),
        reduce: ranges(reduces),
        barrier: allreduces.iter().all(|way| short.0 <= way.0),
    }
}

/// The range between `from` and `to` in which a line is at or below all others.
pub(super) fn range((latency, byte): Line, others: &[Line], from: u64, to: u64) -> Option<Range> {
    let (mut least, mut most) = (from as f64, to as f64);
    for (their_latency, their_byte) in others {
        let (ahead, slower) = (their_latency - latency, byte - their_byte);
        if slower > 0.0 {
            most = most.min(ahead / slower);
        } else if slower < 0.0 {
            least = least.max(ahead / slower);
        } else if ahead < 0.0 {
            return None;
        }
    }
    // If even the largest number is in the range, it has no upper end.
    let to = if most >= to as f64 { to } else { most.floor() as u64 };
    let from = least.ceil() as u64;
    (least <= most && from <= to).then_some(Range { from, to })
}

/// A communicator on links of one rate, for formulas. Every link above its hosts is taken as free.
struct Shape {
    hosts: usize,
    each: usize,
    streams: usize,
    rate: f64,
}

impl Shape {
    fn allreduces(&self, model: &Model) -> Vec<Line> {
        let ranks = (self.hosts * self.each) as f64;
        let ring = self.wire(self.streams, model.ring_share).max(model.host_byte);
        let mut lines = vec![(2.0 * (ranks - 1.0) * model.step, 2.0 * (ranks - 1.0) / ranks * ring)];
        lines.extend(self.pairs(self.each, model, false));
        if self.each > 1 {
            lines.extend(self.pairs(1, model, false).map(|line| self.led(line, model)));
        }
        lines
    }

    fn reduces(&self, model: &Model) -> Vec<Line> {
        let mut lines = self.pairs(self.each, model, true).to_vec();
        if self.each > 1 {
            lines.extend(self.pairs(1, model, true).map(|line| self.led(line, model)));
        }
        lines
    }

    /// Doubling (or a tree, if it goes to a root) and halving, with `each` ranks on each host.
    fn pairs(&self, each: usize, model: &Model, to_root: bool) -> [Line; 2] {
        let crossing = f64::from(steps_of(self.hosts));
        let latency = crossing * model.step + f64::from(steps_of(each)) * model.local_step;
        // The streams that leave a host in the first step, when pairs exchange most: those of all
        // its ranks, or of one if its ranks follow one another.
        let spread = if self.streams > 1 { each } else { 1 };
        let part = 1.0 - 1.0 / self.hosts as f64;
        let halving = part * self.wire(spread, model.exchange_share);
        if to_root {
            let gather = self.wire(1, model.ring_share) * (1.0 - 1.0 / (self.hosts * each) as f64);
            let tree = crossing * self.wire(spread, model.ring_share);
            return [(latency, tree), (2.0 * latency, halving + gather)];
        }
        [(latency, crossing * self.wire(each, model.exchange_share)), (2.0 * latency, 2.0 * halving)]
    }

    /// Adds what the ranks of a host do before and after.
    fn led(&self, (latency, byte): Line, model: &Model) -> Line {
        let steps = 2.0 * f64::from(steps_of(self.each));
        (latency + steps * model.local_step, byte + (self.each as f64 - 1.0) * model.local_byte)
    }

    fn wire(&self, streams: usize, share: f64) -> f64 {
        8.0 * streams as f64 / (self.rate * share)
    }
}

#[cfg(test)]
mod tests;
