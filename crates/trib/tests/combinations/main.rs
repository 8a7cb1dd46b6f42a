//! Every operator on every type on which it is defined, through the whole protocol: allreduce,
//! reduce and reduce-scatter of each cell, broadcast and allgather of each type, over datagrams and
//! over streams, on 1 to 33 ranks, and on boards of three hosts; and on 8 ranks over two and three
//! lanes on two roots, with vectors that are cut and with lanes that take turns. Manager, nodes and
//! ranks are threads of this process. Every byte is compared with the plain reference of
//! `trib-testkit`, which is given the tree.
//!
//! Fragments and segments have 64 bytes, so that vectors of any type are cut often, and elements of
//! 3, 6, 9, 10 and 12 bytes leave a rest in each.

mod cases;
#[path = "../support/fabric.rs"]
mod fabric;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cases::{Case, cases};
use fabric::Fabric;
use trib_client::params::RENDEZVOUS_ENV;
use trib_client::{Context, Group, Input, Params, RankList, Request};
use trib_messages::levels::Levels;
use trib_messages::request::QuotaAsk;
use trib_testkit::Tree;

/// The two protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Datagrams,
    Streams,
}

#[test]
fn every_cell_gives_the_reference_on_any_number_of_ranks() {
    // SAFETY: no other thread runs yet in this process, which has only this test.
    unsafe { std::env::set_var(RENDEZVOUS_ENV, "combinations") };
    let fabric = Fabric::up("combinations", TOPOLOGY, &["root", "spine", "leaf0", "leaf1", "leaf2"]);
    for ranks in [1, 2, 3, 8, 33] {
        let cases = Arc::new(cases(ranks, &tree(ranks)));
        for protocol in [Protocol::Datagrams, Protocol::Streams] {
            let begun = Instant::now();
            run(&fabric, ranks, Manner { protocol, lanes: 1, cut: false, boards: false }, &cases);
            println!("{ranks} ranks, {protocol:?}: {} operations in {:.2?}", cases.len(), begun.elapsed());
        }
        if ranks > LEAVES {
            let manner = Manner { protocol: Protocol::Datagrams, lanes: 1, cut: false, boards: true };
            run(&fabric, ranks, manner, &cases);
        }
    }
    let fabric = Fabric::up("lanes", TWO_ROOTS, &["root", "second", "leaf0", "leaf1", "leaf2"]);
    let leaf = |first: u32| Tree::Node((first..8).step_by(LEAVES as usize).map(Tree::Rank).collect());
    let cases = Arc::new(cases(8, &Tree::Node((0..LEAVES).map(leaf).collect())));
    for (lanes, cut) in [(1, false), (2, false), (2, true), (3, true)] {
        for protocol in [Protocol::Datagrams, Protocol::Streams] {
            let begun = Instant::now();
            run(&fabric, 8, Manner { protocol, lanes, cut, boards: false }, &cases);
            println!("{lanes} lanes, cut {cut}, {protocol:?}: {} operations in {:.2?}", cases.len(), begun.elapsed());
        }
    }
}

/// How a job is run.
#[derive(Clone, Copy, Debug)]
struct Manner {
    protocol: Protocol,
    lanes: u32,
    /// Whether every vector is cut over the lanes; otherwise none is.
    cut: bool,
    /// Whether hosts are a level, so that ranks of one share a board.
    boards: bool,
}

/// The tree: rank r is on leaf r mod 3, and children stand in the order of the topology, then of
/// the ranks.
fn tree(ranks: u32) -> Tree {
    let leaf = |first: u32| Tree::Node((first..ranks).step_by(LEAVES as usize).map(Tree::Rank).collect());
    let without_idle =
        |nodes: Vec<Tree>| Tree::Node(nodes.into_iter().filter(|node| !node.ranks().is_empty()).collect());
    without_idle(vec![without_idle(vec![leaf(0), leaf(1)]), leaf(2)])
}

/// Runs a job of its own: all ranks, all cases, in batches that are in flight together.
fn run(fabric: &Fabric, ranks: u32, manner: Manner, cases: &Arc<Vec<Case>>) {
    let running: Vec<_> = (0..ranks)
        .map(|rank| {
            let (url, cases) = (fabric.url.clone(), cases.clone());
            thread::spawn(move || be_a_rank(rank, ranks, url, manner, &cases))
        })
        .collect();
    for thread in running {
        thread.join().unwrap();
    }
}

