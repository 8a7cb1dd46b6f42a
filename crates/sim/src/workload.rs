//! The program that the ranks run: groups, operations, and one script per rank.
//!
//! The program is legal: members post the operations of a group in the same order, and what a rank
//! waits for in one round is posted by every member before it waits in that round; or all post in
//! one order over all groups, and each may wait for whatever it has posted. So a run that hangs is
//! the core's fault. Everything else is random, above all the order over different groups.

use trib_proto::Nanos;
use trib_wire::{Collective, DataType, ReduceOp, Signature, WireFormat};

use crate::options::{Options, Trouble};
use crate::random::Rng;

/// A group that the program makes.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// World ranks; the index of one is its rank in the group.
    pub members: Vec<u32>,
    /// The caller's number.
    pub tag: u64,
    /// Why its operations may fail, if they may.
    pub disturbed: Option<Trouble>,
    /// The first and the last round of its life.
    pub rounds: (u64, u64),
}

/// An operation of one group.
#[derive(Clone, Debug)]
pub struct OperationPlan {
    /// The group.
    pub group: usize,
    /// What the members post.
    pub signature: Signature,
    /// A rank that posts something else.
    pub odd: Option<(u32, Signature)>,
}

impl OperationPlan {
    /// How many elements the call has of which this operation, by its number, is a stretch: each
    /// third one is one of three; of the others it is 0.
    pub fn stretch_of(&self, number: usize) -> u64 {
        if number % 3 == 2 { 3 * self.signature.count } else { 0 }
    }
}

/// One step of a rank's script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Compute for a while.
    Sleep(Nanos),
    /// Start to make a group.
    Create(usize),
    /// Post an operation.
    Post(usize),
    /// Wait until these operations are complete.
    Wait(Vec<usize>),
    /// Leave a group.
    Free(usize),
}

impl GroupPlan {
    /// A group that lives in the first round.
    pub fn new(members: Vec<u32>, tag: u64) -> GroupPlan {
        GroupPlan { members, tag, disturbed: None, rounds: (0, 0) }
    }

    fn lives_in(&self, round: u64) -> bool {
        (self.rounds.0..=self.rounds.1).contains(&round)
    }

    /// Whether it is gone everywhere before the other one can be made: each of its members leaves
    /// it before it joins the other.
    fn precedes(&self, other: &GroupPlan) -> bool {
        self.rounds.1 < other.rounds.0 && self.members.iter().all(|member| other.members.contains(member))
    }
}

/// A whole program.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The groups.
    pub groups: Vec<GroupPlan>,
    /// The operations; those of one group come in the order of posting.
    pub operations: Vec<OperationPlan>,
    /// What each rank does.
    pub scripts: Vec<Vec<Step>>,
}

impl Workload {
    /// A random program.
    pub fn random(rng: &mut Rng, options: &Options) -> Workload {
        let mut work = Workload { scripts: vec![Vec::new(); options.ranks as usize], ..Workload::default() };
        for _ in 0..options.groups {
            let first = rng.below(options.phases);
            let rounds = (first, rng.between(first, options.phases - 1));
            let group = random_group(rng, options.ranks, &work.groups);
            work.groups.push(GroupPlan { rounds, ..group });
        }
        let mut rounds = Vec::new();
        for phase in 0..options.phases {
            let alive: Vec<usize> = (0..work.groups.len()).filter(|g| work.groups[*g].lives_in(phase)).collect();
            rounds.push(work.random_round(rng, options, &alive));
        }
        work.disturb(rng, options);
        for rank in 0..options.ranks {
            work.script(rng, options, rank, &rounds);
        }
        if let Some(late) = options.late {
            let script = rng.below(u64::from(options.ranks)) as usize;
            let script = &mut work.scripts[script];
            let at = rng.below(script.len() as u64 + 1) as usize;
            script.insert(at, Step::Sleep(late));
        }
        work
    }

    /// The same program, in which every rank rests before it frees its first group, with everything
    /// that it has posted complete.
    #[must_use]
    pub fn with_rest(mut self, rest: Nanos) -> Workload {
        for script in &mut self.scripts {
            let Some(at) = script.iter().position(|step| matches!(step, Step::Free(_))) else { continue };
            let posted = script[..at].iter().filter_map(|step| match step {
                Step::Post(operation) => Some(*operation),
                _ => None,
            });
            let rest = [Step::Wait(posted.collect()), Step::Sleep(rest)];
            script.splice(at..at, rest);
        }
        self
    }

