//! A manager with its tenants, nodes and deputies, all of which do what an input says.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trib_manager::{Asker, Caller, Connected, Desk, Kept};
use trib_messages::Message;
use trib_messages::job::{JobTicket, Pass};
use trib_messages::jobs::{Activity, JobActivity};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::recovery::Replayed;
use trib_messages::reply::Reply;
use trib_messages::request::{JobRequest, Request};
use trib_topology::Topology;
use trib_wire::JobId;

use crate::asked::{NODES, hello, refusal, request, serve, told};
use crate::draw::Draw;
use crate::playing::{self, Clock};

/// Everything of one input.
pub struct Fabric {
    desk: Desk,
    users: Vec<User>,
    stations: RefCell<Vec<Station>>,
    input: Rc<[u8]>,
    /// How much of it was used.
    at: Cell<usize>,
    steps: Cell<usize>,
    /// By request under way, the innermost last, what those took that began inside of it.
    elsewhere: RefCell<Vec<Duration>>,
    /// Whether the watch over jobs that no connection holds is looking.
    glances: Cell<bool>,
    given: RefCell<Given>,
}

/// A connection of a tenant; where it ends, another one begins.
struct User {
    tenant: Option<&'static str>,
    busy: Cell<bool>,
    gone: Cell<bool>,
    held: RefCell<Vec<JobId>>,
}

/// A node or a deputy.
struct Station {
    line: Connected,
    /// What it has installed.
    jobs: BTreeSet<JobId>,
}

/// What the manager has given away.
#[derive(Default)]
struct Given {
    /// By key, the job and who got it.
    keys: BTreeMap<[u8; 32], (JobId, Option<&'static str>)>,
    numbers: BTreeSet<JobId>,
    seats: BTreeSet<(JobId, u32)>,
    passes: Vec<(JobId, Pass)>,
}

impl Fabric {
    /// A manager of one of the fabrics, to which nobody is connected.
    pub fn begin(input: Vec<u8>) -> Rc<Fabric> {
        playing::begin(playing::pass);
        let kind = usize::from(input.first().copied().unwrap_or_default());
        let (topology, tenants) = (topologies()[kind % 2].clone(), kind / 2 % 4);
        let tenants = (tenants > 0).then_some(TENANTS);
        let desk = Desk::new(topology, tenants, Arc::new(Clock)).expect("a fabric that is right");
        let user = |tenant| User { tenant, busy: Cell::default(), gone: Cell::default(), held: RefCell::default() };
        let fabric = Fabric {
            desk,
            users: USERS.map(user).into(),
            stations: RefCell::default(),
            input: input.into(),
            at: Cell::new(1),
            steps: Cell::new(0),
            elsewhere: RefCell::default(),
            glances: Cell::new(false),
            given: RefCell::default(),
        };
        if kind / 8 % 4 > 0 {
            for name in &NODES[..4] {
                let hello = NodeMessage::Register {
                    name: (*name).into(),
                    stream: ([10, 0, 0, 1], 4000).into(),
                    further: Vec::new(),
                    datagram_buffer_bytes: 8 << 20,
                    workers: 2,
                    jobs: Vec::new(),
                };
                fabric.register(name, hello);
            }
        }
        Rc::new(fabric)
    }

    /// Makes what is made once.
    pub fn warm_up() {
        static WARM: OnceLock<()> = OnceLock::new();
        WARM.get_or_init(|| {
            let fabric = Fabric::begin(vec![15]);
            fabric.ask(0, job_at_once());
            fabric.all_leave();
        });
    }

