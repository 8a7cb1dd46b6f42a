//! The lower end of an edge: a rank, or an inner node for which its process calls. Which process
//! does it call, when, and how long does it wait for an answer?
//!
//! ```text
//!   Due --it is time: call--> Calling --accepted--> Connected
//!    ^ ^                        |                       |
//!    | `--refused, no answer----'                       |
//!    `-----lost, or told of another placement-----------'
//! ```
//! The first calls follow each other at once, one to each candidate. After that there is a pause,
//! which doubles with each round of calls that bore no fruit. The time given to a call doubles with
//! each two that had no answer at all: where everything is slow, no rank hurries all others from
//! epoch to epoch, and a candidate that has refused was not slow.

use trib_wire::NodeId;

use super::view::View;
use crate::time::Nanos;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// To call at this time.
    Due(Nanos),
    /// Waits until this time for an answer.
    Calling(Nanos),
    Connected,
}

/// One lower end of an edge of the tree.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The node above.
    node: NodeId,
    /// How many candidates that node has.
    candidates: usize,
    /// The calls without fruit since the last connection.
    fruitless: u32,
    /// Those among them that had no answer.
    unanswered: u32,
    state: State,
}

impl Caller {
    /// The lower end of an edge to this node, which has so many candidates. It calls at once.
    pub fn new(node: NodeId, candidates: usize, now: Nanos) -> Caller {
        Caller { node, candidates: candidates.max(1), fruitless: 0, unanswered: 0, state: State::Due(now) }
    }

    /// The node above.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// When `on_timer` wants to be called.
    pub fn deadline(&self) -> Nanos {
        match self.state {
            State::Due(at) | State::Calling(at) => at,
            State::Connected => Nanos::NEVER,
        }
    }

    /// The clock has reached `deadline`. A call that had no answer has failed, which may begin a
    /// new epoch: the driver looks at the view. Returns the candidate that is to be called now with
    /// the view's placement. A call or connection that was there is over.
    pub fn on_timer(&mut self, now: Nanos, view: &mut View) -> Option<usize> {
        if now < self.deadline() {
            return None;
        }
        if let State::Calling(_) = self.state {
            self.on_failed(now, view);
        }
        let State::Due(at) = self.state else { return None };
        if now < at {
            return None;
        }
        let doubled = self.unanswered / 2;
        let span = if view.has_moved() { (CALL_MIN.0 << doubled.min(16)).min(CALL_MAX.0) } else { CALL_FIRST.0 };
        self.state = State::Calling(now + Nanos(span));
        Some(view.placement().candidate(self.node, self.candidates))
    }

    /// The called process has accepted.
    pub fn on_accepted(&mut self) {
        self.state = State::Connected;
    }

    /// Something has come over the connection: the epoch bears fruit.
    pub fn on_fruit(&mut self) {
        (self.fruitless, self.unanswered) = (0, 0);
    }

    /// The called process cannot be reached or refuses, or the call took too long. Returns whether
    /// a new epoch begins.
    pub fn on_failed(&mut self, now: Nanos, view: &mut View) -> bool {
        self.fruitless += 1;
        self.unanswered += u32::from(matches!(self.state, State::Calling(until) if now >= until));
        let rounds = self.fruitless / self.candidates as u32;
        let pause = match rounds {
            0 => Nanos(0),
            rounds => Nanos((PAUSE_MIN.0 << rounds.min(16)).min(PAUSE_MAX.0)),
        };
        self.state = State::Due(now + pause);
        view.suspect(self.node, view.epoch())
    }

    /// The connection has ended without a word, or the node above was silent for too long. Returns
    /// whether a new epoch begins.
    pub fn on_lost(&mut self, now: Nanos, view: &mut View) -> bool {
        self.on_failed(now, view)
    }

    /// There is another placement, so there is somebody else to be called, or the same process in
    /// another epoch. A pause that has begun goes on.
    pub fn on_moved(&mut self, now: Nanos) {
        if !matches!(self.state, State::Due(_)) {
            self.state = State::Due(now);
        }
    }
}

