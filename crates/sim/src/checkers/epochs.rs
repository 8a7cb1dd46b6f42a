//! In each placement, at most one process hosts a node.

use trib_wire::Placement;

use super::Checkers;

const NAME: &str = "epochs";

impl Checkers {
    /// A process hosts a node from now on, in the epoch of this placement.
    pub fn node_begins(&mut self, node: usize, placement: &Placement) {
        self.moved |= *placement != Placement::FIRST;
        self.epoch_at = self.now;
        self.newest = self.newest.with(placement);
        if !self.hosted.insert((node, placement.clone())) {
            self.fail(NAME, format!("two processes host node {node} in {placement:?}"));
        }
    }

    /// It does so no more.
    pub fn node_ends(&mut self, node: usize, placement: &Placement) {
        self.hosted.remove(&(node, placement.clone()));
    }

    /// A rank has a connection, perhaps of a new epoch.
    pub fn linked(&mut self, rank: u32) {
        let now = self.now;
        self.traffic[rank as usize].progress(now);
    }
}
