//! What other threads say to a worker.

use std::sync::mpsc::Sender;

use trib_messages::job::NodeGrant;
use trib_transport::tcp::HandshakeError;
use trib_transport::ucx::UcxWorker;
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Placement};

use super::questions::Question;
use crate::job::{Buffers, LinkNumber, Opened};

/// A logical node's name in this process.
pub(crate) type Key = (JobId, NodeId);

/// A message to a worker.
pub(crate) enum Command {
    /// Host this logical node in this placement, with the memory that is reserved for it. Without
    /// any, memory is to be had that was kept free for it. The key is the one that children get.
    Host(Box<NodeGrant>, Placement, Option<Box<Buffers>>, FrameKey),
    /// Links over UCX go through this.
    UseUcx(UcxWorker),
    /// A connection of a hosted node is open and authenticated.
    LinkUp { key: Key, epoch: Epoch, link: LinkNumber, opened: Opened },
    /// The process of a child is gone that has not called in this epoch.
    ChildGone { key: Key, epoch: Epoch, child: ChildIndex },
    /// The parent of a hosted node cannot be reached.
    ParentFailed { key: Key, epoch: Epoch, error: HandshakeError },
    /// The tree of a logical node has another placement. Its core here ends, if there is one.
    Leave { key: Key, placement: Placement },
    /// The manager ended a job.
    End(JobId),
    /// Answer this when its turn has come.
    Ask(Question),
    /// The process is about to leave: logical nodes below which no rank is left end at once. Drop
    /// the sender when there is no other one here.
    SeeOut(Sender<()>),
    /// End the thread.
    Stop,
}
