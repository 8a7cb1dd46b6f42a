//! How much each job may write, and how much work may come of what it has sent, so that a job with
//! many groups or many frames gets no more of what jobs share than one with few.
//!
//! ```text
//!   round begins --> every job: SHARE bytes of each, less what it took too much before
//!   read, settle --> has the job some left? --yes--> do it, and take off what it was
//!                            '--no--> it waits for the next round
//! ```
//!
//! This is deficit round robin over jobs. Within a job the groups of a link take turns, in the
//! link's writer. A job that has the worker to itself is not limited.

use rustc_hash::FxHashMap;
use trib_wire::JobId;

use super::hosted::Slot;

/// What the jobs of one worker have left in this round.
#[derive(Default)]
pub(super) struct Shares {
    /// What they may write.
    pub(super) writing: Budget,
    /// What the frames may weigh that are taken from them.
    pub(super) work: Budget,
    /// The logical nodes whose job may write no more.
    waiting: Vec<Slot>,
}

/// What jobs have left of one thing.
#[derive(Default)]
pub(super) struct Budget {
    left: FxHashMap<JobId, i64>,
}

impl Budget {
    fn next_round(&mut self) {
        self.left.retain(|_, left| {
            *left += SHARE;
            *left < SHARE
        });
    }

    /// How many bytes the job may take now; 0 if it has to wait for the next round.
    pub(super) fn left(&self, job: JobId) -> u64 {
        self.left.get(&job).map_or(SHARE, |left| (*left).max(0)) as u64
    }

    /// The job has taken so much, which may be a little more than it had left.
    pub(super) fn spend(&mut self, job: JobId, bytes: u64) {
        *self.left.entry(job).or_insert(SHARE) -= bytes as i64;
    }
}

impl Shares {
    /// Begins the next round; returns the nodes that have waited for it. Nodes of one job take its
    /// share in this order, so each round begins with another one.
    pub(super) fn next_round(&mut self) -> Vec<Slot> {
        self.writing.next_round();
        self.work.next_round();
        if !self.waiting.is_empty() {
            self.waiting.rotate_left(1);
        }
        std::mem::take(&mut self.waiting)
    }

    /// This node waits for the next round.
    pub(super) fn wait(&mut self, slot: Slot) {
        if !self.waiting.contains(&slot) {
            self.waiting.push(slot);
        }
    }

    /// Whether a node waits for the next round.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// The bytes that a job may write in a round, and that what is taken from it may weigh. It is as
/// much as is read from one link in a round.
const SHARE: i64 = 512 * 1024;

#[cfg(test)]
mod tests {
    use std::io::{self, IoSlice, Write};

    use trib_transport::landing::Source;
    use trib_transport::tcp::{FlushEnd, StreamWriter};
    use trib_wire::auth::FrameKey;
    use trib_wire::{ChildIndex, Epoch, GroupIndex, Header, Kind, NodeId};

    use super::*;

    /// A socket whose far end reads faster than anybody writes.
    struct Fast;

    impl Write for Fast {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            Ok(slices.iter().map(|slice| slice.len()).sum())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Segment;

    impl Source for Segment {
        fn bytes(&self) -> &[u8] {
            &[0; SEGMENT]
        }
    }

    const SEGMENT: usize = 16 * 1024;

    fn queue(groups: u32, segments: u32) -> StreamWriter<Segment> {
        let mut writer = StreamWriter::new(FrameKey([5; 16]), 4 << 10);
        for n in 0..segments {
            let mut header = Header::new(Kind::Result, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
            (header.group, header.payload_len) = (GroupIndex(n % groups), SEGMENT as u32);
            writer.push_data(&header, Some(Segment));
        }
        writer
    }

    #[test]
    fn a_job_with_a_thousand_groups_gets_no_more_than_one_with_a_single_group() {
        let mut jobs = [(JobId(1), queue(1_000, 4_000)), (JobId(2), queue(1, 1_000))];
        let mut shares = Shares::default();
        // While both are backlogged, neither is ahead by more than a share and a system call.
        while jobs.iter().all(|(_, writer)| !writer.is_idle()) {
            shares.next_round();
            for (job, writer) in &mut jobs {
                // A job's node settles after every event, and some jobs have more events.
                for _ in 0..5 {
                    let most = shares.writing.left(*job);
                    if most > 0 {
                        let before = writer.bytes();
                        assert_ne!(writer.flush_some(&mut Fast, most).unwrap(), FlushEnd::Blocked);
                        shares.writing.spend(*job, writer.bytes() - before);
                    }
                }
            }
            let [many, one] = [0, 1].map(|n| jobs[n].1.bytes() as i64);
            assert!((many - one).abs() <= SHARE + 512 * 1024, "{many} and {one} bytes");
        }
        assert!(jobs[1].1.is_idle() && !jobs[0].1.is_idle());
    }

    #[test]
    fn what_a_job_wrote_too_much_is_taken_off_and_what_it_did_not_write_is_not_saved() {
        let mut shares = Shares::default();
        shares.writing.spend(JobId(1), 3 * SHARE as u64);
        assert_eq!((shares.writing.left(JobId(1)), shares.writing.left(JobId(2))), (0, SHARE as u64));
        for left in [0, 0, SHARE as u64, SHARE as u64] {
            shares.next_round();
            assert_eq!(shares.writing.left(JobId(1)), left);
        }
        assert!(shares.writing.left.is_empty(), "jobs that are gone are forgotten");
    }

    #[test]
    fn nodes_of_one_job_take_turns_in_what_it_may_write() {
        let mut shares = Shares::default();
        let mut written = [0; 3];
        (0..3).for_each(|slot| shares.wait(slot));
        for _ in 0..30 {
            for slot in shares.next_round() {
                // Each of them would write all that the job may.
                let most = shares.writing.left(JobId(1));
                shares.writing.spend(JobId(1), most);
                written[slot] += most as i64;
                shares.wait(slot);
            }
        }
        assert_eq!(written, [10 * SHARE; 3]);
    }

    #[test]
    fn a_node_waits_once() {
        let mut shares = Shares::default();
        shares.wait(7);
        shares.wait(7);
        assert!(shares.is_awaited());
        assert_eq!(shares.next_round(), [7]);
        assert!(!shares.is_awaited());
    }
}
