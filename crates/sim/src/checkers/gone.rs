//! A rank that is known to be gone is not waited for, and one that is there is not given up.

use trib_proto::Nanos;
use trib_wire::{Fault, Placement, Reason};

use super::Checkers;

const NAME: &str = "gone";

impl Checkers {
    /// A rank has left the job.
    pub fn rank_left(&mut self, rank: u32) {
        self.left[rank as usize] = true;
        self.progress = self.now;
    }

    /// The node above a rank is told in the epoch of this placement that the rank's process is
    /// gone. In the next one nobody knows that.
    pub fn rank_seen_gone(&mut self, rank: u32, placement: &Placement) {
        let at = rank as usize;
        self.seen_gone[at] = Some((self.now, placement.clone()));
        if !self.dead[at] && !self.left[at] {
            self.fail(NAME, format!("rank {rank} is taken for gone, and is there"));
        }
    }

    /// A rank has been told that a group does not go on. If its program has freed that one, it asks
    /// only now for those that it has held back behind it.
    pub fn refused(&mut self, rank: u32) {
        self.progress(rank);
    }

    /// A rank dies, and nobody is told.
    pub fn rank_silent(&mut self) {
        self.dies_silently = true;
    }

    /// A process ends in which a node lives, or which might have taken one in.
    pub fn home_lost(&mut self) {
        self.bereft = true;
    }

    /// Whether some rank has died, and nobody was told.
    pub fn has_silent_dead(&self) -> bool {
        self.dies_silently
    }

    /// A node ends because no rank is left below it.
    pub fn node_deserted(&mut self, node: usize) {
        self.deserted += 1;
        let is_there = |rank: &&u32| !self.is_absent(**rank as usize);
        if let Some(rank) = self.tree.nodes[node].ranks.iter().find(is_there) {
            self.fail(NAME, format!("node {node} ends, and rank {rank} below it is there"));
        }
    }

    /// A group fails because a rank is dead: soon, if that was seen, and nothing else went on.
    pub(super) fn check_soon(&mut self, group: usize, fault: &Fault) {
        let members = &self.work.groups[group].members;
        let gone = |rank: u32| {
            let (at, placement) = self.seen_gone.get(rank as usize)?.as_ref()?;
            // A node that is left behind in an epoch before may see it, too.
            (*at >= self.epoch_at && *placement == self.newest).then_some(*at)
        };
        let is_out = |rank: &&u32| self.is_absent(**rank as usize);
        // Others may be waited for.
        let seen = members.iter().filter(is_out).map(|rank| gone(*rank)).collect::<Option<Vec<Nanos>>>();
        let Some(last) = seen.and_then(|seen| seen.into_iter().max()).filter(|_| !self.dies_silently) else { return };
        let since = last.max(self.calm_at).max(self.progress);
        if fault.reason == Reason::MemberDead && self.now.since(since) > SOON {
            let (rank, span) = (fault.rank_a, self.now.since(since));
            self.fail(NAME, format!("group {group} fails {span} s after {rank} was seen gone"));
        }
    }

    fn is_absent(&self, rank: usize) -> bool {
        self.dead[rank] || self.stopped[rank] || self.left[rank]
    }

    /// How many ranks were seen gone, and how many nodes have ended without going elsewhere.
    pub fn gone(&self) -> (usize, usize) {
        (self.seen_gone.iter().flatten().count(), self.deserted)
    }
}

/// Some round trips, and the time to call those nodes that have moved meanwhile.
const SOON: Nanos = Nanos::from_millis(6_000);
