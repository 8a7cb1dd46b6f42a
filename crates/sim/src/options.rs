//! What a seed draws: the swarm of options under which one run takes place. Most options are off or
//! mild in most runs, so that rare combinations occur and simple runs stay simple.

use core::fmt;

use trib_proto::{Limits, Nanos};

use crate::network::Quality;
use crate::random::Rng;

/// One thing that is not supposed to happen, and that the core must survive without a wrong value
/// and without a hang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// All ranks behave.
    None,
    /// A rank is killed; its connection closes (`true`) or it falls silent.
    KillRank(bool),
    /// A rank stands still for longer than others wait for it.
    StopRank,
    /// A node is killed; its connections close.
    KillNode,
    /// A rank posts another operation than the rest of its group.
    Mismatch,
    /// A rank frees a group while its operations are outstanding.
    EarlyFree,
    /// The quota allows fewer groups than the program makes.
    TightQuota,
    /// Long datagrams do not get through one link; the sender's kernel says so (`true`) or not.
    ShortPath(bool),
    /// Datagrams do not get through one link, and its stream does.
    NoDatagrams,
}

impl Trouble {
    /// Whether datagrams do not get through a link.
    pub fn is_of_the_way(self) -> bool {
        matches!(self, Trouble::ShortPath(_) | Trouble::NoDatagrams)
    }
}

/// The options of one run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ranks of the job.
    pub ranks: u32,
    /// Levels of nodes at most.
    pub levels: u64,
    /// The quota; `groups` and `osts` are set from the workload.
    pub limits: Limits,
    /// Whether the job could go on in another epoch, so that ranks keep what others may need.
    pub recovers: bool,
    /// How many bytes a rank may keep for others.
    pub rank_memory: u64,
    /// Whether an operation is over only when every rank has its results, if the job recovers.
    pub strict: bool,
    /// How many processes may host each node, if the job recovers.
    pub candidates: u64,
    /// Whether ranks share hosts, whose nodes are in their processes. Only jobs that recover have
    /// such.
    pub hosts: bool,
    /// Whether ranks leave the job when they have done.
    pub leaves: bool,
    /// How many times a process that hosts the node of a host is killed, stopped or slow.
    pub leads_hurt: u64,
    /// How many times a process that hosts nodes is killed or stopped, or a way is cut, for longer
    /// than others wait. Only jobs that recover are hurt so.
    pub hurts: u64,
    /// How links behave.
    pub quality: Quality,
    /// How many links in a thousand lose half of their datagrams.
    pub bad_links: u64,
    /// After how many datagrams in a thousand a forged copy of an older epoch or generation comes.
    pub ghosts: u64,
    /// How many times the processes fall into two parts for a while, between which nothing passes,
    /// or nothing one way. Only jobs that recover are hurt so.
    pub partitions: u64,
    /// How many links fail for a while.
    pub outages: u64,
    /// How many processes stop for a while.
    pub pauses: u64,
    /// Longest outage or pause.
    pub fault_max: Nanos,
    /// The time that a process needs for one frame.
    pub service: Nanos,
    /// How many times slower one process is than the others, if there is such a process.
    pub slow: Option<u64>,
    /// How many datagrams may wait at a process; more are dropped.
    pub datagram_room: usize,
    /// How many groups the program makes.
    pub groups: u64,
    /// Rounds of the program: create, post, wait, free.
    pub phases: u64,
    /// Operations per round.
    pub operations: u64,
    /// Whether ranks post over different groups in different order.
    pub crossing: bool,
    /// Whether ranks wait for an operation before they post the next.
    pub blocking: bool,
    /// Whether groups want the same stream context all the time.
    pub contention: bool,
    /// Whether the quota allows as many groups as the program has alive at once, and none more.
    pub full_quota: bool,
    /// How many operations in a thousand are streamed.
    pub streamed: u64,
    /// How long one rank sleeps before a round, if one does.
    pub late: Option<Nanos>,
    /// What else goes wrong.
    pub trouble: Trouble,
}

