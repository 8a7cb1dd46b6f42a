//! The manager without connections and threads: its owner says what comes from which side, in a
//! time that is played, and gets the answers. What happens behind it is what happens in a daemon.
//!
//! Fuzzers sit here. A request that has to wait calls [`Played::pass`], in which other parties may
//! speak, so that requests overlap as those of threads do.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::{Refusal, Reply};
use trib_messages::request::{Request, ServeRequest};
use trib_topology::Topology;
use trib_topology::predict::Constants;
use trib_wire::ids::JobId;

use crate::Error;
use crate::admission::unheld::Watch;
use crate::answers::report::{Doors, ManagerReport};
use crate::conversations::user::Asker;
use crate::conversations::{deputy, node, user};
use crate::fabric::Fabric;
use crate::lock::lock;
use crate::nodes::session::{Caller, Session};
use crate::tenancy::Policy;
use crate::time::{Played, Time};

/// A manager that does what its owner says has happened.
pub struct Desk {
    fabric: Fabric,
    watch: Mutex<Watch>,
}

/// A node or a deputy that was let in.
pub struct Connected {
    session: Arc<Session>,
    messages: Receiver<Box<ManagerMessage>>,
    /// As what it was let in, if it is a deputy.
    deputy: Option<ServeRequest>,
}

/// How much there is of what jobs take, which is nothing once all of them are gone from everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Kept {
    /// Jobs that are admitted.
    pub jobs: usize,
    /// Claims on what tenants may have.
    pub claims: usize,
    /// Jobs that wait for their turn.
    pub waiting: usize,
    /// Programs whose ranks gather.
    pub gathering: usize,
    /// Jobs whose trees take something of the fabric.
    pub trees: usize,
    /// Deputies that are connected.
    pub deputies: usize,
}

impl Desk {
    /// A manager of this fabric, with the text of a tenants file, without a file of jobs. Fails if
    /// the tenants file is wrong.
    pub fn new(topology: Topology, tenants: Option<&str>, time: Arc<dyn Played>) -> Result<Desk, Error> {
        let policy = tenants.map(|text| Policy::parse(text, "tenants.toml".as_ref(), &topology)).transpose()?;
        let policy = policy.unwrap_or_default();
        let fabric = Fabric::new(topology, None, policy, Constants::server(), Time::played(time))?;
        let watch = Mutex::new(Watch::begin(&fabric));
        Ok(Desk { fabric, watch })
    }

    /// A connection that holds these jobs asks for something. It is not answered if it is gone by
    /// then.
    pub fn ask(&self, asker: &Asker<'_>, request: Request, held: &mut Vec<JobId>) -> Option<Reply> {
        user::answer(&self.fabric, asker, request, held)
    }

    /// The connection that holds these jobs ends without a word.
    pub fn hang_up(&self, held: &mut Vec<JobId>) {
        user::leave(&self.fabric, held);
    }

    /// A node calls, and this is the first that it says.
    pub fn register(&self, caller: Caller, hello: NodeMessage) -> Result<Connected, Refusal> {
        let (session, messages) = node::register(&self.fabric, caller, hello)?;
        Ok(Connected { session, messages, deputy: None })
    }

    /// A rank calls that hosts nodes of its job.
    pub fn serve(&self, caller: Caller, request: ServeRequest) -> Result<Connected, Refusal> {
        let (session, messages) = deputy::enter(&self.fabric, caller, &request)?;
        Ok(Connected { session, messages, deputy: Some(request) })
    }

    /// A node or a deputy says something. Returns whether it may stay.
    pub fn hear(&self, from: &Connected, message: NodeMessage) -> bool {
        let Connected { session, deputy, .. } = from;
        session.heard();
        let heard = match deputy {
            Some(request) => deputy::hear(&self.fabric, request, session, message),
            None => node::hear(&self.fabric, session, message),
        };
        session.listens();
        heard.is_ok()
    }

    /// The connection of a node or of a deputy has ended.
    pub fn lose(&self, gone: Connected) {
        let Connected { session, deputy, .. } = gone;
        match deputy {
            Some(ServeRequest { job, rank, .. }) => {
                session.lose();
                self.fabric.deputies.leave((job, rank), &session);
            }
            None => node::leave(&self.fabric, &session),
        }
    }

    /// Nodes and deputies are asked for a sign of life, which a daemon does once a second.
    pub fn beat(&self) {
        let now_ms = self.fabric.time.unix_ms();
        self.fabric.registry.beat(now_ms);
        self.fabric.deputies.beat(now_ms);
    }

    /// Looks whether ranks are left of the jobs that no connection holds, which a daemon does twice
    /// a second. Must not be called while it waits.
    pub fn glance(&self) {
        let mut watch = std::mem::replace(&mut *lock(&self.watch), Watch::begin(&self.fabric));
        watch.glance(&self.fabric);
        *lock(&self.watch) = watch;
    }

    /// What there is of what jobs take.
    pub fn kept(&self) -> Kept {
        let Fabric { jobs, tenancy, rendezvous, trees, deputies, .. } = &self.fabric;
        Kept {
            jobs: jobs.list().len(),
            claims: tenancy.charged(),
            waiting: tenancy.waiting(),
            gathering: rendezvous.gathering(),
            trees: trees.holders(),
            deputies: deputies.all().len(),
        }
    }

    /// The figures that a daemon tells who watches it.
    pub fn report(&self) -> ManagerReport {
        ManagerReport::of(&self.fabric, Doors::default())
    }
}

impl Connected {
    /// The next thing that has to be sent to it.
    pub fn next(&self) -> Option<ManagerMessage> {
        self.messages.try_recv().ok().map(|message| *message)
    }

    /// Whether the manager has ended its connection.
    pub fn is_lost(&self) -> bool {
        self.session.is_lost()
    }
}