fn be_a_rank(rank: u32, ranks: u32, manager: String, manner: Manner, cases: &[Case]) {
    let Manner { protocol, lanes, cut, boards } = manner;
    let threshold = if protocol == Protocol::Streams { 0 } else { 1 << 40 };
    let ask = QuotaAsk {
        payload: Some(PIECE),
        segment: Some(PIECE),
        stream_threshold: Some(threshold),
        lanes: Some(lanes),
        stripe_threshold: Some(if cut { 0 } else { u64::MAX }),
        levels: Some(if boards { Levels::Host } else { Levels::None }),
        ..QuotaAsk::default()
    };
    let host = Some(format!("h{}", rank % LEAVES));
    let context = Context::join(Params { manager: Some(manager), host, ask, ..Params::new(rank, ranks) }).unwrap();
    assert_eq!(context.lanes(), lanes);
    let world = context.create_group(RankList::world(ranks), 0).unwrap();
    for batch in cases.chunks(BATCH) {
        let posted: Vec<_> = batch.iter().map(|case| Posted::start(&world, case, rank)).collect();
        posted.into_iter().for_each(|posted| posted.finish(manner));
    }
    let counters = context.counters().unwrap();
    if boards {
        assert_eq!(counters.operations_board, cases.len() as u64);
        drop(world);
        return context.finalize().unwrap();
    }
    let (used, unused) = match protocol {
        Protocol::Datagrams => (counters.operations_llt, counters.operations_sat),
        Protocol::Streams => (counters.operations_sat, counters.operations_llt),
    };
    if cut {
        // Each operation has a part on every lane. A part without an element is a datagram.
        assert_eq!(used + unused, u64::from(lanes) * cases.len() as u64);
        assert!(used > 8 * unused, "{manner:?}: {used} and {unused}");
    } else {
        assert_eq!((used, unused), (cases.len() as u64, 0), "all over {protocol:?}");
    }
    drop(world);
    context.finalize().unwrap();
}

/// One operation in flight at one rank.
struct Posted<'a> {
    case: &'a Case,
    rank: u32,
    output: Vec<u8>,
    request: Request,
}

impl Posted<'_> {
    fn start<'a>(group: &Group, case: &'a Case, rank: u32) -> Posted<'a> {
        let input = &case.inputs[rank as usize];
        let expected = &case.expected[rank as usize];
        // A broadcast has one buffer: at the root it is the input.
        let mut output = expected.as_ref().map_or_else(|| input.clone(), |result| vec![0xa5; result.len()]);
        let from = if expected.is_some() { input.as_ptr() } else { output.as_ptr() };
        // SAFETY: input and output have the lengths that the signature says. The case outlives the
        // request, and the output's heap memory stays where it is and is not touched until `finish`
        // has waited.
        let request = unsafe { group.start(case.signature, Input::At(from), output.as_mut_ptr()) };
        Posted { case, rank, output, request: request.unwrap() }
    }

    fn finish(self, manner: Manner) {
        let Posted { case, rank, output, request } = self;
        let what = || format!("{} with {manner:?}, rank {rank}", case.signature);
        request.wait(Some(LIMIT)).unwrap_or_else(|error| panic!("{}: {error}", what()));
        let expected = case.expected[rank as usize].as_ref().unwrap_or(&case.inputs[rank as usize]);
        if output != *expected {
            let at = output.iter().zip(expected).position(|(a, b)| a != b);
            panic!("{}: byte {at:?}\n{output:02x?} is not\n{expected:02x?}", what());
        }
    }
}

/// The most bytes of a fragment, and of a segment.
const PIECE: u32 = 64;
const BATCH: usize = 64;
const LEAVES: u32 = 3;
const LIMIT: Duration = Duration::from_secs(60);
/// A tree of two levels below either of two roots.
const TWO_ROOTS: &str = r#"
[fabric]
mtu = 9000
[[switch]]
name = "leaf[0-2]"
[[switch]]
name = "root"
[[switch]]
name = "second"
[[host]]
name = "h0"
switch = "leaf0"
[[host]]
name = "h1"
switch = "leaf1"
[[host]]
name = "h2"
switch = "leaf2"
[[link]]
ends = ["leaf[0-2]", "root,second"]
"#;
const TOPOLOGY: &str = r#"
[fabric]
name = "combinations"
[[node]]
name = "root"
[[node]]
name = "spine"
parent = "root"
[[node]]
name = "leaf2"
parent = "root"
[[node]]
name = "leaf0"
parent = "spine"
[[node]]
name = "leaf1"
parent = "spine"
[[host]]
name = "h0"
leaf = "leaf0"
[[host]]
name = "h1"
leaf = "leaf1"
[[host]]
name = "h2"
leaf = "leaf2"
"#;