impl Options {
    /// The options of a seed.
    pub fn draw(rng: &mut Rng) -> Options {
        let payload = 8 * if rng.chance(250) { rng.scaled(9, 1024) } else { rng.between(2, 8) } as u32;
        let window = rng.pick(&[1, 1, 2, 2, 3, 4, 4, 8, 16, 33, 64]);
        let segment = if rng.chance(100) { 8 * 1024 * rng.between(1, 4) as u32 } else { 8 * rng.scaled(2, 256) as u32 };
        let clean = rng.chance(200);
        let fault = |rng: &mut Rng, chance: u64, most: u64| {
            if !clean && rng.chance(chance) { rng.between(1, most) } else { 0 }
        };
        let delay = Nanos::from_micros(rng.scaled(2, 400));
        let late = (rng.chance(80)).then(|| Nanos::from_millis(rng.scaled(100, 30_000)));
        let trouble = match rng.below(100) {
            0..3 => Trouble::KillRank(true),
            3..4 => Trouble::KillRank(false),
            4..6 => Trouble::KillNode,
            6..7 => Trouble::StopRank,
            7..11 => Trouble::Mismatch,
            11..15 => Trouble::EarlyFree,
            15..18 => Trouble::TightQuota,
            18..20 => Trouble::ShortPath(rng.chance(300)),
            20..22 => Trouble::NoDatagrams,
            _ => Trouble::None,
        };
        let rank_memory = {
            // What else a seed means does not depend on it.
            let mut aside = rng.clone().split();
            if aside.chance(300) { aside.scaled(1, 64 * 1024) } else { u64::MAX }
        };
        let mut options = Options {
            recovers: trouble != Trouble::KillNode && rng.chance(800),
            rank_memory,
            strict: false,
            candidates: rng.between(2, 3),
            hosts: false,
            leaves: false,
            leads_hurt: 0,
            hurts: if rng.chance(680) { rng.between(1, 4) } else { 0 },
            ranks: rng.scaled(1, 24) as u32,
            levels: rng.between(1, 4),
            limits: Limits {
                groups: 0,
                window,
                osts: 0,
                payload,
                streams: rng.pick(&[1, 1, 2, 2, 3, 4]),
                segment,
                staging: rng.between(1, 4) as u32,
                flight: rng.between(1, 8) as u32,
                control_memory: 1 << 20,
                stream_threshold: u64::from(payload) * rng.scaled(1, 24),
                lease_operations: rng.pick(&[0, 0, 0, 1, 1, 2, 3]),
                heartbeat: Nanos::from_millis(1000),
                dead_after: Nanos::from_millis(10_000),
            },
            quality: Quality {
                loss: fault(rng, 500, 200),
                duplication: fault(rng, 500, 200),
                stray: fault(rng, 300, 60),
                stray_max: Nanos::from_millis(rng.scaled(1, 500)),
                delay,
                jitter: if rng.chance(600) { Nanos(rng.below(delay.0 * 8 + 1)) } else { Nanos(0) },
                bandwidth: rng.scaled(20_000, 2_000_000),
                socket: rng.scaled(200, 64 * 1024),
            },
            bad_links: fault(rng, 150, 300),
            ghosts: fault(rng, 300, 100),
            partitions: if rng.chance(150) { rng.between(1, 2) } else { 0 },
            outages: fault(rng, 200, 4),
            pauses: fault(rng, 300, 5),
            fault_max: Nanos::from_millis(rng.scaled(1, 3000)),
            service: Nanos(rng.scaled(100, 10_000)),
            slow: (rng.chance(150)).then(|| rng.scaled(4, 200)),
            datagram_room: rng.scaled(2, 512) as usize,
            groups: rng.scaled(1, 8),
            phases: rng.between(1, 4),
            operations: rng.scaled(1, 12),
            crossing: rng.chance(600),
            blocking: rng.chance(200),
            contention: rng.chance(120),
            full_quota: rng.chance(300),
            streamed: rng.pick(&[0, 200, 500, 1000]),
            late,
            trouble,
        };
        if options.trouble.is_of_the_way() {
            // Where much is lost anyhow, it takes minutes to tell what never gets through.
            options.bad_links = 0;
            options.quality.loss = options.quality.loss.min(100);
        }
        if options.limits.payload > 64 {
            // Vectors are long, and not cut into ten thousand pieces.
            let payload = u64::from(options.limits.payload);
            options.limits.stream_threshold = payload * rng.scaled(1, 8);
            options.limits.segment = options.limits.segment.max(payload.next_multiple_of(16) as u32 / 2);
        }
        if options.contention {
            (options.limits.streams, options.streamed) = (1, 1000);
            options.limits.lease_operations = 0;
            (options.crossing, options.blocking) = (true, false);
            options.groups = options.groups.clamp(2, 4);
            options.operations = options.operations.max(6);
        }
        options.go_together();
        options
    }

