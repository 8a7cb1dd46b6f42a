//! What a job asks for of lanes, trees, levels, backups and deputies.

use trib_messages::levels::Levels;
use trib_messages::policy::Recovery;
use trib_messages::quota::QuotaField;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::QuotaAsk;
use trib_topology::Topology;

use super::quota::{RANKS_MAX, choose};
use crate::refuse::too_much;

/// What a job asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wish {
    lanes: usize,
    /// The number of different trees, if the job asks for one.
    pub(super) trees: Option<usize>,
    /// The number of bytes from which operations are cut.
    pub(crate) stripe_threshold: u64,
    /// See [`QuotaField::RankMemory`].
    pub(crate) rank_memory: u64,
    /// How many further nodes may host each node of its trees.
    pub(crate) backups: usize,
    /// How many of its ranks may.
    pub(crate) deputies: usize,
    /// The levels that its trees may have below the aggregation nodes.
    pub(crate) levels: Levels,
}

/// What a job promises when a node dies, checked against the fabric's limits.
fn recovery(ask: &QuotaAsk, topology: &Topology) -> Result<Recovery, Refusal> {
    let number = choose(QuotaField::Recovery, ask, topology.limits()[QuotaField::Recovery])?;
    Ok(Recovery::from_number(number).unwrap_or_default())
}

impl Wish {
    /// Checks what is asked for against the fabric's limits.
    pub(crate) fn of(ask: &QuotaAsk, topology: &Topology, ranks: usize) -> Result<Wish, Refusal> {
        let table = topology.limits();
        let get = |field: QuotaField| choose(field, ask, table[field]);
        let lanes = get(QuotaField::Lanes)? as usize;
        let trees = ask.trees.map(|trees| trees as usize);
        if let Some(trees) = trees.filter(|trees| !(1..=lanes).contains(trees)) {
            let text =
                format!("the job asks for trees = {trees} and lanes = {lanes}: ask for 1 tree to one for each lane");
            return Err(too_much(Resource::Trees, trees as u64, lanes as u64, text));
        }
        if ranks * lanes > RANKS_MAX {
            let text = format!(
                "{ranks} ranks with {lanes} lanes need {} attachments, a job has at most {RANKS_MAX}: ask for fewer lanes",
                ranks * lanes
            );
            return Err(too_much(Resource::Lanes, lanes as u64, (RANKS_MAX / ranks.max(1)) as u64, text));
        }
        let (stripe_threshold, rank_memory) = (get(QuotaField::StripeThreshold)?, get(QuotaField::RankMemory)?);
        let (backups, deputies) = (get(QuotaField::Backups)? as usize, get(QuotaField::Deputies)? as usize);
        // Where nothing is to be replaced, nobody need stand by.
        let stands_by = recovery(ask, topology)? != Recovery::Notify;
        let (backups, deputies) = if stands_by { (backups, deputies) } else { (0, 0) };
        let levels = Levels::from_number(get(QuotaField::Levels)?).unwrap_or_default();
        // A node in a rank's process goes when that rank does, early or late, and has to go on
        // elsewhere then.
        let levels = if deputies > 0 { levels } else { Levels::None };
        Ok(Wish { lanes, trees, stripe_threshold, rank_memory, backups, deputies, levels })
    }

    /// The number of lanes, at least one.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// The largest number of trees that it has a use for.
    pub(crate) fn trees_most(&self) -> usize {
        self.trees.unwrap_or(self.lanes)
    }
}