    /// Takes the next step, in which time passes by `most` at most. Returns whether there was one.
    pub fn step(&self, most: Duration) -> bool {
        if self.steps.get() >= STEPS_MAX {
            return false;
        }
        let Some(bytes) = self.input.get(self.at.get()..).filter(|bytes| !bytes.is_empty()) else { return false };
        self.steps.set(self.steps.get() + 1);
        let mut draw = Draw::new(bytes);
        let kind = draw.below(24);
        // The rest of the input is the next step's before this one begins, because others are taken
        // inside of it.
        let taken = |draw: &Draw<'_>| self.at.set(self.input.len() - draw.left());
        match kind {
            0..7 => {
                let user = draw.below(USERS.len() as u32) as usize;
                let request = request(&mut draw, mark(self.users[user].tenant));
                taken(&draw);
                self.ask(user, request);
            }
            7 => {
                let user = draw.below(USERS.len() as u32) as usize;
                taken(&draw);
                self.hang_up(user);
            }
            8 => {
                let name = draw.pick(&NODES);
                let certified = if draw.one_in(8) { draw.pick(&NODES) } else { name };
                let hello = hello(&mut draw, name);
                taken(&draw);
                self.register(certified, hello);
            }
            9 => {
                let request = serve(&mut draw, &self.given.borrow().passes);
                taken(&draw);
                if let Ok(line) = self.desk.serve(caller(None), request) {
                    self.enter(line);
                }
            }
            10 => {
                let station = draw.byte().into();
                taken(&draw);
                self.lose(station);
            }
            11 => {
                let (station, message) = (draw.byte().into(), told(&mut draw));
                taken(&draw);
                self.say(station, message);
            }
            12..17 => {
                taken(&draw);
                self.answer_all();
            }
            17 => {
                let (station, refusal) = (draw.byte().into(), draw.one_in(2).then(|| refusal(&mut draw)));
                taken(&draw);
                self.answer(station, refusal.as_ref());
            }
            18 => {
                taken(&draw);
                self.desk.beat();
            }
            19 => {
                taken(&draw);
                self.glance();
            }
            20 => {
                taken(&draw);
                self.check_amounts();
            }
            _ => {
                let span = draw.pick(&SPANS);
                taken(&draw);
                playing::pass(span.min(most));
            }
        }
        true
    }

    /// Somebody waits for something that a step may bring, or for the time to pass.
    pub fn wait(&self, most: Duration) {
        let nests = self.elsewhere.borrow().len() < NESTED_MAX;
        if !nests || !self.step(most) {
            playing::pass(most);
        }
    }

    fn ask(&self, at: usize, request: Request) {
        let user = &self.users[at];
        if user.busy.replace(true) {
            return;
        }
        let longest = patience(&request);
        let seat = match &request {
            Request::Attach(rank) => Some(rank.rank),
            _ => None,
        };
        let mut held = user.held.take();
        let asker = Asker { tenant: user.tenant, is_gone: &|| user.gone.get() };
        let (reply, span) = self.outside(|| self.desk.ask(&asker, request, &mut held));
        assert!(span <= longest, "it took {span:?}, and {longest:?} are enough");
        assert!(held.len() <= 64, "{} jobs are held by one connection", held.len());
        user.held.replace(held);
        user.busy.set(false);
        match reply {
            Some(reply) => self.check(user, seat, &reply),
            None => assert!(user.gone.get(), "a request without an answer"),
        }
        if user.gone.get() {
            self.hang_up(at);
        }
    }

    /// Does what may wait, and returns how long it took for itself, less what began inside of it.
    fn outside<T>(&self, work: impl FnOnce() -> T) -> (T, Duration) {
        let begin = playing::passed();
        self.elsewhere.borrow_mut().push(Duration::ZERO);
        let result = work();
        let mut open = self.elsewhere.borrow_mut();
        let own = playing::passed() - begin - open.pop().unwrap_or_default();
        open.iter_mut().for_each(|elsewhere| *elsewhere += own);
        (result, own)
    }

    fn hang_up(&self, at: usize) {
        let user = &self.users[at];
        user.gone.set(user.busy.get());
        if !user.busy.get() {
            self.desk.hang_up(&mut user.held.borrow_mut());
        }
    }

    fn register(&self, certified: &str, hello: NodeMessage) {
        if let (Ok(line), _) = self.outside(|| self.desk.register(caller(Some(certified)), hello)) {
            self.enter(line);
        }
    }

    fn enter(&self, line: Connected) {
        self.stations.borrow_mut().push(Station { line, jobs: BTreeSet::new() });
        if self.stations.borrow().len() > STATIONS_MAX {
            self.lose(0);
        }
    }

    fn lose(&self, at: usize) {
        let mut stations = self.stations.borrow_mut();
        if !stations.is_empty() {
            let at = at % stations.len();
            let Station { line, .. } = stations.remove(at);
            self.desk.lose(line);
        }
    }

    fn say(&self, at: usize, message: NodeMessage) {
        let mut stations = self.stations.borrow_mut();
        if stations.is_empty() {
            return;
        }
        let at = at % stations.len();
        if stations[at].line.is_lost() || !self.desk.hear(&stations[at].line, message) {
            let Station { line, .. } = stations.remove(at);
            self.desk.lose(line);
        }
    }

    /// All nodes and deputies answer what they were asked as they should.
    fn answer_all(&self) {
        let count = self.stations.borrow().len();
        (0..count).for_each(|at| while self.answer(at, None) {});
    }

