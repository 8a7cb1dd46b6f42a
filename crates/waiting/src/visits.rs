//! When a waiting thread next visits other work, and for how long: a function of its caller's,
//! which may have found nothing to do for minutes, and then much.
//!
//! ```text
//!   the wait begins --> idle pauses, which grow with the wait
//!                             ^                   |
//!        nothing for a while, |                   | a visit finds work
//!        ever longer pauses   |                   v
//!                             |           close pauses, which the work pays
//!                             |                   | its credit is used up
//!                             |                   v
//!                             '------------ busy pauses, which grow with the time since then
//! ```
//!
//! The function does not say whether it found work, because the runtimes behind it do not say so. A
//! visit calls it several times in a row. The first calls find cold caches and say little. Calls
//! after them take a microsecond or two each when they find nothing, so that those which take
//! several times as long have found something. Of a message that was waiting the first calls leave
//! nothing, but its sender may answer at once. So a visit goes on for a while: the rarer visits
//! are, the longer.
//!
//! Close visits find what comes at once, but they use a core by themselves, and a call that is dear
//! only by chance must not keep them going. So they are paid: work earns several times the
//! processor time that it took, and visits that are close spend what they use. A stream earns more
//! than it spends; a call that was dear by chance earns a visit or two.
//!
//! A visit is no small thing where ranks share a core: what it calls may give way to others, and
//! each visit of a rank that only waits for one of these takes the core from it. Most waits end by
//! themselves, and a program's waits are alike. So the first visit is due when a wait has taken
//! several times as long as waits usually take, unless visits found work lately.

use std::time::Duration;

use crate::clock::Reading;
use crate::pause::Pause;
use crate::processor::{Machine, Processor};

/// How long to pause between two visits.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// While there is no work; it grows with the wait. The first one is longer, up to the longest,
    /// where waits usually take long.
    pub idle: Pause,
    /// After a visit that found work, as long as that pays. It and the next one grow with the time
    /// since that visit.
    pub close: Pause,
    /// Afterwards, until it is as long as an idle pause.
    pub busy: Pause,
}

/// The visits of one wait. Times count from its beginning.
#[derive(Debug)]
pub struct Visits {
    rounds: Rounds,
    began: Reading,
    last: Duration,
    /// When a visit last found work.
    found: Option<Duration>,
    /// How much processor time visits may use that are close to each other.
    credit: Duration,
    meter: Meter,
}

/// What a visit found.
#[derive(Clone, Copy, Default)]
struct Finds {
    /// How many calls seem to have found something.
    count: u32,
    /// The processor time that they took.
    work: Duration,
}

/// What is kept from wait to wait: what a call costs that finds nothing, which every machine and
/// every caller tells anew, and how long waits take.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The least that one of the last `LATELY` calls used, or of a few more.
    least: Duration,
    /// The least since calls were last counted from 0.
    next: Duration,
    count: u32,
    /// How long waits took on average, the latest ones above all, since visits last found work.
    usual: Duration,
    /// Every second wait waits twice as long for its first visit. So waits that end by chance when
    /// a visit has just been differ from those that it ends: every second one ends without.
    waits_longer: bool,
}

impl Visits {
    /// A wait begins.
    pub fn begin(rounds: Rounds, meter: Meter, now: Reading) -> Visits {
        Visits { rounds, began: now, last: Duration::ZERO, found: None, credit: Duration::ZERO, meter }
    }

    /// When the next visit is due.
    pub fn due(&self) -> Duration {
        self.last + self.pause()
    }

    /// What this wait and those before it have learnt. `over` says that what was waited for has
    /// come, and not the end of the caller's patience.
    pub fn end(mut self, now: Reading, over: bool) -> Meter {
        let took = Duration::from_nanos(now.since(self.began));
        let usual = self.meter.usual;
        self.meter.usual = if self.found.is_some() || !over {
            Duration::ZERO
        } else if !self.last.is_zero() && took.saturating_sub(self.last) < self.rounds.idle.first() / 2 {
            // Perhaps the visit has ended the wait, by work too short to be told from none. Where
            // all waits end so, they must not teach to visit ever later.
            usual - usual / 8
        } else {
            (usual * (WEIGHT - 1) + took.min(self.rounds.idle.longest())) / WEIGHT
        };
        self.meter.waits_longer = !self.meter.waits_longer;
        self.meter
    }

