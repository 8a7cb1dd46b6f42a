//! Nothing is left at the end.

use super::Checkers;
use super::memory::Holdings;

const NAME: &str = "no_leak";

impl Checkers {
    /// What a node still has when everything is freed.
    pub fn check_node_empty(&mut self, node: usize, groups: usize, held: Holdings) {
        if groups > 0 {
            self.fail(NAME, format!("node {node} still has {groups} groups after all were freed"));
        }
        if held != Holdings::default() {
            self.fail(NAME, format!("node {node} still holds {held:?} after all groups were freed"));
        }
    }

    /// What a rank still has outstanding when its script is done, and the number of groups that it
    /// has freed and not forgotten.
    pub fn check_leaf_empty(&mut self, rank: u32, outstanding: usize, behind: usize) {
        if behind > 0 && !self.may_fail() {
            self.fail(NAME, format!("rank {rank} still keeps {behind} groups that all have freed"));
        }
        if outstanding > 0 {
            self.fail(NAME, format!("rank {rank} still counts {outstanding} operations as outstanding"));
        }
    }
}
