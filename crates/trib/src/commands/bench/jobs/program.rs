//! One job: what its ranks do between joining and leaving.

use std::time::{Duration, Instant};

use trib_client::{Context, DataType, Error, Group, Params, RankList, ReduceOp};

use crate::exchange::Exchange;

/// What every job does.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) manager: Option<String>,
    pub(super) ranks: u32,
    pub(super) hosts: Vec<String>,
    pub(super) groups: u32,
    pub(super) operations: u32,
    pub(super) hold: Duration,
    pub(super) patience: Duration,
}

/// How one job went.
#[derive(Debug)]
pub(super) struct Run {
    /// Microseconds from asking to being connected, in the try that succeeded.
    pub(super) joined_us: f64,
    /// Microseconds from then until its last group was ready.
    pub(super) grouped_us: f64,
    /// How many tries came before it.
    pub(super) retries: u32,
}

impl Program {
    /// Runs one job to its end.
    pub(super) fn run(&self) -> Result<Run, Error> {
        let start = Instant::now();
        let mut retries = 0;
        loop {
            match self.attempt(retries) {
                // Admission is all or nothing, so a job that was not admitted has left nothing
                // behind.
                Err(Failed::Join(Error::Manager(_))) if start.elapsed() < self.patience => {
                    retries += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(Failed::Join(error) | Failed::Later(error)) => return Err(error),
                Ok(run) => return Ok(run),
            }
        }
    }

    fn attempt(&self, retries: u32) -> Result<Run, Failed> {
        std::thread::scope(|scope| {
            let ranks: Vec<_> = Exchange::among(self.ranks)
                .into_iter()
                .zip(0..)
                .map(|(exchange, rank)| scope.spawn(move || self.rank(rank, exchange)))
                .collect();
            let ended: Vec<_> = ranks.into_iter().map(|rank| rank.join().expect("a rank returns its error")).collect();
            let mut run = None;
            for rank in ended {
                let (joined_us, grouped_us) = rank?;
                run.get_or_insert(Run { joined_us, grouped_us, retries });
            }
            Ok(run.expect("a job has a rank"))
        })
    }

    fn rank(&self, rank: u32, exchange: Exchange) -> Result<(f64, f64), Failed> {
        let start = Instant::now();
        let at = rank as usize % self.hosts.len().max(1);
        let params = Params {
            manager: self.manager.clone(),
            host: self.hosts.get(at).cloned(),
            oob: Some(Box::new(exchange)),
            ..Params::new(rank, self.ranks)
        };
        let context = Context::join(params).map_err(Failed::Join)?;
        let joined = start.elapsed();
        let groups = self.make_groups(&context).map_err(Failed::Later)?;
        let grouped = start.elapsed() - joined;
        for round in 0..self.operations {
            for group in &groups {
                self.reduce(group, rank, round).map_err(Failed::Later)?;
            }
        }
        std::thread::sleep(self.hold);
        groups.into_iter().try_for_each(Group::free).map_err(Failed::Later)?;
        context.finalize().map_err(Failed::Later)?;
        Ok((joined.as_secs_f64() * 1e6, grouped.as_secs_f64() * 1e6))
    }

    /// Starts all groups before it waits for the first: a group costs a round trip, but ten
    /// thousand groups need not cost ten thousand round trips.
    fn make_groups(&self, context: &Context) -> Result<Vec<Group>, Error> {
        let members = RankList::world(self.ranks);
        let started: Vec<_> =
            (0..self.groups).map(|tag| context.start_group(members.clone(), tag.into())).collect::<Result<_, _>>()?;
        started.into_iter().map(|(group, ready)| ready.wait(None).map(|()| group)).collect()
    }

    fn reduce(&self, group: &Group, rank: u32, round: u32) -> Result<(), Error> {
        for elements in [SHORT, LONG] {
            let mut vector: Vec<u8> = (0..elements).flat_map(|at| (rank + round + at).to_le_bytes()).collect();
            group.allreduce(None, &mut vector, DataType::U32, ReduceOp::Sum)?;
            let (n, first) = (self.ranks, self.ranks * (self.ranks - 1) / 2);
            let expected = |at: u32| first + n * (round + at);
            let is_right = |(at, sum): (u32, &[u8])| sum == expected(at).to_le_bytes();
            if !(0..).zip(vector.chunks_exact(4)).all(is_right) {
                return Err(Error::Internal(format!("a sum of {elements} elements is wrong in round {round}")));
            }
        }
        Ok(())
    }
}

/// Why a job ended early.
enum Failed {
    /// It was not admitted.
    Join(Error),
    /// It was admitted, and something went wrong later.
    Later(Error),
}

/// Elements of a vector that travels in one datagram.
const SHORT: u32 = 16;
/// Elements of a vector that is streamed.
const LONG: u32 = 16 << 10;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);
