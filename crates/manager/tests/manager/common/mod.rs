//! A manager on loopback, nodes that answer as they are told to, and users.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trib_control::{Channel, Credentials, Error as ControlError, Holder, KeyFolder, ManagerUrl, VALIDITY};
use trib_manager::{Manager, Options};
use trib_messages::hello::Role;
use trib_messages::job::{JobTicket, NodeGrant};
use trib_messages::jobs::{Activity, JobActivity, JobsReport};
use trib_messages::levels::Levels;
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::recovery::Replayed;
use trib_messages::reply::{Refusal, Reply, Resource, StatusReport};
use trib_messages::request::{AttachRequest, JobRequest, QuotaAsk, Request};
use trib_wire::ids::{JobId, NodeId};

pub const LIMIT: Duration = Duration::from_secs(20);

pub const TWO_LEAVES: &str = r#"
[fabric]
name = "test"
[[node]]
name = "root"
[[node]]
name = "leaf0"
parent = "root"
[[node]]
name = "leaf1"
parent = "root"
[[host]]
name = "*"
leaves = ["leaf0", "leaf1"]
[[host]]
name = "h0"
leaf = "leaf0"
[limits]
groups = { default = 10, maximum = 20 }
"#;

/// What a node says if it has no room for a job.
pub fn full() -> Refusal {
    let text = "memory is full".into();
    Refusal { resource: Resource::Memory, asked: 9, available: 3, holder: None, since_ms: None, text }
}

/// A manager with credentials and a topology of its own.
pub struct Fabric {
    folder: PathBuf,
    manager: Option<Manager>,
    address: SocketAddr,
    options: Options,
}

impl Fabric {
    pub fn start() -> Self {
        Self::serving("topology.toml", TWO_LEAVES)
    }

    /// A fabric with a topology file of this name and text.
    pub fn serving(file: &str, text: &str) -> Self {
        Self::prepared(file, text, |_| None)
    }

    /// A fabric with a topology, a tenants file and credentials for these tenants.
    pub fn with_tenants(topology: &str, tenants: &str, names: &[&str]) -> Self {
        Self::prepared("topology.toml", topology, |folder| {
            for name in names {
                KeyFolder::at(folder).add(&Holder::tenant(name).unwrap(), VALIDITY).unwrap();
            }
            let file = folder.join("tenants.toml");
            std::fs::write(&file, tenants).unwrap();
            Some(file)
        })
    }

    fn prepared(file: &str, text: &str, tenants: impl FnOnce(&Path) -> Option<PathBuf>) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let unique = format!("trib-manager-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(unique);
        KeyFolder::at(&folder).create(VALIDITY).unwrap();
        let topology = folder.join(file);
        std::fs::write(&topology, text).unwrap();
        let state = Some(folder.join("jobs"));
        let listen = "127.0.0.1:0".parse().unwrap();
        let tenants = tenants(&folder);
        let mut options = Options { listen, topology, credentials: folder.clone(), state, tenants, constants: None };
        let manager = Manager::bind(&options).unwrap();
        let address = manager.address();
        options.listen = address;
        Fabric { folder, manager: Some(manager), address, options }
    }

    /// A fabric with all nodes of the topology.
    pub fn with_nodes() -> (Self, BTreeMap<&'static str, Node>) {
        let fabric = Self::start();
        let nodes = ["root", "leaf0", "leaf1"].map(|name| (name, fabric.node(name, Manner::Installs)));
        (fabric, nodes.into())
    }

    pub fn url(&self) -> ManagerUrl {
        ManagerUrl::new(self.address.ip().to_string(), self.address.port(), &self.folder)
    }

    pub fn credentials(&self, role: Role) -> Credentials {
        Credentials::load(&self.folder, role).unwrap()
    }