/// How long a call may take in the first epoch, in which the called process may hear of the job
/// later than the caller.
const CALL_FIRST: Nanos = Nanos::from_millis(5_000);
/// How long a first call may take in later ones, and any call.
const CALL_MIN: Nanos = Nanos::from_millis(1_000);
const CALL_MAX: Nanos = Nanos::from_millis(8_000);
/// Half the first pause between calls, and the longest one.
const PAUSE_MIN: Nanos = Nanos::from_millis(5);
const PAUSE_MAX: Nanos = Nanos::from_millis(1_000);

#[cfg(test)]
mod tests {
    use trib_wire::Epoch;

    use super::*;

    const NODE: NodeId = NodeId(4);

    #[test]
    fn candidates_are_called_in_turn_each_in_an_epoch_of_its_own() {
        let mut view = View::new(Epoch(1));
        let mut caller = Caller::new(NODE, 3, Nanos(7));
        assert_eq!(caller.on_timer(Nanos(6), &mut view), None);
        for candidate in [0, 1, 2] {
            assert_eq!(caller.on_timer(Nanos(7), &mut view), Some(candidate));
            assert_eq!(view.epoch(), Epoch(1 + candidate as u32));
            assert!(caller.on_failed(Nanos(7), &mut view));
        }
        assert!(caller.deadline() > Nanos(7), "after a round there is a pause");
        assert_eq!(caller.on_timer(caller.deadline(), &mut view), Some(0));
        caller.on_accepted();
        assert_eq!((caller.deadline(), view.placement().moves_of(NODE)), (Nanos::NEVER, 3));
    }

    #[test]
    fn calls_without_an_answer_take_longer_and_longer_but_not_for_ever() {
        let mut view = View::new(Epoch(1));
        let mut caller = Caller::new(NODE, 2, Nanos(0));
        let mut calls = vec![];
        for _ in 0..60 {
            let now = caller.deadline();
            if caller.on_timer(now, &mut view).is_some() {
                calls.push(now);
            }
        }
        let spans: Vec<u64> = calls.windows(2).map(|pair| pair[1].since(pair[0]).0 / 1_000_000).collect();
        assert_eq!(spans[0], 5_000, "nobody may have heard of the job yet");
        let later = &spans[1..];
        assert!(later.is_sorted() && later[0] == 1_010 && later[later.len() - 1] == 9_000, "{spans:?}");
        assert_eq!(u32::from(view.placement().moves_of(NODE)), caller.fruitless);
    }

    #[test]
    fn who_is_refused_waits_no_longer_for_an_answer_and_who_hears_nothing_does_after_two_calls() {
        let mut view = View::new(Epoch(1));
        let mut caller = Caller::new(NODE, 7, Nanos(0));
        view.suspect(NODE, view.epoch());
        let mut span = |caller: &mut Caller, answered| {
            let begun = caller.deadline();
            caller.on_timer(begun, &mut view);
            let until = caller.deadline();
            caller.on_failed(if answered { begun } else { until }, &mut view);
            until.since(begun).0 / 1_000_000
        };
        for _ in 0..20 {
            assert_eq!(span(&mut caller, true), 1_000);
        }
        let unanswered: Vec<u64> = (0..8).map(|_| span(&mut caller, false)).collect();
        assert_eq!(unanswered, [1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000, 8_000]);
    }

    #[test]
    fn a_connection_alone_is_no_fruit() {
        let mut view = View::new(Epoch(1));
        let mut caller = Caller::new(NODE, 1, Nanos(0));
        for lost in 1..5 {
            let now = caller.deadline();
            assert!(caller.on_timer(now, &mut view).is_some());
            caller.on_accepted();
            assert!(caller.on_lost(now, &mut view));
            assert_eq!(caller.fruitless, lost);
        }
        let paused = caller.deadline();
        caller.on_moved(Nanos(0));
        assert_eq!(caller.deadline(), paused);
        caller.on_fruit();
        assert_eq!(caller.fruitless, 0);
    }
}
