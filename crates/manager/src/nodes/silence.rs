//! Nodes that are connected and say nothing, because they are stopped or their machine hangs. A
//! connection does not show that for minutes, so every node is asked once a beat for a sign of
//! life.
//!
//! ```text
//!   beat      beat      beat      beat            beat
//!    | Ping    |         |  late   |        ...    |  silent
//!    |-------->|    1    |    2    |               |    5       beats without an answer
//! ```
//! From *late* on, a job goes around the node if another tree will do. From *silent* on, a job that
//! cannot do without the node is refused at once. In between such a job gives the node the time
//! that it may need under load. Beats are counted and not the time that has gone by, so a manager
//! that was stopped itself finds no node late when it goes on.

/// What is known of one node's silence.
#[derive(Default, Debug)]
pub(crate) struct Silence {
    /// When the first question was asked that the node has not answered, milliseconds since
    /// 1970-01-01 UTC.
    asked_ms: Option<u64>,
    /// The number of beats since then.
    beats: u32,
    /// Whether the manager handles something that the node has said, which may take a write to the
    /// disk. What the node says meanwhile waits.
    busy: bool,
}

impl Silence {
    /// One beat has passed. Returns whether the node is to be asked now.
    pub(crate) fn beat(&mut self, now_ms: u64) -> bool {
        if self.busy {
            return false;
        }
        if self.asked_ms.is_some() {
            self.beats = self.beats.saturating_add(1);
            return false;
        }
        self.asked_ms = Some(now_ms);
        true
    }

    /// The node has said something, which the manager handles from now on.
    pub(crate) fn end(&mut self) {
        *self = Silence { busy: true, ..Silence::default() };
    }

    /// The manager waits for the next thing that the node says.
    pub(crate) fn wait(&mut self) {
        self.busy = false;
    }

    /// Since when the node has not answered, if it is late with its answer.
    pub(crate) fn late_ms(&self) -> Option<u64> {
        self.asked_ms.filter(|_| self.beats >= LATE)
    }

    /// Since when the node has not answered, if nothing waits for it any more.
    pub(crate) fn silent_ms(&self) -> Option<u64> {
        self.asked_ms.filter(|_| self.beats >= SILENT)
    }
}

/// The number of beats without an answer from which a node is late.
const LATE: u32 = 2;
/// The number of beats without an answer from which a node is silent, which last as long as a job
/// waits for a grant.
const SILENT: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_late_before_it_is_silent_and_neither_once_it_has_answered() {
        let mut silence = Silence::default();
        assert!(silence.beat(100), "it is asked");
        for beats in 1..=6u64 {
            assert!(!silence.beat(100 + beats), "one question is enough");
            assert_eq!(silence.late_ms(), (beats >= 2).then_some(100), "{beats}");
            assert_eq!(silence.silent_ms(), (beats >= 5).then_some(100), "{beats}");
        }
        silence.end();
        assert_eq!((silence.late_ms(), silence.silent_ms()), (None, None));
        assert!((0..9).all(|beat| !silence.beat(beat)), "what it said is being dealt with");
        silence.wait();
        assert!(silence.beat(200), "it is asked again");
        assert!(!silence.beat(201));
        assert_eq!(silence.late_ms(), None);
    }
}
