//! Which aggregation nodes are connected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use trib_messages::node::ManagerMessage;
use trib_wire::ids::JobId;

use super::session::Session;
use crate::lock::lock;

/// The nodes that have registered, by name.
#[derive(Default)]
pub(crate) struct Registry {
    nodes: Mutex<BTreeMap<String, Arc<Session>>>,
}

impl Registry {
    /// Makes `session` the node of its name. If a connected one has the name that is not `known`,
    /// it stays and is returned as the error.
    pub(crate) fn enter(&self, session: &Arc<Session>, known: Option<&Arc<Session>>) -> Result<(), Arc<Session>> {
        let mut nodes = lock(&self.nodes);
        match nodes.get(&session.name) {
            Some(other) if !other.is_lost() && !known.is_some_and(|known| Arc::ptr_eq(known, other)) => {
                Err(other.clone())
            }
            _ => {
                nodes.insert(session.name.clone(), session.clone());
                Ok(())
            }
        }
    }

    /// Whether no other session has taken the name of this one.
    pub(crate) fn is_latest(&self, session: &Session) -> bool {
        self.known(&session.name).is_some_and(|known| std::ptr::eq(&*known, session))
    }

    /// The node of this name if it is connected.
    pub(crate) fn connected(&self, name: &str) -> Option<Arc<Session>> {
        self.known(name).filter(|session| !session.is_lost())
    }

    /// The names of the nodes that are connected and answer.
    pub(crate) fn all_answering(&self) -> BTreeSet<String> {
        let nodes = lock(&self.nodes);
        let answers = |session: &&Arc<Session>| !session.is_lost() && session.late_ms().is_none();
        nodes.values().filter(answers).map(|session| session.name.clone()).collect()
    }

    /// The names of the nodes that are connected and do not answer.
    pub(crate) fn all_silent(&self) -> Vec<String> {
        let nodes = lock(&self.nodes);
        let is_silent = |session: &&Arc<Session>| !session.is_lost() && session.silent_ms().is_some();
        nodes.values().filter(is_silent).map(|session| session.name.clone()).collect()
    }

    /// One beat of the search for nodes that do not answer.
    pub(crate) fn beat(&self, now_ms: u64) {
        let sessions: Vec<_> = lock(&self.nodes).values().cloned().collect();
        sessions.iter().for_each(|session| session.beat(now_ms));
    }

    /// The node of this name if it ever registered.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<Session>> {
        lock(&self.nodes).get(name).cloned()
    }

    /// Takes the lock once.
    pub(crate) fn touch(&self) {
        drop(lock(&self.nodes));
    }

    /// Tells the nodes of these names that a job is over.
    pub(crate) fn end_job<'a>(&self, job: JobId, names: impl IntoIterator<Item = &'a String>) {
        for session in names.into_iter().filter_map(|name| self.connected(name)) {
            session.post(ManagerMessage::End { job });
        }
    }
}