    /// Lets the ranks of some jobs agree before they complete. What goes wrong in these is what
    /// makes it hard to agree: nodes die, and ranks die or leave at about the same time.
    pub fn under_policy(&mut self, rng: &mut Rng) {
        if !self.recovers || !rng.chance(STRICT) {
            return;
        }
        self.strict = true;
        if self.trouble == Trouble::None && rng.chance(600) {
            self.trouble = rng.pick(&[Trouble::KillRank(true), Trouble::KillRank(false), Trouble::EarlyFree]);
        }
        if self.hurts == 0 && rng.chance(600) {
            self.hurts = rng.between(1, 3);
        }
        self.go_together();
    }

    /// Lets the ranks of some jobs share hosts.
    pub fn on_hosts(&mut self, rng: &mut Rng) {
        if !self.recovers || !rng.chance(HOSTS) {
            return;
        }
        self.hosts = true;
        self.leaves = rng.chance(500);
        self.leads_hurt = if rng.chance(600) { rng.between(1, 2) } else { 0 };
        self.go_together();
    }

    /// Mends what does not go together.
    fn go_together(&mut self) {
        if !self.recovers || self.trouble.is_of_the_way() {
            (self.hurts, self.partitions, self.leads_hurt) = (0, 0, 0);
        }
        if self.hurts + self.partitions > 0 || self.hosts {
            // A rank that nobody can hear for some seconds lives.
            self.limits.dead_after = Nanos::from_millis(40_000);
        }
    }

    /// Mild options without faults, for scenarios that add their own.
    pub fn calm(ranks: u32) -> Options {
        Options {
            recovers: false,
            rank_memory: u64::MAX,
            strict: false,
            candidates: 1,
            hosts: false,
            leaves: false,
            leads_hurt: 0,
            hurts: 0,
            ranks,
            levels: 2,
            limits: Limits {
                groups: 64,
                window: 4,
                osts: 4096,
                payload: 64,
                streams: 2,
                segment: 1024,
                staging: 2,
                flight: 4,
                control_memory: 1 << 20,
                stream_threshold: 1024,
                lease_operations: 0,
                heartbeat: Nanos::from_millis(1000),
                dead_after: Nanos::from_millis(10_000),
            },
            quality: Quality {
                loss: 0,
                duplication: 0,
                stray: 0,
                stray_max: Nanos(0),
                delay: Nanos::from_micros(20),
                jitter: Nanos::from_micros(5),
                bandwidth: 1_000_000,
                socket: 16 * 1024,
            },
            bad_links: 0,
            ghosts: 0,
            partitions: 0,
            outages: 0,
            pauses: 0,
            fault_max: Nanos(0),
            service: Nanos::from_micros(1),
            slow: None,
            datagram_room: 1024,
            groups: 1,
            phases: 1,
            operations: 4,
            crossing: false,
            blocking: false,
            contention: false,
            full_quota: false,
            streamed: 0,
            late: None,
            trouble: Trouble::None,
        }
    }
}

/// How many jobs in a thousand that recover are strict.
const STRICT: u64 = 170;
/// In how many of them ranks share hosts.
const HOSTS: u64 = 310;

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (l, q) = (&self.limits, &self.quality);
        writeln!(
            f,
            "ranks {} levels {} | window {} payload {} threshold {} | streams {} leases {} segment {} staging {} flight {}",
            self.ranks,
            self.levels,
            l.window,
            l.payload,
            l.stream_threshold,
            l.streams,
            l.lease_operations,
            l.segment,
            l.staging,
            l.flight
        )?;
        writeln!(
            f,
            "loss {} duplication {} stray {} ghosts {} bad links {} (per thousand) | delay {} us jitter {} us bandwidth {} kB/s socket {}",
            q.loss,
            q.duplication,
            q.stray,
            self.ghosts,
            self.bad_links,
            q.delay.0 / 1000,
            q.jitter.0 / 1000,
            q.bandwidth,
            q.socket
        )?;
        write!(
            f,
            "recovers {} strict {} memory {} candidates {} hosts {} leaves {} leads hurt {} hurts {} partitions {} | outages {} pauses {} of up to {} ms slow {:?} room {} | groups {} full quota {} phases {} operations {} crossing {} blocking {} contention {} streamed {} late {:?} trouble {:?}",
            self.recovers,
            self.strict,
            self.rank_memory,
            self.candidates,
            self.hosts,
            self.leaves,
            self.leads_hurt,
            self.hurts,
            self.partitions,
            self.outages,
            self.pauses,
            self.fault_max.0 / 1_000_000,
            self.slow,
            self.datagram_room,
            self.groups,
            self.full_quota,
            self.phases,
            self.operations,
            self.crossing,
            self.blocking,
            self.contention,
            self.streamed,
            self.late.map(|l| l.0 / 1_000_000),
            self.trouble
        )
    }
}
