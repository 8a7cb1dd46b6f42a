//! What happens in a run, and what the ends of a link say to each other.

use std::rc::Rc;

use trib_wire::{ChildIndex, Epoch, Placement};

use crate::network::Frame;

/// What happens.
#[derive(Debug)]
pub enum Event {
    /// A datagram arrives at the far end of a link.
    Datagram {
        /// The link.
        edge: Edge,
        /// The frame.
        frame: Rc<Frame>,
    },
    /// A stream frame has arrived at the far end of a link.
    Readable(Edge),
    /// A result is in the socket of a child's link.
    Written {
        /// The link, seen from above.
        edge: Edge,
        /// The frame.
        frame: Rc<Frame>,
    },
    /// A word about a link arrives at its far end.
    Word(Edge, Word),
    /// An actor calls the node above for the first time.
    FirstCall(usize),
    /// A process that hosts the root tells the placement to another one that might.
    Tell {
        /// The root's site in the process that tells.
        from: usize,
        /// The root's site in the process that is told.
        to: usize,
        /// What it is told, or answers.
        placement: Placement,
        /// Whether this is the answer.
        answers: bool,
    },
    /// An actor may have something to do.
    Wake(usize),
    /// A rank's program may go on.
    Program(usize),
    /// A rank is killed; its connection closes or it falls silent.
    KillRank {
        /// The rank.
        rank: u32,
        /// Whether the connection closes.
        orderly: bool,
    },
    /// A process that may host nodes is killed.
    KillProcess {
        /// The process.
        process: usize,
        /// Whether its host lives, and says that nobody is there.
        refuses: bool,
    },
    /// A process that may host nodes leaves the job, and tells its neighbours.
    Depart(usize),
    /// A process that hosts a node looks for one that hosted it before.
    Look {
        /// The site of the node.
        site: usize,
        /// What it looks for.
        look: Look,
    },
    /// A process that was killed begins anew, and has forgotten everything.
    Restart(usize),
}

/// A look for a rank that hosted a node before and is a child of it.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The epoch of the node's core.
    pub epoch: Epoch,
    /// Which child it is.
    pub child: ChildIndex,
    /// The rank.
    pub rank: u32,
    /// How many looks there were before.
    pub before: usize,
    /// How many of them, the last ones, found that its process is gone.
    pub refusals: u32,
}

/// What the two ends of a link say to each other about the link itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// The lower end calls, with the placement that it knows.
    Call(Placement),
    /// The upper end takes the call.
    Accept,
    /// The lower end is to call again with this placement.
    Moved(Placement),
    /// The upper end does not take the call, or is not there.
    Refuse,
    /// The lower end has heard that its call was taken.
    Confirm,
    /// The stream is closed.
    Down,
}

/// One direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The link.
    pub link: usize,
    /// Whether frames go up.
    pub up: bool,
}

/// How a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// A process closes it: what it has said to the other end still arrives.
    Orderly,
    /// The process is gone: what is in sockets still arrives.
    Killed,
    /// Nothing arrives any more, except that the stream has ended.
    Reset,
}
