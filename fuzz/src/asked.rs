//! What tenants ask of a manager, and what its nodes say: valid, nearly valid, and what nobody in
//! their right mind would ask.

use std::net::SocketAddr;

use trib_messages::job::Pass;
use trib_messages::jobs::{Activity, JobActivity};
use trib_messages::levels::Levels;
use trib_messages::node::NodeMessage;
use trib_messages::policy::Recovery;
use trib_messages::processes::Process;
use trib_messages::recovery::Replayed;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::{Account, AttachRequest, JobRequest, QuotaAsk, Request, ServeRequest};
use trib_wire::{JobId, Mode, NodeId};

use crate::draw::Draw;

/// Hosts, of which the fabrics know most.
const HOSTS: [&str; 8] = ["a0", "a1", "b0", "b1", "a0.cluster", "c", "", "a0\u{1b}[2J"];
/// Nodes, of which the fabrics know most.
pub const NODES: [&str; 5] = ["spine0", "leaf0", "leaf1", "spine1", "elsewhere"];
/// Texts under which ranks meet.
const MEETINGS: [&str; 3] = ["here", "there", ""];

/// A request of one whose names of programs and users begin with `mark`.
pub fn request(draw: &mut Draw<'_>, mark: &str) -> Request {
    match draw.below(16) {
        0..4 => Request::RequestJob(job(draw, mark)),
        4..9 => Request::Attach(rank(draw, mark)),
        9 => Request::EndJob { job: number(draw), why: draw.one_in(2).then(|| name(draw, mark)) },
        10 => Request::Fallback { job: number(draw), why: name(draw, mark) },
        11 => {
            let account = match draw.one_in(2) {
                true => Account::Interrupted(name(draw, mark)),
                false => Account::Failed(name(draw, mark)),
            };
            Request::Account { rendezvous: draw.pick(&MEETINGS).into(), account }
        }
        12 => Request::Status,
        13 => Request::Explain { job: number(draw), group: draw.one_in(4).then(|| draw.below(2).into()) },
        14 => Request::ExplainProgram { name: name(draw, mark), group: None },
        _ => Request::Jobs,
    }
}

/// A number that a job may have.
pub fn number(draw: &mut Draw<'_>) -> JobId {
    JobId(draw.number(u32::MAX.into()) as u32)
}

fn job(draw: &mut Draw<'_>, mark: &str) -> JobRequest {
    let count = match draw.byte() {
        small @ 0..250 => u32::from(small % 7),
        _ => 300,
    };
    let hosts: Vec<String> = (0..count).map(|_| host(draw)).collect();
    let each = |draw: &mut Draw<'_>| if draw.one_in(3) { count } else { draw.below(count + 2) };
    let pids = (0..each(draw)).collect();
    let deputies = (0..each(draw)).map(|_| address(draw)).collect();
    let domains = (0..each(draw)).map(|_| domain(draw)).collect();
    let (ask, name, user) = (ask(draw), name(draw, mark), name(draw, mark));
    JobRequest { hosts, pids, deputies, domains, ask, name, user, wait_ms: span(draw), patience_ms: span(draw) }
}

fn rank(draw: &mut Draw<'_>, mark: &str) -> AttachRequest {
    let (rendezvous, rank, size) = (draw.pick(&MEETINGS).into(), draw.below(3), draw.pick(&[2, 1, 3]));
    let plain = AttachRequest {
        rendezvous,
        rank,
        size,
        host: HOSTS[rank as usize].into(),
        pid: 1,
        deputy: None,
        domain: None,
        ask: QuotaAsk::default(),
        name: mark.into(),
        user: mark.into(),
        patience_ms: None,
        wait_ms: None,
    };
    if !draw.one_in(2) {
        return plain;
    }
    AttachRequest {
        rendezvous: if draw.one_in(32) { "x".repeat(1025) } else { plain.rendezvous },
        rank: if draw.one_in(16) { draw.word() as u32 } else { rank },
        size: if draw.one_in(16) { draw.word() as u32 } else { size },
        host: host(draw),
        pid: draw.byte().into(),
        deputy: address(draw),
        domain: domain(draw),
        ask: ask(draw),
        name: name(draw, mark),
        user: name(draw, mark),
        patience_ms: span(draw),
        wait_ms: span(draw),
    }
}

/// A rank says that it hosts nodes.
pub fn serve(draw: &mut Draw<'_>, passes: &[(JobId, Pass)]) -> ServeRequest {
    let known = (!passes.is_empty()).then(|| passes[draw.below(passes.len().min(200) as u32) as usize].clone());
    let (job, pass) = known.unwrap_or_default();
    let job = if draw.one_in(8) { number(draw) } else { job };
    let pass = if draw.one_in(8) { Pass::default() } else { pass };
    let stream = address(draw).unwrap_or_else(|| ([127, 0, 0, 1], 9).into());
    ServeRequest { job, pass, rank: draw.below(4), process: Process { host: host(draw), pid: 1 }, stream }
}

/// The first that a node says.
pub fn hello(draw: &mut Draw<'_>, name: &str) -> NodeMessage {
    if draw.one_in(16) {
        return told(draw);
    }
    let port = |draw: &mut Draw<'_>| if draw.one_in(16) { 0 } else { 4000 + u16::from(draw.byte()) };
    NodeMessage::Register {
        name: name.into(),
        stream: (if draw.one_in(8) { [0, 0, 0, 0] } else { [10, 0, 0, 1] }, port(draw)).into(),
        further: (0..draw.below(18).saturating_sub(14)).map(|at| ([10, 0, 1, at as u8], port(draw)).into()).collect(),
        datagram_buffer_bytes: draw.pick(&[8 << 20, 200_000, 4096, 0, u64::MAX]),
        workers: draw.pick(&[1, 2, 0, u32::MAX]),
        jobs: (0..draw.below(3)).map(|_| number(draw)).collect(),
    }
}