    /// Every member makes group 0, posts all operations, waits and frees: the shape of most
    /// scenarios.
    pub fn plain(ranks: u32, signatures: &[Signature]) -> Workload {
        let group = GroupPlan::new((0..ranks).collect(), 0);
        let operations =
            signatures.iter().map(|signature| OperationPlan { group: 0, signature: *signature, odd: None });
        let mut script = vec![Step::Create(0)];
        script.extend((0..signatures.len()).map(Step::Post));
        script.push(Step::Wait((0..signatures.len()).collect()));
        script.push(Step::Free(0));
        Workload { groups: vec![group], operations: operations.collect(), scripts: vec![script; ranks as usize] }
    }

    /// The largest number of groups that may be alive at once at any node: none of them is
    /// certainly gone before another begins.
    pub fn groups_alive_max(&self) -> u32 {
        let groups = &self.groups;
        // A rank that frees a group before it is made leaves it later. One that has had a result of
        // it does not.
        let is_used = |g: usize| {
            let waits = groups[g].disturbed != Some(Trouble::EarlyFree);
            waits && self.operations.iter().any(|operation| operation.group == g)
        };
        let precedes = |a: usize, b: usize| is_used(a) && groups[a].precedes(&groups[b]);
        let follow = |a: usize, b: usize| precedes(a, b) || precedes(b, a);
        let meet = |set: &u32| {
            let of_set: Vec<usize> = (0..groups.len()).filter(|g| set & (1 << g) != 0).collect();
            of_set.iter().enumerate().all(|(at, a)| of_set[..at].iter().all(|b| !follow(*a, *b)))
        };
        (0..1u32 << groups.len()).filter(meet).map(u32::count_ones).max().unwrap_or(0)
    }

    fn random_round(&mut self, rng: &mut Rng, options: &Options, alive: &[usize]) -> Vec<usize> {
        let mut round = Vec::new();
        if alive.is_empty() {
            return round;
        }
        for _ in 0..rng.below(options.operations + 1) {
            let group = rng.pick(alive);
            let size = self.groups[group].members.len() as u64;
            let signature = random_signature(rng, options, size);
            round.push(self.operations.len());
            self.operations.push(OperationPlan { group, signature, odd: None });
        }
        round
    }

    fn disturb(&mut self, rng: &mut Rng, options: &Options) {
        match options.trouble {
            Trouble::Mismatch => self.make_mismatch(rng, options),
            Trouble::TightQuota | Trouble::ShortPath(_) | Trouble::NoDatagrams => {
                for group in &mut self.groups {
                    group.disturbed = Some(options.trouble);
                }
            }
            Trouble::EarlyFree => {
                let group = rng.below(self.groups.len() as u64) as usize;
                self.groups[group].disturbed = Some(Trouble::EarlyFree);
            }
            Trouble::KillRank(_) | Trouble::StopRank | Trouble::KillNode | Trouble::None => {}
        }
    }

    fn make_mismatch(&mut self, rng: &mut Rng, options: &Options) {
        let candidates: Vec<usize> =
            (0..self.operations.len()).filter(|op| self.groups[self.operations[*op].group].members.len() > 1).collect();
        if candidates.is_empty() {
            return;
        }
        let op = rng.pick(&candidates);
        let operation = &mut self.operations[op];
        let members = &self.groups[operation.group].members;
        let mut other = operation.signature;
        while other == operation.signature {
            match rng.below(3) {
                0 => other.count += rng.between(1, 40),
                1 => other.count /= 2,
                _ => other = random_signature(rng, options, members.len() as u64),
            }
        }
        operation.odd = Some((rng.pick(members), other));
        self.groups[operation.group].disturbed = Some(Trouble::Mismatch);
    }