    /// The pause while there is no work.
    fn idle(&self) -> Duration {
        let idle = self.rounds.idle.after(self.last);
        if !self.last.is_zero() {
            return idle;
        }
        let first = idle.max(self.meter.usual * TIMES_USUAL) * if self.meter.waits_longer { 2 } else { 1 };
        first.min(self.rounds.idle.longest())
    }

    fn pause(&self) -> Duration {
        let idle = self.idle();
        let rounds = if self.credit.is_zero() { &self.rounds.busy } else { &self.rounds.close };
        let busy = self.found.map_or(idle, |found| rounds.after(self.last.saturating_sub(found)));
        idle.min(busy)
    }

    /// Calls the function as often as it pays.
    pub fn visit(&mut self, call: impl FnMut()) {
        self.visit_on(&Machine, call);
    }

    fn visit_on(&mut self, core: &impl Processor, call: impl FnMut()) {
        let (pause, idle) = (self.pause(), self.idle());
        let look = if pause < idle { LOOK_MAX } else { LOOK_MAX.min(pause / LOOK_PART) };
        let before = core.time_used();
        let finds = self.meter.finds(core, look, call);
        let used = core.time_used().saturating_sub(before);
        self.last = Duration::from_nanos(core.now().since(self.began));
        if finds.count >= FINDS_MIN {
            self.found = Some(self.last);
        }
        let earned = self.credit + finds.work.saturating_mul(EARNED);
        self.credit = earned.min(CREDIT_MAX + used).saturating_sub(used);
    }
}

impl Meter {
    /// Calls the function until it has found nothing for `look`.
    fn finds(&mut self, core: &impl Processor, mut look: Duration, mut call: impl FnMut()) -> Finds {
        let mut cost = || {
            let before = core.time_used();
            call();
            core.time_used().saturating_sub(before)
        };
        let begin = core.now();
        let mut finds = Finds::default();
        for _ in 0..COLD_CALLS {
            let cost = cost();
            if cost > COLD_COST_MAX {
                (finds.count, finds.work, look) = (FINDS_MIN, finds.work + cost, LOOK_MAX);
            }
        }
        let (mut quiet, mut quiet_from) = (0, core.now());
        loop {
            let now = core.now();
            let is_quiet = quiet >= CALLS_MIN && now.since(quiet_from) >= look.as_nanos() as u64;
            if is_quiet || now.since(begin) > VISIT_MAX.as_nanos() as u64 {
                return finds;
            }
            core.give_way();
            let is_cold = core.now().since(now) > OTHERS_RAN;
            quiet += 1;
            let cost = cost();
            if !is_cold && self.is_exceeded(cost) {
                (finds.count, finds.work, look) = (finds.count + 1, finds.work + cost, LOOK_MAX);
                (quiet, quiet_from) = (0, core.now());
            }
        }
    }

    fn is_exceeded(&mut self, cost: Duration) -> bool {
        self.next = self.next.min(cost);
        self.least = self.least.min(cost);
        self.count += 1;
        if self.count == LATELY {
            (self.least, self.next, self.count) = (self.next, Duration::MAX, 0);
        }
        cost > self.least.saturating_mul(FACTOR).clamp(COST_MIN, COST_MAX)
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { least: Duration::MAX, next: Duration::MAX, count: 0, usual: Duration::ZERO, waits_longer: false }
    }
}

