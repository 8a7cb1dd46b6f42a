use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use proptest::prelude::*;
use trib_messages::reply::Resource;

use super::super::amounts::{Amounts, Kind};
use super::super::book::Scope;
use super::super::policy::{OTHERS, Tenant};
use super::*;

const LONG: Duration = Duration::from_secs(60);

/// Eight stream contexts at a node; `vip` goes first; `small` may have two.
fn line() -> Arc<Line> {
    let mut policy = Policy::default();
    policy.node.set(Kind::Streams, Some(8));
    policy.tenants.insert("vip".into(), Tenant { priority: 5, ..Tenant::default() });
    let mut small = Tenant::default();
    small.node.set(Kind::Streams, Some(2));
    policy.tenants.insert("small".into(), small);
    Arc::new(Line::new(Arc::new(policy), Time::default()))
}

fn claim(tenant: &str, streams: u64) -> Claim {
    Claim { tenant: tenant.into(), wants: vec![(Scope::Node("n".into()), Amounts::of(&[(Kind::Streams, streams)]))] }
}

fn applicant(is_gone: &dyn Fn() -> bool) -> Applicant<'_> {
    Applicant { name: "prog", user: "ann", tenant: None, ranks: 2, is_gone }
}

fn at_once(line: &Arc<Line>, tenant: &str, streams: u64) -> Result<Charge, Refusal> {
    line.enter(claim(tenant, streams), &applicant(&|| false), Duration::ZERO).map(|(charge, waited)| {
        assert!(!waited);
        charge
    })
}

/// Starts a thread that waits, and returns when it stands in the line.
fn waiting<'s>(
    scope: &'s thread::Scope<'s, '_>,
    line: &'s Arc<Line>,
    tenant: &'static str,
    streams: u64,
    is_gone: &'s (dyn Fn() -> bool + Sync),
) -> thread::ScopedJoinHandle<'s, Result<(Charge, bool), Refusal>> {
    let before = line.with(|state| state.waiting.len());
    let handle = scope.spawn(move || line.enter(claim(tenant, streams), &applicant(is_gone), LONG));
    until(|| line.with(|state| state.waiting.len()) > before);
    handle
}

fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "never");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_does_not_wait_is_refused_with_who_has_the_rest() {
    let line = line();
    let first = at_once(&line, OTHERS, 6).unwrap();
    first.attribute(JobId(7));
    let refusal = at_once(&line, "vip", 4).map(drop).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Streams, 4, 2));
    assert!(refusal.since_ms.is_some_and(|since_ms| since_ms <= unix_ms()), "{refusal:?}");
    for word in [
        "tenant vip",
        "4 stream contexts at node n",
        "2 can be had",
        "8 for all",
        "job 7 has 6",
        "TRIB_QUOTA=streams=2",
        "TRIB_WAIT_MS",
    ] {
        assert!(refusal.text.contains(word), "{word}: {refusal}");
    }
    assert!(refusal.holder.as_deref().unwrap().starts_with("tenant *"), "{refusal:?}");
    let refusal = at_once(&line, "small", 3).map(drop).unwrap_err();
    assert!(refusal.text.contains("tenant small may have at most 2"), "{refusal}");
    drop(first);
    at_once(&line, "vip", 8).map(drop).unwrap();
    assert!(line.with(|state| state.charged.is_empty() && state.waiting.is_empty()));
}

#[test]
fn what_can_never_be_had_is_refused_at_once_even_to_the_patient() {
    let line = line();
    let began = Instant::now();
    let refusal = line.enter(claim(OTHERS, 9), &applicant(&|| false), LONG).map(drop).unwrap_err();
    assert!(began.elapsed() < LONG / 2 && refusal.text.contains("there are 8"), "{refusal}");
}

#[test]
fn who_waits_gets_its_turn_by_priority_and_then_in_order() {
    let line = line();
    let first = at_once(&line, OTHERS, 8).unwrap();
    thread::scope(|scope| {
        let (low, late) = (waiting(scope, &line, OTHERS, 8, &|| false), waiting(scope, &line, OTHERS, 8, &|| false));
        let high = waiting(scope, &line, "vip", 8, &|| false);
        let order = line.with(|state| state.waiting.iter().map(|w| (w.priority, w.number)).collect::<Vec<_>>());
        assert_eq!(order.iter().map(|(priority, _)| *priority).collect::<Vec<_>>(), [5, 0, 0]);
        assert!(order[1].1 < order[2].1);
        drop(first);
        let (charge, waited) = high.join().unwrap().unwrap();
        assert!(waited && !low.is_finished() && !late.is_finished());
        drop(charge);
        let (charge, _) = low.join().unwrap().unwrap();
        assert!(!late.is_finished());
        drop(charge);
        late.join().unwrap().unwrap();
    });
}