    fn script(&mut self, rng: &mut Rng, options: &Options, rank: u32, rounds: &[Vec<usize>]) {
        let mut script = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (phase, round) in rounds.iter().enumerate() {
            let mut queues: Vec<(usize, Vec<Step>)> = Vec::new();
            for (g, group) in self.groups.iter().enumerate() {
                if !group.lives_in(phase as u64) || !group.members.contains(&rank) {
                    continue;
                }
                let mut queue = Vec::new();
                if group.rounds.0 == phase as u64 {
                    queue.push(Step::Create(g));
                }
                let posts = round.iter().filter(|op| self.operations[**op].group == g);
                queue.extend(posts.map(|op| Step::Post(*op)));
                queue.reverse();
                queues.push((g, queue));
            }
            open.extend(queues.iter().flat_map(|(_, q)| q.iter()).filter_map(|s| match s {
                Step::Post(op) => Some(*op),
                _ => None,
            }));
            if options.blocking {
                self.in_order(rng, queues, &mut script);
            } else {
                self.interleave(rng, options, queues, &mut script);
            }
            let ends: Vec<usize> = (0..self.groups.len())
                .filter(|g| self.groups[*g].rounds.1 == phase as u64)
                .filter(|g| self.groups[*g].members.contains(&rank))
                .collect();
            self.end_round(rng, &ends, &mut open, &mut script);
        }
        self.scripts[rank as usize] = script;
    }

    /// Takes steps from the queues in an order that is the same for all ranks: first the creations,
    /// then the operations. After some of these the rank waits.
    fn in_order(&self, rng: &mut Rng, queues: Vec<(usize, Vec<Step>)>, script: &mut Vec<Step>) {
        let waits = rng.pick(&[0, 500, 1000, 1000]);
        let mut steps: Vec<Step> = queues.into_iter().flat_map(|(_, queue)| queue.into_iter().rev()).collect();
        steps.sort_by_key(|step| if let Step::Post(operation) = step { operation + 1 } else { 0 });
        for step in steps {
            let posted = if let Step::Post(operation) = step { Some(operation) } else { None };
            script.push(step);
            if let Some(operation) = posted.filter(|_| rng.chance(waits)) {
                script.push(Step::Wait(vec![operation]));
            }
            if rng.chance(50) {
                script.push(Step::Sleep(Nanos::from_micros(rng.scaled(1, 5000))));
            }
        }
    }

    /// Takes steps from the queues (each reversed) until they are empty.
    fn interleave(
        &self,
        rng: &mut Rng,
        options: &Options,
        mut queues: Vec<(usize, Vec<Step>)>,
        script: &mut Vec<Step>,
    ) {
        queues.retain(|(_, q)| !q.is_empty());
        let sleeps = if options.contention { 300 } else { 50 };
        while !queues.is_empty() {
            let mut at = 0;
            if options.crossing {
                at = rng.below(queues.len() as u64) as usize;
                // Groups with equal members and an equal tag are matched in the order of creation.
                let key = |g: usize| (&self.groups[g].members, self.groups[g].tag);
                let first = queues.iter().position(|(g, queue)| {
                    matches!(queue.last(), Some(Step::Create(_))) && key(*g) == key(queues[at].0)
                });
                if let (Some(first), Some(Step::Create(_))) = (first, queues[at].1.last()) {
                    at = first;
                }
            }
            script.extend(queues[at].1.pop());
            if queues[at].1.is_empty() {
                queues.remove(at);
            }
            if rng.chance(sleeps) {
                script.push(Step::Sleep(Nanos::from_micros(rng.scaled(1, 5000))));
            }
        }
    }

    fn end_round(&self, rng: &mut Rng, ends: &[usize], open: &mut Vec<usize>, script: &mut Vec<Step>) {
        let ending = |op: &usize| {
            let group = self.operations[*op].group;
            ends.contains(&group)
        };
        let all = rng.chance(700);
        let early = rng.chance(500);
        let left = |op: &usize| {
            let group = self.operations[*op].group;
            let may = self.groups[group].disturbed == Some(Trouble::EarlyFree);
            early && may && ends.contains(&group)
        };
        let (waited, kept): (Vec<usize>, Vec<usize>) = open.iter().partition(|op| (all || ending(op)) && !left(op));
        *open = kept.into_iter().filter(|op| !ends.contains(&self.operations[*op].group)).collect();
        if !waited.is_empty() {
            script.push(Step::Wait(waited));
        }
        script.extend(ends.iter().map(|g| Step::Free(*g)));
    }
}

