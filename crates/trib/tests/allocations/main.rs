//! Memory allocated per operation: none by the nodes, and one piece by a rank (what the holder of
//! the request keeps). The fabric, manager included, is in one process with an allocator that
//! counts.

mod counted;
#[path = "../support/fabric.rs"]
mod fabric;

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fabric::Fabric;
use trib_client::params::RENDEZVOUS_ENV;
use trib_client::{Context, DataType, Params, RankList, ReduceOp};

/// Equal operations, which are counted after a warm-up.
#[derive(Debug)]
struct Round {
    bytes: usize,
    /// Whether the result overwrites the input.
    in_place: bool,
    warm_up: usize,
    operations: usize,
}

const fn round(bytes: usize, in_place: bool, (warm_up, operations): (usize, usize)) -> Round {
    Round { bytes, in_place, warm_up, operations }
}

const ROUNDS: [Round; 8] = [
    round(4, false, (500, 3000)),
    round(4, true, (500, 3000)),
    round(8 << 10, false, (500, 1000)),
    round(8 << 10, true, (500, 1000)),
    round(64 << 10, false, (200, 500)),
    round(64 << 10, true, (200, 500)),
    round(4 << 20, false, (20, 30)),
    round(4 << 20, true, (20, 30)),
];

#[test]
fn operations_allocate_nothing_at_the_nodes_and_once_at_the_ranks() {
    // SAFETY: no other thread runs yet in this process, which has only this test.
    unsafe { std::env::set_var(RENDEZVOUS_ENV, "allocations") };
    let fabric = Fabric::up("allocations", TOPOLOGY, &["root", "leaf0", "leaf1"]);
    counted::begin();
    let ranks: Vec<_> = (0..RANKS).map(|rank| start(rank, fabric.url.clone())).collect();
    await_all(&ranks);
    let (workers, of_ranks) = counted::end();
    assert!(workers > 0 && of_ranks > 0, "making a group allocates, and the allocator has not noticed it");
    let mut offences = Vec::new();
    for round in ROUNDS {
        open(&ranks);
        await_all(&ranks);
        counted::begin();
        open(&ranks);
        await_all(&ranks);
        let (workers, of_ranks) = counted::end();
        let per_rank = of_ranks as f64 / (round.operations as f64 * f64::from(RANKS));
        let said = format!("{round:?}: {workers} by nodes, {per_rank:.3} per operation by a rank");
        println!("{said}; limits 0, {PER_RANK_MAX}");
        if workers > 0 || per_rank > PER_RANK_MAX {
            offences.push(said);
        }
    }
    open(&ranks);
    for rank in ranks {
        rank.thread.join().unwrap();
    }
    assert!(offences.is_empty(), "{offences:#?}");
}

/// A rank's thread, and the gates at which it waits.
struct Running {
    thread: JoinHandle<()>,
    arrived: Receiver<()>,
    opened: SyncSender<()>,
}

fn start(rank: u32, manager: String) -> Running {
    // These channels allocate their memory when they are made.
    let ((arrive, arrived), (opened, open)) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
    let gate = move || {
        arrive.send(()).unwrap();
        open.recv().unwrap();
    };
    let thread = thread::Builder::new().name(format!("rank-{rank}")).spawn(move || run(rank, manager, gate)).unwrap();
    Running { thread, arrived, opened }
}

/// Waits until every rank stands at its gate. A rank that has failed never will.
fn await_all(ranks: &[Running]) {
    for (rank, running) in ranks.iter().enumerate() {
        assert!(running.arrived.recv_timeout(LIMIT).is_ok(), "rank {rank} has failed or hangs");
    }
}

fn open(ranks: &[Running]) {
    for rank in ranks {
        rank.opened.send(()).unwrap();
    }
}

fn run(rank: u32, manager: String, gate: impl Fn()) {
    let host = Some(format!("h{rank}"));
    let context = Context::join(Params { manager: Some(manager), host, ..Params::new(rank, RANKS) }).unwrap();
    let world = context.create_group(RankList::world(RANKS), 0).unwrap();
    gate();
    for Round { bytes, in_place, warm_up, operations } in ROUNDS {
        let (input, mut output) = (vec![rank as u8; bytes], vec![rank as u8; bytes]);
        let mut repeat = |times| {
            for _ in 0..times {
                let input = Some(&input[..]).filter(|_| !in_place);
                world.allreduce(input, &mut output, DataType::U8, ReduceOp::Max).unwrap();
            }
        };
        repeat(warm_up);
        gate();
        repeat(operations);
        gate();
        assert!(output.iter().all(|largest| u32::from(*largest) == RANKS - 1), "wrong result of {bytes} bytes");
    }
}

const RANKS: u32 = 4;
/// One piece per operation, and a little for what happens beside them.
const PER_RANK_MAX: f64 = 1.05;
const LIMIT: Duration = Duration::from_secs(120);
const TOPOLOGY: &str = r#"
[fabric]
name = "allocations"
[[node]]
name = "root"
[[node]]
name = "leaf0"
parent = "root"
[[node]]
name = "leaf1"
parent = "root"
[[host]]
name = "h0"
leaf = "leaf0"
[[host]]
name = "h1"
leaf = "leaf0"
[[host]]
name = "h2"
leaf = "leaf1"
[[host]]
name = "h3"
leaf = "leaf1"
"#;
