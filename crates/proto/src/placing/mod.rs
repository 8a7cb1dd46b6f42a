//! Where the nodes of a job are, and how all that take part come to agree on it when some of them
//! die: what a process or a rank does when it is told of a placement, when a neighbour is gone,
//! when it is called, and when a call of its own fails. Nothing here knows of sockets.
//!
//! Map: `view` (the placement that one process or rank knows), `caller` (the lower end of an edge:
//! which process to call, and when), `host` (a process that may host nodes, and the nodes that it
//! does host).
//!
//! ```text
//!   a rank, or a node for its process                 a process that may host the node above
//!   call: the node, the own placement  ------------>  joins both placements
//!                                      <-- Moved ---  the joined one, if the caller's is behind it
//!                                      <-- Accept --  if they are equal; the first makes the node
//!   confirms: only now does either end miss the other
//! ```
//! A call that is refused or gets no answer counts a move for the called node: its next candidate
//! is called, in the next epoch. So does a connection that ends without a word. An end that goes
//! away for a reason of its own says so (`Kind::Move`) before it closes the connection, and a
//! process says `Moved` to those whose calls it has accepted and that have not confirmed: else each
//! of them would count a move for a node that lives, and so begin the next epoch, and the next.
//!
//! Children of one node may come to different candidates. Their parents bring them together,
//! because each of them calls the same process in the end. The root of the tree has no parent: a
//! process that hosts it after a move tells all other candidates of the root.

mod caller;
mod host;
mod view;

pub use caller::Caller;
pub use host::{Answer, Errand, Heard, Host, Hosting};
pub use view::View;
