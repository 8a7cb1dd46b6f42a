//! A node never holds more than the quota grants.

use trib_proto::Limits;

use super::Checkers;

const NAME: &str = "memory";

/// What a node holds, as its driver counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdings {
    /// Buffers that came as datagrams or were folded from such.
    pub datagrams: usize,
    /// Buffers that came by stream or were folded from such.
    pub segments: usize,
    /// Buffers that the core has let go of while they wait to be written into a socket.
    pub kept: usize,
}

/// What a node says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// Buffers of datagrams and of segments.
    pub buffers: (usize, usize),
    /// Groups whose datagram slots are in use.
    pub datagram_groups: usize,
    /// Stream contexts in use.
    pub streams: usize,
}

impl Checkers {
    /// Compares a node's holdings with its own account and with the grant.
    pub fn check_memory(&mut self, node: usize, limits: &Limits, held: Holdings, account: Account) {
        let children = self.tree.nodes[node].children.len();
        let slots = limits.window as usize * (children + 1);
        let context = children * limits.staging as usize + limits.flight as usize;
        let wrong = if (held.datagrams, held.segments) != account.buffers {
            format!("holds {held:?} but knows of {:?}", account.buffers)
        } else if held.datagrams > account.datagram_groups * slots {
            format!("holds {} datagrams, {} groups of {slots} are granted", held.datagrams, account.datagram_groups)
        } else if account.streams > limits.streams as usize {
            format!("uses {} stream contexts, {} are granted", account.streams, limits.streams)
        } else if held.segments > account.streams * context {
            format!("holds {} segments, {} contexts of {context} are in use", held.segments, account.streams)
        } else if held.kept > 0 && !self.may_fail() {
            // Only a group that fails may drop what is still queued: otherwise this would be memory
            // that nothing counts.
            format!("has let go of {} buffers that still wait to be written", held.kept)
        } else {
            return;
        };
        self.fail(NAME, format!("node {node} {wrong}"));
    }
}