    /// One of them answers one message, with a refusal if it is about a job.
    fn answer(&self, at: usize, refusal: Option<&trib_messages::reply::Refusal>) -> bool {
        let mut stations = self.stations.borrow_mut();
        let count = stations.len().max(1);
        let Some(station) = stations.get_mut(at % count) else { return false };
        let Some(message) = station.line.next() else { return false };
        let answer = match message {
            ManagerMessage::Install(grant) => match refusal {
                Some(refusal) => NodeMessage::Rejected { job: grant.job, node: grant.node, refusal: refusal.clone() },
                None => {
                    station.jobs.insert(grant.job);
                    NodeMessage::Installed { job: grant.job, node: grant.node }
                }
            },
            ManagerMessage::End { job } => {
                station.jobs.remove(&job);
                NodeMessage::Left { job }
            }
            ManagerMessage::Ping => NodeMessage::Alive,
            ManagerMessage::QueryCounters => NodeMessage::Counters(BTreeMap::new()),
            ManagerMessage::QueryActivity => NodeMessage::Activity(station.jobs.iter().map(|job| idle(*job)).collect()),
            ManagerMessage::Explain { job, group } => {
                let (parts, traffic, epochs) = Default::default();
                NodeMessage::Explained { job, group, parts, traffic, epochs }
            }
            ManagerMessage::Registered => NodeMessage::Hosts { jobs: station.jobs.iter().copied().collect() },
            ManagerMessage::Refused(_) => return true,
        };
        if !station.line.is_lost() {
            self.desk.hear(&station.line, answer);
        }
        true
    }

    fn glance(&self) {
        if !self.glances.replace(true) {
            self.outside(|| self.desk.glance());
            self.glances.set(false);
        }
    }

    /// A reply tells nothing that its tenant may not know, and nothing twice.
    fn check(&self, user: &User, seat: Option<u32>, reply: &Reply) {
        let mut json = Vec::new();
        reply.write(&mut json);
        assert!(json.len() <= REPLY_MAX, "a reply of {} bytes", json.len());
        let sees_all = user.tenant.is_none() || user.tenant == Some(SEES_ALL) && self.has_policy();
        let own = mark(user.tenant).as_bytes()[2];
        let foreign = marks(&json).find(|letter| !sees_all && *letter != own);
        assert!(foreign.is_none(), "{:?} is told of another: {}", user.tenant, String::from_utf8_lossy(&json));
        if let Reply::Granted(ticket) = reply {
            self.given.borrow_mut().enter(user, seat, ticket);
        }
    }

    fn has_policy(&self) -> bool {
        self.desk.report().tenants.len() > 1
    }

    /// No tenant has more than it may have.
    fn check_amounts(&self) {
        for tenant in self.desk.report().tenants {
            let at_nodes = tenant.nodes.iter().flat_map(|at| [at.groups, at.osts, at.streams, at.memory_bytes]);
            for amount in at_nodes.chain([tenant.jobs]) {
                assert!(amount.limit.is_none_or(|limit| amount.used <= limit), "{} has {amount:?}", tenant.name);
            }
        }
    }

    /// All connections end, those of nodes last, and a while passes.
    pub fn all_leave(&self) {
        self.check_amounts();
        (0..self.users.len()).for_each(|at| self.hang_up(at));
        while !self.stations.borrow().is_empty() {
            self.lose(0);
        }
        for _ in 0..GLANCES {
            if self.desk.kept() == Kept::default() {
                return;
            }
            playing::pass(Duration::from_secs(1));
            self.desk.glance();
        }
    }

