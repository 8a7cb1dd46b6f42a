//! Whether datagrams get through one edge, judged by what becomes of questions about one fragment.
//!
//! A lost datagram is no fault, a late rank is none, and neither is a side without a processor. So
//! what counts is what repeats itself about one fragment while this side watched, as often and for
//! as long as chance does not do it:
//!
//! ```text
//!   lower end   asks, and nothing comes, though the stream brings signs of life   DatagramsBlocked
//!               asks, and hears each time that what it sent again is not there    DatagramTooLong
//!   upper end   is asked again and again for the result that it sends each time   ResultLost
//! ```
//!
//! Resends are measured against the questions themselves, which are short and take the same way:
//! if a resend were lost only as often as a question or its answer, then of so many resends
//! `RESENDS_MIN` would have got through.

use trib_wire::Reason;

use crate::time::Nanos;

/// So many questions without an answer, over so long, are no chance.
const QUESTIONS_MIN: u64 = 30;
const SILENCE_MIN: Nanos = Nanos::from_millis(10_000);
/// So many resends that should have got through, over so long, are none either.
const RESENDS_MIN: u64 = 20;
const RESENT_MIN: Nanos = Nanos::from_millis(5_000);
/// So many results, to one child about one fragment, over so long, are none either.
const RESULTS_MIN: u64 = 40;
const ANSWERED_MIN: Nanos = Nanos::from_millis(8_000);
/// A longer pause between two questions is one in which a side slept, so that neither watched.
const WATCHED_MAX: Nanos = Nanos::from_millis(1_500);

/// Something that happens again and again, as far as this side has watched.
#[derive(Clone, Copy, Debug, Default)]
struct Repeats {
    last: Option<Nanos>,
    times: u64,
    span: Nanos,
}

impl Repeats {
    /// A pause that nobody watched neither counts nor forgives.
    fn again(&mut self, now: Nanos) {
        let Some(last) = self.last.replace(now) else { return };
        let pause = now.since(last);
        if pause <= WATCHED_MAX {
            self.times += 1;
            self.span = self.span + pause;
        }
    }

    /// What has repeated itself so far. What comes is counted anew.
    fn take(&mut self) -> Repeats {
        core::mem::replace(self, Repeats { last: self.last, ..Repeats::default() })
    }

    fn add(&mut self, other: Repeats) {
        self.times += other.times;
        self.span = self.span + other.span;
    }

    fn is_beyond(&self, times: u64, span: Nanos) -> bool {
        self.times >= times && self.span >= span
    }
}

/// The lower end of an edge: its questions about one fragment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Questions {
    asked: u64,
    /// The last question has no answer yet.
    open: bool,
    /// What was unanswered since the upper end last gave a sign of life on its stream.
    unanswered: Repeats,
    /// What was unanswered while it gave signs of life.
    though_alive: Repeats,
    signs: u64,
    fruitless: Repeats,
}

impl Questions {
    /// A question goes out. `signs` counts what the stream has brought so far; a live upper end
    /// gives a sign of life every `heartbeat`. What it gives at once after it was cut off for long
    /// says nothing of the time before. Returns why the group cannot go on, if no question gets an
    /// answer.
    pub(crate) fn ask(&mut self, now: Nanos, signs: u64, heartbeat: Nanos) -> Option<Reason> {
        if core::mem::replace(&mut self.signs, signs) != signs {
            let before = self.unanswered.take();
            if before.span.0 <= 2 * heartbeat.0 {
                self.though_alive.add(before);
            }
        }
        self.asked += 1;
        self.open = true;
        self.unanswered.again(now);
        self.though_alive.is_beyond(QUESTIONS_MIN, SILENCE_MIN).then_some(Reason::DatagramsBlocked)
    }

    /// A question is answered: the contribution is there, or it is not. Returns why the group
    /// cannot go on, if what was sent never arrives.
    pub(crate) fn answer(&mut self, now: Nanos, is_there: bool) -> Option<Reason> {
        if !core::mem::take(&mut self.open) {
            return None;
        }
        (self.unanswered, self.though_alive) = Default::default();
        if is_there {
            (self.asked, self.fruitless) = Default::default();
            return None;
        }
        self.fruitless.again(now);
        let answers = self.fruitless.times;
        // The part of the questions that was answered, of all resends.
        let due = answers.saturating_mul(answers) / self.asked.max(1);
        let is_long = due >= RESENDS_MIN && self.fruitless.is_beyond(RESENDS_MIN, RESENT_MIN);
        is_long.then_some(Reason::DatagramTooLong)
    }
}

/// The upper end of an edge: the results for which its child asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    seq: u64,
    given: Repeats,
}

