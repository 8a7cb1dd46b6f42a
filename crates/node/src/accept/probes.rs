//! Whether the ranks that hosted a logical node before are still there.
//!
//! A node in a rank's process dies with that rank. Where the node goes on, others wait for the rank
//! to call, and a rank may take a minute to do so, because it may be late or stopped. But one whose
//! process has ended never will, and its port says so: there the kernel refuses connections, which
//! it does not for a process that is only stopped.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use trib_messages::job::NodeGrant;
use trib_wire::{ChildIndex, ChildKind, Placement};

use super::Request;
use crate::mailbox::Mailbox;

/// Looks for those that hosted the node before this placement and are children of it. The acceptor
/// is told of each that is gone. A thread does this for some seconds.
pub(super) fn watch(grant: &NodeGrant, placement: &Placement, acceptor: Mailbox<Request>) {
    let (key, epoch) = ((grant.job, grant.node), placement.epoch(grant.epoch));
    let mut watched = watched(grant, placement);
    if watched.is_empty() {
        return;
    }
    let look = move || {
        for pause in PAUSES_MS {
            thread::sleep(Duration::from_millis(pause));
            watched.retain_mut(|Watched { child, stream, refusals }| {
                *refusals = if refuses(*stream) { *refusals + 1 } else { 0 };
                let is_gone = *refusals >= REFUSALS;
                if is_gone {
                    acceptor.post(Request::ChildGone { key, epoch, child: *child });
                }
                !is_gone
            });
            if watched.is_empty() {
                return;
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("probes".into()).spawn(look) {
        tracing::warn!(%error, "dead ranks are found later, because no thread can be had to look for them");
    }
}

/// A rank that hosted the node, and the port at which it took calls for it.
struct Watched {
    child: ChildIndex,
    stream: SocketAddr,
    /// How often in a row a connection was refused there.
    refusals: u32,
}

fn watched(grant: &NodeGrant, placement: &Placement) -> Vec<Watched> {
    let watched = grant.hosted_before(placement).filter_map(|(rank, candidate)| {
        let child = grant.children.iter().position(|child| child.kind == ChildKind::Rank(rank))?;
        let stream = *grant.candidates.get(candidate)?;
        Some(Watched { child: ChildIndex(child as u16), stream, refusals: 0 })
    });
    watched.collect()
}

fn refuses(stream: SocketAddr) -> bool {
    TcpStream::connect_timeout(&stream, PATIENCE).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// The pauses before each look. A process that dies closes its connections one by one; a rank that
/// lives, and only hosts nothing any more, calls meanwhile.
const PAUSES_MS: [u64; 8] = [50, 150, 300, 500, 1_000, 2_000, 3_000, 3_000];
/// So many refusals in a row are the end of a process.
const REFUSALS: u32 = 3;
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_port_refuses_only_when_nobody_listens_there_any_more() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(!refuses(address), "nobody accepts, but somebody listens");
        drop(listener);
        assert!(refuses(address));
    }
}
