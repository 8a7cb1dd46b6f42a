//! An edge before both ends know each other.

use std::io;
use std::sync::Arc;

use trib_wire::offer::Offer;

use super::edge::Edge;
use super::worker::UcxWorker;

/// One end of an edge that may get messages as soon as the far end has its offer.
pub(crate) struct Stub {
    pub(super) worker: UcxWorker,
    pub(super) edge: Arc<Edge>,
    /// Whether an end of a connection has taken it over.
    taken: bool,
}

impl Stub {
    /// A stub at this worker. The name is drawn at random, so that nobody else knows it.
    pub(crate) fn at(worker: &UcxWorker, name: u64) -> io::Result<Stub> {
        Ok(Stub { worker: worker.clone(), edge: worker.stub(name)?, taken: false })
    }

    /// What the far end is to know.
    pub(crate) fn offer(&self) -> io::Result<Offer> {
        let offer = Offer::new(self.edge.name, self.worker.address());
        offer.ok_or_else(|| io::Error::other("UCX has too many devices to tell of: name some with UCX_NET_DEVICES"))
    }

    /// The far end has said this.
    pub(crate) fn meet(&self, offer: &Offer) -> io::Result<()> {
        Ok(self.worker.connect(&self.edge, offer.name(), offer.address())?)
    }

    pub(super) fn take(mut self) -> (UcxWorker, Arc<Edge>) {
        self.taken = true;
        (self.worker.clone(), self.edge.clone())
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        if !self.taken {
            self.worker.leave(&self.edge);
        }
    }
}

impl std::fmt::Debug for Stub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stub").finish_non_exhaustive()
    }
}