impl Answers {
    /// The result of a fragment is sent because the child has asked for it. Returns why the group
    /// cannot go on, if it never arrives. `patience` is how long the child may hear nothing at all
    /// until it goes to another epoch, if it can: where the way down is cut, streams included, that
    /// comes first, and nothing fails.
    pub(crate) fn give(&mut self, now: Nanos, seq: u64, patience: Nanos) -> Option<Reason> {
        if self.seq != seq {
            *self = Answers { seq, given: Repeats::default() };
        }
        self.given.again(now);
        let span = ANSWERED_MIN.max(patience + Nanos(patience.0 / 2));
        self.given.is_beyond(RESULTS_MIN, span).then_some(Reason::ResultLost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// When the first of these questions, one every `pause`, meets a verdict.
    fn first(pause: u64, mut step: impl FnMut(Nanos) -> Option<Reason>) -> Option<(Nanos, Reason)> {
        (1..1_000).map(|n| ms(n * pause)).find_map(|now| step(now).map(|reason| (now, reason)))
    }

    #[test]
    fn a_node_that_lives_and_answers_no_question_is_found_out() {
        let mut questions = Questions::default();
        let found = first(100, |now| questions.ask(now, now.0 / 1_000_000_000, ms(1_000)));
        let (at, reason) = found.expect("nothing is ever answered");
        assert_eq!(reason, Reason::DatagramsBlocked);
        assert!(ms(10_000) <= at && at <= ms(11_500), "{at}");
    }

    #[test]
    fn a_node_that_gives_no_sign_of_life_is_not_judged_here() {
        let mut questions = Questions::default();
        assert_eq!(first(100, |now| questions.ask(now, 7, ms(1_000))), None);
    }

    #[test]
    fn signs_of_life_that_all_come_after_a_long_silence_prove_nothing_of_it() {
        let mut questions = Questions::default();
        let found = first(100, |now| questions.ask(now, now.0 / 20_000_000_000, ms(1_000)));
        assert_eq!(found, None, "the way was cut each time, and what waited came at once");
    }

    #[test]
    fn one_answer_makes_up_for_all_questions_before_it() {
        let mut questions = Questions::default();
        let found = first(100, |now| {
            let verdict = questions.ask(now, now.0, ms(1_000));
            if now.0 % 9_000_000_000 == 0 {
                assert_eq!(questions.answer(now, true), None);
            }
            verdict
        });
        assert_eq!(found, None);
    }

    #[test]
    fn questions_that_are_far_apart_prove_nothing() {
        let mut questions = Questions::default();
        assert_eq!(first(1_600, |now| questions.ask(now, now.0, ms(1_000))), None);
        let mut answers = Answers::default();
        assert_eq!(first(1_600, |now| answers.give(now, 1, ms(0))), None);
    }

    #[test]
    fn resends_that_never_arrive_are_found_out() {
        let mut questions = Questions::default();
        let found = first(100, |now| questions.ask(now, 0, ms(1_000)).or(questions.answer(now, false)));
        let (at, reason) = found.expect("nothing ever arrives");
        assert_eq!(reason, Reason::DatagramTooLong);
        assert!(ms(5_000) <= at && at <= ms(6_000), "{at}");
    }

    #[test]
    fn where_most_questions_are_lost_more_resends_may_be() {
        let mut questions = Questions::default();
        let mut resends = 0;
        let found = first(100, |now| {
            let mut verdict = questions.ask(now, 0, ms(1_000));
            if now.0 / 100_000_000 % 10 == 0 {
                resends += 1;
                verdict = verdict.or(questions.answer(now, false));
            }
            verdict
        });
        assert!(found.is_none() && resends == 99, "{found:?} after {resends}");
    }

    #[test]
    fn an_answer_counts_once_however_often_it_comes() {
        let mut questions = Questions::default();
        assert_eq!(questions.ask(ms(1), 0, ms(1_000)), None);
        assert_eq!(first(100, |now| questions.answer(now, false)), None);
    }

    #[test]
    fn a_result_for_which_a_child_asks_for_ever_is_found_out() {
        let mut answers = Answers::default();
        let (at, reason) = first(100, |now| answers.give(now, 3, ms(5_000))).expect("it never arrives");
        assert_eq!(reason, Reason::ResultLost);
        assert!(ms(8_000) <= at && at <= ms(9_000), "{at}");
        let mut answers = Answers::default();
        assert_eq!(first(100, |now| answers.give(now, now.0 / 4_000_000_000, ms(5_000))), None);
    }

    #[test]
    fn a_child_that_has_become_patient_has_longer_to_hear_that_nothing_comes() {
        let mut answers = Answers::default();
        let (at, _) = first(100, |now| answers.give(now, 3, ms(20_000))).expect("it never arrives");
        assert!(ms(30_000) <= at && at <= ms(31_000), "{at}");
    }
}
