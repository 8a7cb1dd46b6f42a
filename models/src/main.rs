//! Runs each model in every order of steps, up to a bound, and shows that it would fail: with a
//! fault of its kind it has to. Exit status: 1 if a model fails, or if one with a fault does not.

#![allow(dead_code, reason = "the product's files have more than a model calls")]

mod bell;
mod claims;
mod edge_sleep;
mod members_sleep;
mod shared_buffers;

/// What the product's files call `crate::sync`, as loom has it.
mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[path = "../../crates/transport/src/landing.rs"]
mod landing;
#[path = "../../crates/transport/src/mapping.rs"]
mod mapping;
#[path = "../../crates/transport/src/pool.rs"]
mod pool;

#[path = "../../crates/transport/src/memory/asleep.rs"]
mod asleep;
#[path = "../../crates/transport/src/memory/board/count.rs"]
mod count;
#[path = "../../crates/transport/src/memory/board/sleep.rs"]
mod sleep;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A model, and the same with a fault.
struct Model {
    name: &'static str,
    words: &'static str,
    right: fn(),
    wrong: fn(),
}

const MODELS: &[Model] = &[
    Model {
        name: "shared buffers",
        words: "no buffer has two holders that write, and each comes back once (transport::pool)",
        right: shared_buffers::right,
        wrong: shared_buffers::wrong,
    },
    Model {
        name: "claims",
        words: "each portion of a piece is claimed once, and who claims the last sees all (board::count)",
        right: claims::right,
        wrong: claims::wrong,
    },
    Model {
        name: "sleep at an edge",
        words: "no end of an edge sleeps on while something is there for it (memory::asleep)",
        right: edge_sleep::right,
        wrong: edge_sleep::wrong,
    },
    Model {
        name: "sleep at a board",
        words: "no member sleeps on while a wish of it is fulfilled, and each is woken once (board::sleep)",
        right: members_sleep::right,
        wrong: members_sleep::wrong,
    },
];

fn main() -> ExitCode {
    let mut failed = 0;
    for model in MODELS {
        let began = Instant::now();
        let (holds, orders) = explore(model.right, true);
        let (fault_holds, _) = explore(model.wrong, false);
        let verdict = match (holds, fault_holds) {
            (true, false) => "holds",
            (false, _) => "FAILS",
            (true, true) => "CANNOT FAIL: it holds with a fault, too",
        };
        failed += u32::from(verdict != "holds");
        println!(
            "{:18} {verdict} in {orders} orders, {:.1} s: {}",
            model.name,
            began.elapsed().as_secs_f64(),
            model.words
        );
    }
    println!("{} passed, {failed} failed", MODELS.len() as u32 - failed);
    ExitCode::from(u8::from(failed > 0))
}

/// How often a thread is stopped in the middle at most. Mistakes of this kind are known to need few
/// (Musuvathi and Qadeer, PLDI 2007), and orders without such a bound are too many.
const PREEMPTIONS: usize = 3;

/// Whether a model holds in every order, and in how many it was tried. With `speaks` a failure says
/// what it was.
fn explore(model: fn(), speaks: bool) -> (bool, u64) {
    static ORDERS: AtomicU64 = AtomicU64::new(0);
    ORDERS.store(0, Ordering::Relaxed);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    let hook = take_hook();
    set_hook(Box::new(move |panic| {
        // Loom ends its threads by panics of its own, which have no words.
        let has_words = panic.payload().is::<&str>() || panic.payload().is::<String>();
        if speaks && has_words {
            eprintln!("{panic}");
        }
    }));
    let holds = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            ORDERS.fetch_add(1, Ordering::Relaxed);
            model();
        });
    }));
    set_hook(hook);
    (holds.is_ok(), ORDERS.load(Ordering::Relaxed))
}