/// Anything that a node may say, whatever it was asked.
pub fn told(draw: &mut Draw<'_>) -> NodeMessage {
    let (job, node) = (number(draw), NodeId(draw.below(4) as u16));
    match draw.below(11) {
        0 => NodeMessage::Installed { job, node },
        1 => NodeMessage::Rejected { job, node, refusal: refusal(draw) },
        2 => NodeMessage::Renewed { certificate_ends: draw.word() },
        3 => NodeMessage::Counters([("x".into(), draw.word())].into()),
        4 => NodeMessage::Explained { job, group: None, parts: Vec::new(), traffic: Vec::new(), epochs: Vec::new() },
        5 => NodeMessage::Activity((0..draw.below(4)).map(|_| activity(draw)).collect()),
        6 => NodeMessage::Alive,
        7 => NodeMessage::Hosts { jobs: (0..draw.below(4)).map(|_| number(draw)).collect() },
        8 => NodeMessage::Faulty { job, fault: None, why: name(draw, "why") },
        9 => NodeMessage::Left { job },
        _ => NodeMessage::Register {
            name: draw.pick(&NODES).into(),
            stream: ([10, 0, 0, 1], 9).into(),
            further: Vec::new(),
            datagram_buffer_bytes: 1,
            workers: 1,
            jobs: Vec::new(),
        },
    }
}

/// A node refuses something.
pub fn refusal(draw: &mut Draw<'_>) -> Refusal {
    let (resource, since_ms) = (draw.pick(&[Resource::Memory, Resource::Request]), draw.one_in(2).then(|| draw.word()));
    let holder = draw.one_in(2).then(|| draw.pick(&NODES).into());
    Refusal { resource, asked: draw.word(), available: 0, holder, since_ms, text: "there is no room".into() }
}

/// What a job does at a node.
fn activity(draw: &mut Draw<'_>) -> JobActivity {
    let some = |draw: &mut Draw<'_>| NodeId(draw.below(4) as u16);
    JobActivity {
        job: number(draw),
        activity: Activity { groups: draw.word(), ranks: draw.below(3), idle_ms: draw.word() },
        nodes_in_ranks: draw.below(2),
        moves: (0..draw.below(3)).map(|_| (some(draw), draw.word() as u16)).collect(),
        spent: (0..draw.below(4)).map(|_| some(draw)).collect(),
        replayed: Replayed { fragments: draw.word(), segments: draw.word(), bytes: draw.word() },
    }
}

fn ask(draw: &mut Draw<'_>) -> QuotaAsk {
    let mut ask = QuotaAsk::default();
    for _ in 0..draw.below(8).saturating_sub(3) {
        let most = draw.number(u32::MAX.into()) as u32;
        match draw.below(20) {
            0 => ask.groups = Some(most),
            1 => ask.window = Some(most),
            2 => ask.osts = Some(most),
            3 => ask.payload = Some(most),
            4 => ask.streams = Some(most),
            5 => ask.segment = Some(most),
            6 => ask.staging = Some(most),
            7 => ask.flight = Some(most),
            8 => ask.control_memory = Some(most),
            9 => ask.stream_threshold = Some(most.into()),
            10 => ask.lanes = Some(most),
            11 => ask.trees = Some(most),
            12 => ask.backups = Some(most),
            13 => ask.deputies = Some(most),
            14 => ask.rank_memory = Some(draw.word()),
            15 => ask.heartbeat_ms = Some(most),
            16 => ask.dead_after_ms = Some(most),
            17 => ask.recovery = Some(draw.pick(&[Recovery::Notify, Recovery::Retry, Recovery::Strict])),
            18 => ask.levels = Some(draw.pick(&Levels::ALL)),
            _ => ask.data_path = Some(draw.pick(Mode::ALL)),
        }
    }
    ask
}

fn host(draw: &mut Draw<'_>) -> String {
    match draw.byte() {
        known @ 0..250 => HOSTS[usize::from(known) % if known < 200 { 4 } else { HOSTS.len() }].into(),
        _ => "h".repeat(3_000),
    }
}

fn name(draw: &mut Draw<'_>, mark: &str) -> String {
    match draw.byte() {
        0..200 => mark.into(),
        200..250 => format!("{mark}\u{7}\u{202e}é"),
        _ => mark.repeat(300),
    }
}

fn address(draw: &mut Draw<'_>) -> Option<SocketAddr> {
    let port = 1000 + u16::from(draw.byte());
    match port % 8 {
        0 => None,
        1 => Some(([0, 0, 0, 0], port).into()),
        2 => Some(([127, 0, 0, 1], port).into()),
        3 => Some(([10, 0, 0, 1], 0).into()),
        _ => Some(([10, 0, 2, 1], port).into()),
    }
}

fn domain(draw: &mut Draw<'_>) -> Option<u16> {
    draw.one_in(2).then(|| draw.below(3) as u16)
}

fn span(draw: &mut Draw<'_>) -> Option<u32> {
    draw.pick(&[None, Some(0), Some(1), Some(700), Some(20_000), Some(u32::MAX)])
}