fn random_group(rng: &mut Rng, ranks: u32, others: &[GroupPlan]) -> GroupPlan {
    let mut members: Vec<u32> = (0..ranks).collect();
    match rng.below(10) {
        0..4 => {}
        4 => members.reverse(),
        5..8 => {
            rng.shuffle(&mut members);
            members.truncate(rng.between(1, u64::from(ranks)) as usize);
            members.sort_unstable();
        }
        8 => {
            rng.shuffle(&mut members);
            members.truncate(rng.between(1, u64::from(ranks)) as usize);
        }
        _ => {
            if let Some(other) = others.last() {
                members.clone_from(&other.members);
            }
        }
    }
    GroupPlan::new(members, if rng.chance(200) { rng.below(3) } else { 0 })
}

fn random_signature(rng: &mut Rng, options: &Options, size: u64) -> Signature {
    let collective = rng.pick(Collective::ALL);
    let computes = collective.computes();
    let rooted = matches!(collective, Collective::Reduce | Collective::Bcast);
    let dtype = if computes { rng.pick(DataType::ALL) } else { DataType::U8 };
    let blocks = match collective {
        Collective::ReduceScatter | Collective::Allgather => size,
        _ => 1,
    };
    let limits = &options.limits;
    let bytes = if rng.chance(60) {
        0
    } else if rng.chance(options.streamed) {
        let most = (u64::from(limits.segment) * 24).max(limits.stream_threshold * 2 + 64);
        limits.stream_threshold + rng.scaled(1, most.min(600 * 1024))
    } else {
        rng.scaled(1, limits.stream_threshold.min(u64::from(limits.payload) * 16))
    };
    let op = if computes { rng.pick(&operators(dtype)) } else { ReduceOp::BitOr };
    // Few of all types are floating-point numbers, and few operators sums.
    let (dtype, op) = if computes && bytes % 8 == 3 { (DataType::F32, ReduceOp::Sum) } else { (dtype, op) };
    // Sums of floating-point numbers may travel as integers of other sizes, or in blocks if a piece
    // has room for one, on either path: a rank that calls something longer may take the other.
    let format = match op {
        ReduceOp::Sum if dtype.value().is_float() => {
            let which = bytes as usize / 8 % (2 * WireFormat::ALL.len());
            WireFormat::ALL.get(which).copied().unwrap_or(WireFormat::Int8Blocks)
        }
        _ => WireFormat::Plain,
    };
    let block = WireFormat::Int8Blocks.arithmetic(dtype, op).element_size() as u64;
    let piece = limits.segment.min(limits.payload);
    let format = if u64::from(piece) >= block || format != WireFormat::Int8Blocks { format } else { WireFormat::Plain };
    let element = format.arithmetic(dtype, op).element_size() as u64;
    Signature {
        collective,
        dtype,
        op,
        format,
        root: if rooted { rng.below(size) as u32 } else { 0 },
        count: match collective {
            Collective::Barrier => 0,
            _ => bytes.div_ceil(blocks * element),
        },
    }
}

/// The operators that are defined on a type.
fn operators(dtype: DataType) -> Vec<ReduceOp> {
    ReduceOp::ALL.iter().copied().filter(|op| op.is_defined_on(dtype)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members agree on the order of operations and creations, and what is waited for has been
    /// posted.
    #[test]
    fn programs_are_legal() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut options = Options::draw(&mut rng);
            options.trouble = Trouble::None;
            let work = Workload::random(&mut rng, &options);
            for (rank, script) in work.scripts.iter().enumerate() {
                let mut posted = Vec::new();
                let mut alive = Vec::new();
                for step in script {
                    match step {
                        Step::Sleep(_) => {}
                        Step::Create(g) => alive.push(*g),
                        Step::Free(g) => alive.retain(|a| a != g),
                        Step::Wait(ops) => assert!(ops.iter().all(|op| posted.contains(op))),
                        Step::Post(op) => {
                            assert!(alive.contains(&work.operations[*op].group));
                            posted.push(*op);
                        }
                    }
                }
                assert!(alive.is_empty(), "rank {rank} of seed {seed} keeps {alive:?}");
                for (g, group) in work.groups.iter().enumerate() {
                    let own: Vec<usize> =
                        (0..work.operations.len()).filter(|op| work.operations[*op].group == g).collect();
                    let seen: Vec<usize> =
                        posted.iter().copied().filter(|op| work.operations[*op].group == g).collect();
                    if group.members.contains(&(rank as u32)) {
                        assert_eq!(own, seen);
                    }
                }
            }
        }
    }
}