/// The first visit is due after so many times as long as waits usually take: most end before.
const TIMES_USUAL: u32 = 4;
/// Of so many waits the latest one counts for one.
const WEIGHT: u32 = 16;
/// The share of an idle pause for which the visit after it looks at least.
const LOOK_PART: u32 = 100;
/// A visit need not look for longer, and looks for so long while there is work: it is the time of a
/// message to another host and back.
const LOOK_MAX: Duration = Duration::from_micros(30);
/// The first calls of a visit find cold caches, so that their cost says little.
const COLD_CALLS: u32 = 2;
/// In nanoseconds. After a yield that took longer, too, because another thread has run.
const OTHERS_RAN: u64 = 10_000;
/// A call that uses more has moved a long message. Cold caches, and an interrupt on top, were seen
/// to cost half of it on a machine that swaps between many processes.
const COLD_COST_MAX: Duration = Duration::from_micros(500);
/// The fewest calls after those.
const CALLS_MIN: u32 = 2;
/// A visit ends even if all calls find work, because the thread waits for something else.
const VISIT_MAX: Duration = Duration::from_micros(500);
/// One call may cost more by chance, or because a runtime looks at some of its sources only every
/// few milliseconds.
const FINDS_MIN: u32 = 2;
/// Work earns so many times what it took. Calls that are dear by chance are less than a third of
/// what visits use, so that they earn less than they cost.
const EARNED: u32 = 3;
/// A sender that waits for a processor is away for some milliseconds. Through 5 of them visits go
/// on that are a tenth of the time apart.
const CREDIT_MAX: Duration = Duration::from_millis(2);
/// A call that finds nothing seldom costs so many times the least.
const FACTOR: u32 = 3;
/// Less is never work. A message of any length took more.
const COST_MIN: Duration = Duration::from_micros(4);
/// More is always work, also after a time in which every call found some.
const COST_MAX: Duration = Duration::from_micros(50);
/// While every call finds work, this is a second.
const LATELY: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Simulated;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    const ROUNDS: Rounds = Rounds {
        idle: Pause::growing(ms(1), ms(20), 100),
        close: Pause::growing(us(5), ms(20), 10),
        busy: Pause::growing(ms(1), ms(20), 3),
    };
    /// What calls cost that find nothing: the first of a visit, and the next ones.
    const COLD: Duration = us(25);
    const WARM: Duration = us(1);

    /// A wait on a simulated core, whose visits happen when they are due.
    struct Wait {
        core: Simulated,
        began: Reading,
        visits: Visits,
        count: u32,
    }

    impl Wait {
        fn begins() -> Wait {
            let core = Simulated::yielding_for(500);
            let began = core.now();
            Wait { core, began, visits: Visits::begin(ROUNDS, Meter::default(), began), count: 0 }
        }

        fn now(&self) -> Duration {
            Duration::from_nanos(self.core.now().since(self.began))
        }

        /// Makes the next visit; `work` says at a call's time what the call costs beyond finding
        /// nothing.
        fn visit(&mut self, mut work: impl FnMut(Duration) -> Duration) {
            let (core, began) = (&self.core, self.began);
            let due = self.visits.due();
            core.pass(due.saturating_sub(Duration::from_nanos(core.now().since(began))));
            let mut idle = COLD;
            self.visits.visit_on(core, || {
                core.compute(idle + work(Duration::from_nanos(core.now().since(began))));
                idle = WARM;
            });
            self.count += 1;
        }

        /// Makes all visits that are due within `span`; returns how many, and what they cost.
        fn go_on(&mut self, span: Duration, mut work: impl FnMut(Duration) -> Duration) -> (u32, Duration) {
            let (count, used, end) = (self.count, self.core.time_used(), self.now() + span);
            while self.visits.due() < end {
                self.visit(&mut work);
            }
            (self.count - count, self.core.time_used() - used)
        }
    }

    fn nothing(_: Duration) -> Duration {
        Duration::ZERO
    }

    /// A sender that stops while `room` bytes wait to be taken, and a link of so many bytes per
    /// second.
    struct Sender {
        rate: u64,
        room: u64,
        last: Option<Duration>,
        taken: u64,
    }

    impl Sender {
        fn new(rate: u64, room: u64) -> Sender {
            Sender { rate, room, last: None, taken: 0 }
        }

        /// Takes what has come; returns what that costs: a copy at 4 GB/s, and a system call.
        fn take(&mut self, now: Duration) -> Duration {
            let come = self.last.map_or(self.room, |last| (now - last).as_nanos() as u64 * self.rate / 1_000_000_000);
            self.last = Some(now);
            self.taken += come.min(self.room);
            us(4) + Duration::from_nanos(come.min(self.room) / 4)
        }
    }

    #[test]
    fn visits_that_find_nothing_become_rare_and_cheap() {
        let mut wait = Wait::begins();
        let (count, _) = wait.go_on(ms(200), nothing);
        assert!((150..=170).contains(&count), "{count}");
        wait.go_on(ms(1_800), nothing);
        let (_, cost) = wait.go_on(ms(1_000), nothing);
        assert!(cost < ms(10), "{cost:?} in the third second");
        wait.go_on(ms(7_000), nothing);
        let (count, cost) = wait.go_on(ms(2_000), nothing);
        assert!(count <= 100 && cost < ms(10), "{count} visits, {cost:?}");
    }

    #[test]
    fn the_first_visit_comes_when_a_wait_takes_longer_than_waits_do() {
        // When the first visit is due, how many there are, and what is learnt.
        let wait = |meter, took: Duration, work| {
            let mut wait = Wait::begins();
            wait.visits = Visits::begin(ROUNDS, meter, wait.began);
            let first = wait.visits.due();
            let (count, _) = wait.go_on(took, |_| work);
            wait.core.pass(took.saturating_sub(wait.now()));
            (first, count, wait.visits.end(wait.core.now(), true))
        };
        for span in [us(1_200), us(1_600), ms(2), ms(3)] {
            let mut told = (ms(0), 0, Meter::default());
            for _ in 0..101 {
                told = wait(told.2, span, Duration::ZERO);
            }
            assert!(told.0 > span * 7 / 2 && told.0 <= span * 4 && told.1 == 0, "{:?}, {} visits", told.0, told.1);
            told = wait(told.2, ms(50), us(100));
            assert!(told.1 > 0);
            told = wait(told.2, span, Duration::ZERO);
            assert!(told.0 == ms(1) && told.1 > 0, "after visits that found work");
            for _ in 0..100 {
                told = wait(told.2, ms(500), Duration::ZERO);
            }
            assert_eq!(told.0, ms(20), "no visit is later");
        }
    }

    #[test]
    fn waits_that_visits_end_do_not_make_visits_later() {
        let (mut meter, mut longest) = (Meter::default(), ms(0));
        for _ in 0..500 {
            let mut wait = Wait::begins();
            wait.visits = Visits::begin(ROUNDS, meter, wait.began);
            longest = longest.max(wait.visits.due());
            // All of the work is done by the first call, and the answer comes at once.
            wait.visit(nothing);
            wait.core.pass(us(50));
            meter = wait.visits.end(wait.core.now(), true);
        }
        assert_eq!(longest, ms(2));
    }

    #[test]
    fn a_caller_that_waits_in_slices_is_visited_in_each() {
        let mut meter = Meter::default();
        for _ in 0..100 {
            let mut wait = Wait::begins();
            wait.visits = Visits::begin(ROUNDS, meter, wait.began);
            assert!(wait.visits.due() <= ms(2));
            wait.go_on(ms(10), nothing);
            meter = wait.visits.end(wait.core.now(), false);
        }
    }

    #[test]
    fn traffic_after_a_minute_gets_on_as_fast_as_at_once() {
        for room in [32 << 10, 64 << 10, 256 << 10] {
            let taken = [0, 60_000].map(|waited| {
                let mut wait = Wait::begins();
                wait.go_on(ms(10 + waited), nothing);
                let mut sender = Sender::new(1_250_000_000, room);
                wait.visit(|now| sender.take(now));
                wait.go_on(ms(200), |now| sender.take(now));
                sender.taken
            });
            let [at_once, afterwards] = taken;
            assert!(afterwards * 10 >= at_once * 9, "{afterwards} of {at_once} bytes");
            // 10 Gbit/s are 250 MB in this time.
            assert!(at_once > 235_000_000, "{at_once}");
        }
    }

    #[test]
    fn questions_and_answers_get_on_as_fast_as_at_once() {
        let answered = [0, 60_000].map(|waited| {
            let mut wait = Wait::begins();
            wait.go_on(ms(10 + waited), nothing);
            // The next question comes 20 us after an answer.
            let (mut asks, mut count) = (wait.now(), 0);
            let mut answer = |now| {
                if now < asks {
                    return Duration::ZERO;
                }
                (asks, count) = (now + us(20), count + 1);
                us(6)
            };
            wait.go_on(ms(500), &mut answer);
            count
        });
        let [at_once, afterwards] = answered;
        assert!(afterwards * 10 >= at_once * 9, "{afterwards} answers, {at_once} at once");
        assert!(at_once > 10_000, "{at_once} in half a second");
    }

    #[test]
    fn traffic_with_gaps_is_delayed_by_a_third_of_a_gap() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), nothing);
        for _ in 0..10 {
            wait.visit(|_| us(100));
            let found = wait.now();
            wait.go_on(ms(8), nothing);
            assert!(wait.visits.due() - found <= us(11_000));
        }
    }

    #[test]
    fn a_visit_that_only_seemed_to_find_work_costs_little() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), nothing);
        let (_, usual) = wait.go_on(ms(1_000), nothing);
        wait.visit(|_| us(100));
        let (_, cost) = wait.go_on(ms(1_000), nothing);
        assert!(cost - usual < ms(2), "{cost:?}, usually {usual:?}");
        assert!(wait.go_on(ms(1_000), nothing).0 <= 50);
    }

    #[test]
    fn one_dear_call_is_chance() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), nothing);
        let mut calls = 0;
        wait.visit(|_| {
            calls += 1;
            if calls == 3 { us(40) } else { Duration::ZERO }
        });
        assert!(wait.visits.due() - wait.now() >= ms(20));
    }

    #[test]
    fn a_long_message_is_work_though_one_call_moves_all_of_it() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), nothing);
        let mut calls = 0;
        wait.visit(|_| {
            calls += 1;
            if calls == 1 { ms(5) } else { Duration::ZERO }
        });
        assert_eq!(wait.visits.due() - wait.now(), us(5));
    }

    #[test]
    fn calls_that_are_dear_by_chance_pay_no_close_visits() {
        // With one of 20, visits that are paid more stay close and use 730 ms.
        for (every, most) in [(20, ms(300)), (30, ms(20)), (1_000, ms(20))] {
            let mut wait = Wait::begins();
            wait.go_on(ms(60_000), nothing);
            wait.visit(|_| us(100));
            let mut calls = 0;
            let (_, cost) = wait.go_on(ms(1_000), |_| {
                calls += 1;
                if calls % every == 0 { us(6) } else { Duration::ZERO }
            });
            assert!(cost < most, "one of {every}: {cost:?}");
        }
    }

    #[test]
    fn calls_that_always_cost_much_are_no_work() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), |_| us(10));
        let (count, _) = wait.go_on(ms(1_000), |_| us(10));
        assert!(count <= 50, "{count}");
    }

    #[test]
    fn calls_that_begin_to_cost_much_are_no_work_after_a_while() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), nothing);
        wait.go_on(ms(5_000), |_| us(8));
        let (count, _) = wait.go_on(ms(1_000), |_| us(8));
        assert!(count <= 50, "{count}");
    }

    /// A sender that gets no processor for `away` after each message that was taken.
    fn taken_from_one_who_is_away(away: Duration, waited: Duration) -> u32 {
        let mut wait = Wait::begins();
        wait.go_on(ms(10) + waited, nothing);
        let (mut sends, mut count) = (wait.now(), 0);
        let mut take = |now| {
            if now < sends {
                return Duration::ZERO;
            }
            (sends, count) = (now + away, count + 1);
            us(600)
        };
        // The first visit after the wait is as late as it may be.
        wait.visit(&mut take);
        wait.go_on(ms(200), &mut take);
        count
    }

    #[test]
    fn a_sender_that_waits_for_its_own_processor_gets_on_as_fast_as_at_once() {
        for away in [us(300), ms(1), ms(3), ms(8)] {
            let [at_once, afterwards] = [0, 60_000].map(|waited| taken_from_one_who_is_away(away, ms(waited)));
            assert!(afterwards * 10 >= at_once * 9, "{away:?}: {afterwards} messages, {at_once} at once");
        }
    }

    #[test]
    fn calls_behind_another_thread_are_no_work() {
        let mut wait = Wait::begins();
        wait.go_on(ms(60_000), nothing);
        wait.core.yield_ns.set(15_000);
        let (count, _) = wait.go_on(ms(1_000), |_| us(20));
        assert!(count <= 50, "{count}");
    }

    #[test]
    fn a_visit_ends_though_every_call_finds_work() {
        let mut wait = Wait::begins();
        wait.go_on(ms(3_000), nothing);
        let (count, cost) = wait.go_on(ms(3_000), |_| us(60));
        assert!(count > 4_000 && cost > ms(2_000), "{count} visits, {cost:?}");
    }
}
