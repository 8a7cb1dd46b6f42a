use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const BEFORE: Policy = scheduling::TIME_SHARED;

#[test]
fn a_thread_is_put_first_that_is_ready_at_two_looks_and_has_not_run() {
    let now = Instant::now();
    let steps = |looks: &[Option<u64>]| {
        let mut record = Record::default();
        looks.iter().map(|ready| record.step(*ready, now).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(steps(&[None, Some(5), Some(5)]), [false, false, true]);
    assert_eq!(steps(&[Some(5), Some(6), Some(7)]), [false; 3], "it runs");
    assert_eq!(steps(&[Some(5), None, Some(5)]), [false; 3], "it sleeps in between");
    assert_eq!(steps(&[None, None]), [false; 2], "it sleeps");
}

#[test]
fn it_goes_first_for_a_while_and_then_as_before() {
    let now = Instant::now();
    let mut record = Record::default();
    record.step(Some(5), now);
    let Some(Step::Put(until)) = record.step(Some(5), now) else { panic!("it is not put first") };
    assert_eq!(until, now + HOLD);
    record.first = Some((until, BEFORE));
    assert_eq!(record.step(Some(5), now), None, "it is first already");
    assert_eq!(record.step(Some(9), until), Some(Step::Restore(BEFORE)));
    assert_eq!(record.step(Some(9), until), Some(Step::Put(until + HOLD)), "it starves again");
}

/// A thread gets a three-hundredth of what each of many others on its core gets, so it would wait
/// for seconds between two turns of a millisecond.
#[test]
fn a_thread_without_a_processor_gets_one() {
    let is_over = Arc::new(AtomicBool::new(false));
    let turns = Arc::new(AtomicU64::new(0));
    let (tell, told) = std::sync::mpsc::channel();
    let starving = {
        let (is_over, turns) = (is_over.clone(), turns.clone());
        thread::spawn(move || {
            scheduling::stay_on_one_core();
            tell.send(scheduling::own()).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let thread = told.recv().unwrap();
    scheduling::restore(thread, scheduling::IDLE).unwrap();
    let busy: Vec<_> = (0..16)
        .map(|_| {
            let is_over = is_over.clone();
            thread::spawn(move || {
                scheduling::stay_on_one_core();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    // Without a right to that no thread can be helped, and there is nothing to see.
    if scheduling::put_first(scheduling::own()).is_ok() {
        let mut watched = Watched::default();
        let is_first = |watched: &Watched| watched.all.get(&thread).is_some_and(|record| record.first.is_some());
        let began = Instant::now();
        while !is_first(&watched) {
            assert!(began.elapsed() < Duration::from_secs(60), "it was never found");
            thread::sleep(LOOK);
            watched.look(scheduling::own(), Instant::now());
        }
        let before = turns.load(Ordering::Relaxed);
        while turns.load(Ordering::Relaxed) == before {
            assert!(began.elapsed() < Duration::from_secs(60), "it was put first, and does not run");
            thread::sleep(Duration::from_millis(10));
        }
        assert!(busy.iter().all(|thread| !thread.is_finished()));
        watched.look(scheduling::own(), Instant::now() + HOLD);
        assert!(!is_first(&watched));
        assert_eq!(scheduling::put_first(thread).unwrap(), scheduling::IDLE, "it is scheduled as before");
    }
    is_over.store(true, Ordering::Relaxed);
    for thread in busy.into_iter().chain([starving]) {
        thread.join().unwrap();
    }
}