#[test]
fn who_comes_later_does_not_take_what_the_first_waits_for_but_passes_if_it_needs_none_of_it() {
    let line = line();
    let first = at_once(&line, OTHERS, 6).unwrap();
    let gone = AtomicBool::new(false);
    let is_gone = || gone.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let big = waiting(scope, &line, OTHERS, 4, &|| false);
        let refusal = at_once(&line, OTHERS, 2).map(drop).unwrap_err();
        assert!(refusal.text.contains("for jobs that wait before it"), "{refusal}");
        // Its priority is higher, so it stands before.
        drop(at_once(&line, "vip", 2).unwrap());
        let elsewhere = Claim { wants: vec![(Scope::Node("m".into()), claim("", 8).wants[0].1)], ..claim(OTHERS, 0) };
        drop(line.enter(elsewhere, &applicant(&|| false), Duration::ZERO).unwrap());
        drop(first);
        let (charge, _) = big.join().unwrap().unwrap();
        drop(charge);
        let _full = at_once(&line, OTHERS, 8).unwrap();
        // A job that gives up makes room for those behind it.
        let leaves = waiting(scope, &line, "vip", 8, &is_gone);
        gone.store(true, Ordering::Relaxed);
        let refusal = leaves.join().unwrap().map(drop).unwrap_err();
        assert!(refusal.text.contains("is gone"), "{refusal}");
        assert!(line.with(|state| state.waiting.is_empty()));
    });
}

#[test]
fn one_that_waits_for_its_own_tenant_does_not_stop_others() {
    let line = line();
    let own = at_once(&line, "small", 2).unwrap();
    thread::scope(|scope| {
        let waits = waiting(scope, &line, "small", 2, &|| false);
        let other = at_once(&line, OTHERS, 6).unwrap();
        assert!(!waits.is_finished());
        drop(own);
        waits.join().unwrap().unwrap();
        drop(other);
    });
}

#[test]
fn patience_ends_and_says_which_position_it_was() {
    let line = line();
    let _all = at_once(&line, OTHERS, 8).unwrap();
    let began = Instant::now();
    let patience = Duration::from_millis(50);
    let refusal = line.enter(claim(OTHERS, 1), &applicant(&|| false), patience).map(drop).unwrap_err();
    assert!(began.elapsed() >= patience);
    assert!(refusal.text.contains("for 50 ms") && refusal.text.contains("number 1 of 1"), "{refusal}");
    assert!(line.with(|state| state.waiting.is_empty() && state.charged.len() == 1));
}

proptest! {
    /// Many threads in any order, some of which lose patience or go: afterwards nothing is held,
    /// and no thread hangs.
    #[test]
    fn whatever_becomes_of_those_who_wait_nothing_stays(
        asks in proptest::collection::vec((0usize..3, 1u64..9, 0u64..6, any::<bool>()), 1..16),
    ) {
        let line = line();
        let most = std::sync::atomic::AtomicU64::new(0);
        thread::scope(|scope| {
            for (tenant, streams, patience_ms, gone) in &asks {
                let (line, most) = (&line, &most);
                scope.spawn(move || {
                    let claim = claim(["vip", "small", OTHERS][*tenant], *streams);
                    let patience = Duration::from_millis(*patience_ms);
                    if let Ok((charge, _)) = line.enter(claim, &applicant(&|| *gone), patience) {
                        let used = line.with(|state| {
                            state.charged.values().map(|c| c.claim.at(&Scope::Node("n".into()), Kind::Streams)).sum()
                        });
                        most.fetch_max(used, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(1));
                        drop(charge);
                    }
                });
            }
        });
        prop_assert!(most.load(Ordering::Relaxed) <= 8);
        line.with(|state| assert!(state.charged.is_empty() && state.waiting.is_empty()));
        drop(at_once(&line, OTHERS, 8).unwrap());
    }
}
