//! Members in threads of one process, each with a mapping of its own.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use proptest::prelude::*;

use super::*;

fn boards(members: usize) -> Vec<Board> {
    let (first, memory) = Board::create(members).unwrap();
    let others = (1..members).map(|me| Board::open(&memory, members, me).unwrap());
    std::iter::once(first).chain(others).collect()
}

fn put(board: &Board, piece: u64, bytes: &[u8]) {
    // SAFETY: the tests put before they show, and have room.
    unsafe { board.put(piece, bytes.len(), 0, bytes.as_ptr(), bytes.len()) };
    board.show(piece, [7, bytes.len() as u64], piece / 2);
}

#[test]
fn what_one_member_gives_the_others_see_and_a_slot_waits_for_all() {
    let [one, two]: [Board; 2] = boards(2).try_into().unwrap();
    let (mut known, mut theirs) = (0, 0);
    for piece in 0..WINDOW {
        assert!(one.has_room(piece, &mut known));
        put(&one, piece, &[piece as u8; 100]);
        assert!(two.has_given(piece, 0) && !two.has_given(piece, 1));
        assert_eq!(two.signature(piece, 0), [7, 100]);
        // SAFETY: it was given, and is not taken.
        assert_eq!(unsafe { two.given(piece, 0, 100) }, [piece as u8; 100]);
    }
    assert!(!one.has_room(WINDOW, &mut known));
    one.take(1);
    assert_eq!([0, 1].map(|member| one.holds_up(WINDOW, member)), [false, true]);
    assert!(!one.has_room(WINDOW, &mut known), "the other has not taken the first piece");
    two.take(3);
    assert!(one.has_room(WINDOW, &mut known) && !one.has_room(WINDOW + 1, &mut known));
    assert!(two.has_room(0, &mut theirs));
    assert!(!two.has_given(WINDOW, 0), "a slot's former number is not this one");
}

#[test]
fn who_sees_a_whole_piece_sees_what_was_called_and_how_much_all_had_taken() {
    let [one, two]: [Board; 2] = boards(2).try_into().unwrap();
    one.show(6, [7, 8], 4);
    assert!(!one.is_whole(6) && !two.is_whole(6));
    two.show(6, [7, 8], 5);
    assert!(one.is_whole(6) && !one.is_whole(2) && !one.is_whole(10));
    assert_eq!((one.agreed(6, [7, 8]), one.agreed(6, [7, 9])), (Some(4), None));
    two.show(7, [7, 8], 6);
    one.show(7, [6, 8], 6);
    assert_eq!((one.agreed(7, [7, 8]), two.agreed(7, [6, 8])), (None, None));
}

#[test]
fn only_a_board_of_this_size_is_opened() {
    let (_, memory) = Board::create(3).unwrap();
    assert!(Board::open(&memory, 4, 1).is_err() && Board::open(&memory, 3, 3).is_err());
    assert!(Board::create(MEMBERS_MAX + 1).is_err() && Board::create(0).is_err());
    let pipe = std::io::pipe().unwrap().0;
    assert!(Board::open(&pipe.into(), 3, 1).is_err());
}

#[test]
fn who_left_is_seen_and_what_it_gave_stays() {
    let [one, two]: [Board; 2] = boards(2).try_into().unwrap();
    put(&one, 0, b"last");
    one.leave();
    assert!(two.has_left(0) && !two.has_left(1) && two.has_given(0, 0));
}

#[test]
fn sleepers_are_told_once_and_by_their_wish() {
    let [one, two, three]: [Board; 3] = boards(3).try_into().unwrap();
    assert!(!one.has_sleepers());
    one.fall_asleep([]);
    one.wake_up();
    assert!(!two.has_sleepers(), "who waits for nothing here is not woken");
    two.fall_asleep([Wish::Pieces]);
    three.fall_asleep([Wish::Room, Wish::Pieces]);
    assert!(one.has_sleepers());
    assert_eq!(one.sleepers(Wish::Room).collect::<Vec<_>>(), [2]);
    assert_eq!(one.sleepers(Wish::Room).count(), 0);
    assert!(one.has_sleepers());
    assert_eq!(one.sleepers(Wish::Pieces).collect::<Vec<_>>(), [1]);
    three.wake_up();
    two.wake_up();
    assert!(!one.has_sleepers());
}

#[test]
fn each_share_is_claimed_once() {
    let boards = boards(4);
    for piece in 0..200 {
        let claimed: Vec<AtomicU64> = (0..9).map(|_| AtomicU64::new(0)).collect();
        let last = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for board in &boards {
                scope.spawn(|| {
                    while let Some(portion) = board.claim(piece, 9) {
                        claimed[portion as usize].fetch_add(1, Relaxed);
                        last.fetch_add(usize::from(board.fold_done(piece, 9)), Relaxed);
                    }
                });
            }
        });
        assert!(claimed.iter().all(|count| count.load(Relaxed) == 1));
        assert_eq!(last.load(Relaxed), 1);
        assert!(boards.iter().all(|board| board.is_folded(piece, 9) && !board.is_folded(piece + 1, 9)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    /// Members go through pieces at their own pace, as an allreduce does, and none ever sees what
    /// was not given to the piece at which it is.
    #[test]
    fn members_at_any_pace_see_each_piece_whole(
        members in 2usize..5,
        paces in prop::collection::vec(prop::collection::vec(0u32..30, 1..8), 4),
        len in 1usize..3000,
    ) {
        let boards = boards(members);
        let value = |piece: u64, member: usize| (piece as u8).wrapping_mul(31).wrapping_add(member as u8);
        std::thread::scope(|scope| {
            for (board, paces) in boards.iter().zip(&paces) {
                scope.spawn(move || {
                    let mut known = 0;
                    for piece in 0..100 {
                        while !board.has_room(piece, &mut known) {
                            std::thread::yield_now();
                        }
                        for _ in 0..paces[piece as usize % paces.len()] {
                            std::hint::spin_loop();
                        }
                        put(board, piece, &vec![value(piece, board.me()); len]);
                        for member in 0..board.members() {
                            while !board.has_given(piece, member) {
                                std::thread::yield_now();
                            }
                            // SAFETY: it was given, and is not taken.
                            let given = unsafe { board.given(piece, member, len) };
                            assert!(given.iter().all(|byte| *byte == value(piece, member)));
                        }
                        board.take(piece + 1);
                    }
                });
            }
        });
    }
}

#[test]
fn members_that_wait_on_one_processor_find_each_other() {
    let [one, two, three]: [Board; 3] = boards(3).try_into().unwrap();
    assert!(!one.waits_on(0) && !two.waits_on(1) && three.waits_on(0));
    assert!(!one.waits_on(1), "only the later of two moves");
    assert!(two.waits_on(1) && !three.waits_on(0));
}

#[test]
fn who_folds_is_known_to_the_others() {
    let [one, two]: [Board; 2] = boards(2).try_into().unwrap();
    assert!(!two.may_fold(0, 0));
    one.begin_folding(3);
    assert!(two.may_fold(3, 0) && !two.may_fold(2, 0) && !two.may_fold(3, 1));
    one.end_folding();
    assert!(!two.may_fold(3, 0));
}