    /// A connection with the certificate of this node, which has said nothing yet.
    pub fn node_channel(&self, name: &str) -> Channel {
        match self.keys().add(&Holder::node(name).unwrap(), VALIDITY) {
            Ok(_) | Err(ControlError::HolderExists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        Channel::connect_node(&self.url(), name, LIMIT).unwrap()
    }

    /// The operator's folder.
    pub fn keys(&self) -> KeyFolder {
        KeyFolder::at(&self.folder)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the manager was started with.
    pub fn options(&self) -> Options {
        self.options.clone()
    }

    /// The manager that runs.
    pub fn manager(&self) -> &Manager {
        self.manager.as_ref().unwrap()
    }

    pub fn user(&self) -> User {
        User(Channel::connect(&self.url(), Role::User, LIMIT).unwrap())
    }

    /// A user's connection with a tenant's certificate.
    pub fn tenant(&self, name: &str) -> User {
        let (host, folder) = (self.address.ip().to_string(), self.folder.join("tenants").join(name));
        User(Channel::connect(&ManagerUrl::new(host, self.address.port(), folder), Role::User, LIMIT).unwrap())
    }

    pub fn node(&self, name: &str, manner: Manner) -> Node {
        let node = Node::connect(self, name, manner);
        assert_eq!(node.next(), ManagerMessage::Registered);
        node
    }

    pub fn stop_manager(&mut self) {
        self.manager.take().unwrap().shutdown();
    }

    /// The file in which the manager keeps its jobs, as bytes.
    pub fn kept(&self) -> Vec<u8> {
        std::fs::read(self.options.state.as_ref().unwrap()).unwrap()
    }

    /// Starts another manager at the address of the one that was stopped, with what that one kept.
    pub fn start_manager(&mut self) {
        self.manager = Some(Manager::bind(&self.options).unwrap());
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.manager = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How a node answers to grants.
#[derive(Clone)]
pub enum Manner {
    Installs,
    /// It installs them, but its ranks never leave.
    Drains,
    Rejects(Refusal),
    Ignores,
    HangsUp,
}

/// A node that keeps what it is told, except for questions about its counters.
pub struct Node {
    pub channel: Arc<Channel>,
    /// What it says of the jobs that it hosts.
    doings: Arc<Mutex<BTreeMap<JobId, JobActivity>>>,
    /// The logical nodes that it was told to host.
    granted: Arc<Mutex<Vec<(JobId, NodeId)>>>,
    heard: Mutex<Receiver<ManagerMessage>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    pub fn connect(fabric: &Fabric, name: &str, manner: Manner) -> Self {
        Self::listening(fabric, name, manner, &["0.0.0.0:4000"])
    }

    /// A node that takes streams at these addresses.
    pub fn listening(fabric: &Fabric, name: &str, manner: Manner, streams: &[&str]) -> Self {
        Self::registering(fabric, name, manner, streams, &[], &[])
    }

    /// A node that holds jobs of an earlier manager, to which no rank has come.
    pub fn holding(fabric: &Fabric, name: &str, jobs: &[JobId]) -> Self {
        Self::registering(fabric, name, Manner::Installs, &["0.0.0.0:4000"], jobs, &[])
    }

    /// A node that hosts jobs of an earlier manager, with ranks.
    pub fn hosting(fabric: &Fabric, name: &str, jobs: &[JobId]) -> Self {
        Self::registering(fabric, name, Manner::Installs, &["0.0.0.0:4000"], jobs, jobs)
    }

    fn registering(
        fabric: &Fabric,
        name: &str,
        manner: Manner,
        streams: &[&str],
        jobs: &[JobId],
        hosted: &[JobId],
    ) -> Self {
        let channel = Arc::new(fabric.node_channel(name));
        let mut streams = streams.iter().map(|stream| stream.parse().unwrap());
        let stream = streams.next().unwrap();
        let register = NodeMessage::Register {
            name: name.into(),
            stream,
            further: streams.collect(),
            datagram_buffer_bytes: 425_984,
            workers: 1,
            jobs: jobs.to_vec(),
        };
        channel.send(&register).unwrap();
        let (sender, heard) = mpsc::channel();
        let inner = channel.clone();
        let activity = Activity { groups: 2, ranks: 1, idle_ms: 5 };
        let busy = move |job| JobActivity {
            job,
            activity,
            nodes_in_ranks: 0,
            moves: Vec::new(),
            spent: Vec::new(),
            replayed: Replayed::default(),
        };
        let doings: BTreeMap<_, _> = hosted.iter().map(|job| (*job, busy(*job))).collect();
        let doings = Arc::new(Mutex::new(doings));
        let told = doings.clone();
        let granted: Arc<Mutex<Vec<(JobId, NodeId)>>> = Arc::default();
        let grants = granted.clone();
        let thread = thread::spawn(move || {
            while let Ok(message) = inner.recv::<ManagerMessage>(None) {
                match &message {
                    ManagerMessage::Install(grant) => {
                        let mut told = told.lock().unwrap();
                        told.entry(grant.job).or_insert_with(|| busy(grant.job));
                        // A backup hosts nothing as long as nobody calls it.
                        grants.lock().unwrap().extend((grant.candidate == 0).then_some((grant.job, grant.node)));
                    }
                    ManagerMessage::End { job } => drop(told.lock().unwrap().remove(job)),
                    _ => {}
                }
                let answer = match (&message, &manner) {
                    (ManagerMessage::Ping, Manner::Ignores) => None,
                    (ManagerMessage::Ping, _) => Some(NodeMessage::Alive),
                    (ManagerMessage::Install(grant), Manner::Installs | Manner::Drains) => {
                        Some(NodeMessage::Installed { job: grant.job, node: grant.node })
                    }
                    (ManagerMessage::Install(grant), Manner::Rejects(refusal)) => {
                        Some(NodeMessage::Rejected { job: grant.job, node: grant.node, refusal: refusal.clone() })
                    }
                    (ManagerMessage::End { job }, Manner::Installs) => Some(NodeMessage::Left { job: *job }),
                    (ManagerMessage::Install(_), Manner::HangsUp) => return inner.close(),
                    (ManagerMessage::QueryCounters, Manner::Installs) => {
                        Some(NodeMessage::Counters(BTreeMap::from([("frames".into(), 7)])))
                    }
                    (ManagerMessage::QueryActivity, Manner::Installs) => {
                        Some(NodeMessage::Activity(told.lock().unwrap().values().cloned().collect()))
                    }
                    _ => None,
                };
                if let Some(answer) = answer {
                    let _ = inner.send(&answer);
                }
                // The manager may ask for a sign of life at any time, and so may anyone for the
                // status and the jobs.
                let is_question = matches!(
                    message,
                    ManagerMessage::Ping | ManagerMessage::QueryCounters | ManagerMessage::QueryActivity
                );
                if !is_question {
                    let _ = sender.send(message);
                }
            }
        });
        Node { channel, doings, granted, heard: Mutex::new(heard), thread: Some(thread) }
    }

    /// The ranks of a job have come, and have all gone.
    pub fn is_left_by_ranks_of(&self, job: JobId) {
        let granted = self.granted.lock().unwrap();
        let nodes: Vec<u16> = granted.iter().filter(|(of, _)| *of == job).map(|(_, node)| node.0).collect();
        if !nodes.is_empty() {
            self.has_ranks(job, 0, &nodes);
        }
    }

    /// The ranks of a job come to these logical nodes of it here, or they have all left them.
    pub fn has_ranks(&self, job: JobId, ranks: u32, spent: &[u16]) {
        let spent = spent.iter().map(|node| NodeId(*node)).collect();
        let activity = Activity { groups: 2, ranks, idle_ms: 5 };
        self.doings.lock().unwrap().insert(
            job,
            JobActivity { job, activity, nodes_in_ranks: 0, moves: Vec::new(), spent, replayed: Replayed::default() },
        );
    }

    /// The next message.
    pub fn next(&self) -> ManagerMessage {
        self.heard.lock().unwrap().recv_timeout(LIMIT).unwrap()
    }

    /// The next message, which is a grant.
    pub fn grant(&self) -> NodeGrant {
        match self.next() {
            ManagerMessage::Install(grant) => *grant,
            other => panic!("{other:?}"),
        }
    }

    /// Whether nothing has come.
    pub fn is_quiet(&self) -> bool {
        self.heard.lock().unwrap().try_recv().is_err()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.channel.close();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A user's connection.
pub struct User(pub Channel);

impl User {
    pub fn ask(&self, request: &Request) -> Reply {
        self.0.ask(request, LIMIT).unwrap()
    }

    pub fn job(&self, hosts: &[&str], ask: QuotaAsk) -> Result<JobTicket, Refusal> {
        let hosts = hosts.iter().map(|host| host.to_string()).collect();
        verdict(self.ask(&Request::RequestJob(JobRequest {
            hosts,
            pids: Vec::new(),
            deputies: Vec::new(),
            domains: Vec::new(),
            ask,
            name: "prog".into(),
            user: "ann".into(),
            wait_ms: None,
            patience_ms: None,
        })))
    }

    pub fn jobs(&self) -> JobsReport {
        match self.ask(&Request::Jobs) {
            Reply::Jobs(report) => report,
            other => panic!("{other:?}"),
        }
    }

    pub fn attach(&self, rank: AttachRequest) -> Result<JobTicket, Refusal> {
        verdict(self.ask(&Request::Attach(rank)))
    }

    pub fn status(&self) -> StatusReport {
        match self.ask(&Request::Status) {
            Reply::Status(report) => report,
            other => panic!("{other:?}"),
        }
    }
}

/// A job of ranks on host x, which is no level of its tree, that may host its nodes. Each listens
/// at one of these ports.
pub fn with_deputies(ports: impl IntoIterator<Item = u16>) -> JobRequest {
    let deputies: Vec<_> = ports.into_iter().map(|port| Some(SocketAddr::from(([127, 0, 0, 1], port)))).collect();
    JobRequest {
        hosts: vec!["x".into(); deputies.len()],
        pids: Vec::new(),
        deputies,
        domains: Vec::new(),
        ask: QuotaAsk { levels: Some(Levels::None), ..QuotaAsk::default() },
        name: "prog".into(),
        user: "ann".into(),
        wait_ms: None,
        patience_ms: None,
    }
}

pub fn attachment(rendezvous: &str, rank: u32, size: u32, patience_ms: u32) -> AttachRequest {
    AttachRequest {
        rendezvous: rendezvous.into(),
        rank,
        size,
        host: "x".into(),
        pid: 0,
        deputy: None,
        domain: None,
        ask: QuotaAsk::default(),
        name: "prog".into(),
        user: "ann".into(),
        patience_ms: Some(patience_ms),
        wait_ms: None,
    }
}

pub fn verdict(reply: Reply) -> Result<JobTicket, Refusal> {
    match reply {
        Reply::Granted(ticket) => Ok(ticket),
        Reply::Refused(refusal) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}