    /// Nothing is left of any job.
    pub fn is_empty(&self) {
        assert_eq!(self.desk.kept(), Kept::default());
    }
}

impl Given {
    fn enter(&mut self, user: &User, seat: Option<u32>, ticket: &JobTicket) {
        let known = self.keys.insert(ticket.key.0, (ticket.job, user.tenant));
        match (known, seat) {
            // The other ranks of one program get the same ticket.
            (Some(known), Some(_)) => assert_eq!(known, (ticket.job, user.tenant), "a key of somebody else"),
            (Some(known), None) => panic!("the key of {known:?} is given again"),
            (None, _) => assert!(self.numbers.insert(ticket.job), "{} is given again", ticket.job),
        }
        if let Some(rank) = seat {
            assert!(self.seats.insert((ticket.job, rank)), "rank {rank} of {} is given again", ticket.job);
        }
        self.passes.push((ticket.job, ticket.pass.clone()));
    }
}

fn caller(node: Option<&str>) -> Caller {
    Caller {
        address: ([10, 0, 0, 1], 999).into(),
        node: node.map(str::to_owned),
        software: "0.0.0".into(),
        certificate_ends: 1_800_000_000,
        hang_up: Box::new(|| {}),
    }
}

fn idle(job: JobId) -> JobActivity {
    let (nodes_in_ranks, moves, spent) = Default::default();
    let activity = Activity { groups: 0, ranks: 0, idle_ms: 0 };
    JobActivity { job, activity, nodes_in_ranks, moves, spent, replayed: Replayed::default() }
}

fn job_at_once() -> Request {
    let (pids, deputies, domains) = Default::default();
    let (name, user) = (mark(None).into(), mark(None).into());
    let hosts = vec!["a0".into(), "b0".into()];
    Request::RequestJob(JobRequest {
        hosts,
        pids,
        deputies,
        domains,
        ask: Default::default(),
        name,
        user,
        wait_ms: None,
        patience_ms: None,
    })
}

/// The longest time that a request may take for itself.
fn patience(request: &Request) -> Duration {
    let of = |ms: Option<u32>, else_ms: u32| Duration::from_millis(ms.unwrap_or(else_ms).min(3_600_000).into());
    let admission = |wait_ms| of(wait_ms, 0) + INSTALLING;
    match request {
        Request::RequestJob(job) => admission(job.wait_ms),
        // The ranks wait for the last of them, which may wait for the job; what each of them says
        // counts.
        Request::Attach(_) => 2 * Duration::from_secs(3600) + INSTALLING,
        Request::Status | Request::Jobs => Duration::from_secs(2),
        Request::Explain { .. } | Request::ExplainProgram { .. } => Duration::from_secs(1),
        _ => Duration::ZERO,
    }
}

fn topologies() -> &'static [Topology; 2] {
    static ALL: OnceLock<[Topology; 2]> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |text, name: &str| Topology::parse(text, name.as_ref()).expect("a topology that is right");
        [read(TREE, "topology.toml"), read(GRAPH, "topology.conf")]
    })
}

/// What the names of a tenant's programs and users begin with.
fn mark(tenant: Option<&str>) -> &'static str {
    match tenant {
        None => "zqo",
        Some("astro") => "zqa",
        Some("bio") => "zqb",
        Some(_) => "zqc",
    }
}

/// By name of a tenant's program or user in a text, the letter that tells whose it is. A name may
/// be cut in front of that.
fn marks(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let marks = text.windows(3).filter(|window| window.starts_with(b"zq") && b"oabc".contains(&window[2]));
    marks.map(|window| window[2])
}

const USERS: [Option<&str>; 8] =
    [None, Some("astro"), Some("astro"), Some("astro"), Some("bio"), Some("bio"), Some("bio"), Some("chem")];
const SEES_ALL: &str = "bio";

const TREE: &str = "[fabric]\nname = \"tree\"\n[[node]]\nname = \"spine0\"\n[[node]]\nname = \"leaf0\"\nparent = \"spine0\"\n\
    [[node]]\nname = \"leaf1\"\nparent = \"spine0\"\n[[node]]\nname = \"spine1\"\nparent = \"spine0\"\n\
    [[host]]\nname = \"*\"\nleaves = [\"leaf0\", \"leaf1\"]\n\
    [[host]]\nname = \"a0\"\nleaf = \"leaf0\"\n[limits]\ngroups = { default = 10, maximum = 200 }\n";
const GRAPH: &str = "SwitchName=leaf0 Nodes=a[0-1]\nSwitchName=leaf1 Nodes=b[0-1]\n\
    SwitchName=spine0 Switches=leaf[0-1]\nSwitchName=spine1 Switches=leaf[0-1]\n";
const TENANTS: &str = "[node]\nstreams = 8\n[root]\njobs = 3\n[[tenant]]\nname = \"astro\"\njobs = 2\nreserve = \"1/2\"\n\
    hosts = [\"a0\"]\n[[tenant]]\nname = \"bio\"\npriority = 7\nstreams = 4\nsees = \"all\"\n";

const SPANS: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_secs(70),
];
/// More steps than fit into the longest input that is worth it.
const STEPS_MAX: usize = 200;
/// How many requests wait inside of each other.
const NESTED_MAX: usize = 4;
const STATIONS_MAX: usize = 8;
/// Nodes count as down a minute after the last word of them.
const GLANCES: usize = 70;
const REPLY_MAX: usize = 1 << 20;
/// Each attempt may take the longest that nodes may take to install a job, and the same for
/// backups; every attempt goes around a node more, and backups may refuse four times.
const INSTALLING: Duration = Duration::from_secs(6 * 70);
