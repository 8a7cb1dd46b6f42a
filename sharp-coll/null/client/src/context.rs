//! A job that no manager has to grant.

use std::sync::Arc;
use std::time::Duration;

use trib_messages::request::QuotaAsk;
use trib_proto::{Limits, Nanos};
use trib_wire::RankList;

use crate::counters::Counters;
use crate::error::Error;
use crate::group::{Group, Request};
use crate::script::Fate;

/// The caller's own progress.
pub type Progress = Arc<dyn Fn() + Send + Sync>;

/// The caller's exchange, which is not needed here.
pub trait OutOfBand {
    /// Brings the bytes of all ranks to rank 0.
    fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32>;
    /// Brings rank 0's bytes to all.
    fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32>;
}

/// How to join.
pub struct Params {
    /// This process's rank.
    pub rank: u32,
    /// Ranks of the job.
    pub size: u32,
    /// The exchange.
    pub oob: Option<Box<dyn OutOfBand>>,
    /// Called while waiting.
    pub progress: Option<Progress>,
    /// What the job asks for.
    pub ask: QuotaAsk,
    /// How long joining may take; here it takes no time.
    pub timeout: Option<Duration>,
    /// What the caller has found wrong already.
    pub objection: Option<Error>,
}

impl Params {
    /// For a rank of a job.
    pub fn new(rank: u32, size: u32) -> Params {
        Params { rank, size, oob: None, progress: None, ask: QuotaAsk::default(), timeout: None, objection: None }
    }

    /// Nobody grants anything here.
    pub fn ask_for(&mut self, _text: &str, _source: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Notes what is wrong.
    pub fn object(&mut self, objection: Error) {
        self.objection.get_or_insert(objection);
    }
}

/// One rank of a job.
pub struct Context {
    rank: u32,
    size: u32,
}

impl Context {
    /// Joins the job.
    pub fn join(params: Params) -> Result<Context, Error> {
        params.objection.map_or(Ok(()), Err)?;
        Ok(Context { rank: params.rank, size: params.size })
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// What is granted.
    pub fn limits(&self) -> Result<Limits, Error> {
        Ok(Limits {
            groups: 64,
            window: 16,
            osts: 64,
            payload: 1024,
            streams: 1,
            segment: 16 << 10,
            staging: 4,
            flight: 4,
            control_memory: 1 << 20,
            stream_threshold: 64 << 10,
            lease_operations: 0,
            heartbeat: Nanos(u64::MAX),
            dead_after: Nanos(u64::MAX),
        })
    }

    /// Makes a group.
    pub fn start_group(&self, members: RankList, _tag: u64) -> Result<(Group, Request), Error> {
        let ranks: Vec<u32> = members.iter().map(|rank| rank.0).collect();
        let rank = ranks.iter().position(|rank| *rank == self.rank);
        let rank = rank.ok_or_else(|| Error::Invalid("this rank is not in the list".into()))?;
        Ok((Group::new(rank as u32, ranks.len() as u32), Request { fate: Fate::Ends }))
    }

    /// Nothing makes progress here.
    pub fn progress(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Nothing is counted.
    pub fn counters(&self) -> Result<Counters, Error> {
        Ok(Counters::default())
    }

    /// Leaves the job.
    pub fn finalize(self) -> Result<(), Error> {
        Ok(())
    }
}
