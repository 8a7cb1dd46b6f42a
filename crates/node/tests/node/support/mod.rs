//! A small tree on loopback: real nodes, and ranks that are a leaf core on real sockets, polled by
//! the test's own thread.

mod grants;
mod rank;

pub use grants::Tree;
pub use rank::Rank;

use std::time::{Duration, Instant};

use trib_control::ManagerUrl;
use trib_node::{Node, Options};

/// A node without a manager, which gets its grants from the test.
pub fn node(workers: usize) -> Node {
    node_at(&["127.0.0.1:0"], workers)
}

/// A node without a manager that listens at these addresses.
pub fn node_at(listen: &[&str], workers: usize) -> Node {
    let manager = ManagerUrl::new("127.0.0.1", 9, "/nonexistent");
    let listen = listen.iter().map(|address| address.parse().unwrap()).collect();
    Node::start(Options { name: "test".into(), manager, listen, workers, memory: None }).unwrap()
}

/// Polls the ranks until all are done with what they were given.
pub fn drive(ranks: &mut [Rank], what: &str, done: impl Fn(&Rank) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !ranks.iter().all(&done) {
        for rank in ranks.iter_mut() {
            rank.poll();
        }
        assert!(Instant::now() < deadline, "{what} does not end: {ranks:#?}");
    }
}

/// Waits until a count of the node's is at least `least`.
pub fn await_count(node: &Node, name: &str, least: u64) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while node.counters().get(name).copied().unwrap_or(0) < least {
        assert!(Instant::now() < deadline, "{name} stays below {least}: {:#?}", node.counters());
        std::thread::sleep(Duration::from_millis(5));
    }
}
