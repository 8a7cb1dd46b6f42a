//! One authenticated conversation.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, Connection};
use trib_messages::Message;
use trib_messages::hello::{Hello, Role};

use crate::certificate::Certificate;
use crate::holder::{Holder, role_name};
use crate::parties::Parties;
use crate::secure::{Limit, Secure};
use crate::unfinished::Room;
use crate::{Credentials, Error, ManagerUrl, frame, handshake};

/// The other side of a channel.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its certificate, which proves its role.
    pub certificate: Certificate,
    /// Its software version, as it says.
    pub software: String,
    /// The address from which it connects.
    pub address: SocketAddr,
}

impl Peer {
    /// Its role.
    pub fn role(&self) -> Role {
        self.certificate.holder.role()
    }

    /// The tenant that its certificate names, if it names one.
    pub fn tenant(&self) -> Option<&str> {
        match &self.certificate.holder {
            Holder::Tenant(name) => Some(name),
            _ => None,
        }
    }

    /// The aggregation node that its certificate names, if it names one.
    pub fn node(&self) -> Option<&str> {
        match &self.certificate.holder {
            Holder::Node(name) => name.as_deref(),
            _ => None,
        }
    }
}

/// Messages over mutual TLS.
///
/// A channel can be shared between threads as it is (behind an `Arc`): one thread may wait in
/// `recv` while others send. Two threads in `recv` at once take turns.
pub struct Channel {
    secure: Secure,
    peer: Peer,
    name: String,
}

impl Channel {
    /// Connects to the manager as `role`. All of it, handshake included, happens within `timeout`.
    pub fn connect(url: &ManagerUrl, role: Role, timeout: Duration) -> Result<Self, Error> {
        Self::connect_as(url, &Credentials::load(url.credentials(), role)?, handshake::ours(role), timeout)
    }

    /// Connects as the aggregation node `name`, with the credentials that lie there now: renewed
    /// ones are taken with the next connection.
    pub fn connect_node(url: &ManagerUrl, name: &str, timeout: Duration) -> Result<Self, Error> {
        let own = Credentials::load_node(url.credentials(), name)?;
        Self::connect_as(url, &own, handshake::ours(Role::Node), timeout)
    }

    /// Does the same with any credentials and introduction, for gateways, and for tests of what a
    /// manager does with a client that it does not know.
    ///
    /// A caller that a busy machine held up, until the manager gave up waiting, calls again.
    pub fn connect_as(url: &ManagerUrl, own: &Credentials, hello: Hello, timeout: Duration) -> Result<Self, Error> {
        let limit = Limit::after(timeout);
        loop {
            let began = Instant::now();
            match Self::call(url, own, &hello, limit) {
                Err(Error::Closed { .. }) if began.elapsed() >= HANDSHAKE && !limit.is_over() => {}
                called => return called,
            }
        }
    }

    fn call(url: &ManagerUrl, own: &Credentials, hello: &Hello, limit: Limit) -> Result<Self, Error> {
        let name = url.address();
        let config = own.client_config()?;
        let (stream, address) = dial(url, limit)?;
        // The expected name is that of the role, so the certificate of another role is not accepted
        // as the manager's.
        let tls = ClientConnection::new(config, role_name(Role::Manager))
            .map_err(|cause| Error::BadCertificate(cause.to_string()))?;
        let parties = Parties::of_caller(own.certificate().clone(), own.folder());
        let secure = Secure::new(stream, Connection::Client(tls), name.clone(), parties, Room::default())?;
        let theirs = handshake::introduce(&secure, &name, hello, limit)?;
        let peer = Peer { certificate: handshake::certificate(&secure)?, software: theirs.software, address };
        Ok(Channel { secure, peer, name })
    }

    pub(crate) fn established(secure: Secure, theirs: Hello, address: SocketAddr) -> Result<Self, Error> {
        let peer = Peer { certificate: handshake::certificate(&secure)?, software: theirs.software, address };
        Ok(Channel { secure, peer, name: address.to_string() })
    }

    /// The other side.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// This side's address on the way to the other.
    pub fn local_address(&self) -> Result<SocketAddr, Error> {
        let address = self.secure.stream().local_addr();
        address.map_err(|cause| Error::Socket { what: "read a connection's own address".into(), cause })
    }

    /// Sends one message. It blocks for at most ten seconds, and only if the peer has stopped
    /// reading. After that, and after any other failure but `TooLong`, the channel is closed.
    pub fn send(&self, message: &impl Message) -> Result<(), Error> {
        self.secure.send(&frame::encode(message)?, Limit::after(SEND))
    }

    /// Waits for the next message, at most `timeout`; without a limit it waits until the channel
    /// closes.
    ///
    /// Nothing is lost at a `Timeout`: the next call goes on where this one stopped.
    pub fn recv<M: Message>(&self, timeout: Option<Duration>) -> Result<M, Error> {
        let json = self.secure.recv(timeout.map(Limit::after))?;
        M::read(&json).map_err(|cause| {
            self.close();
            Error::Malformed { address: self.name.clone(), cause }
        })
    }

    /// Sends one message and returns the next one that comes, which must come within `timeout`.
    pub fn ask<Q: Message, A: Message>(&self, question: &Q, timeout: Duration) -> Result<A, Error> {
        self.send(question)?;
        self.recv(Some(timeout))
    }

    /// Whether the other side has closed and nothing is left to read. This asks the kernel and does
    /// not wait.
    pub fn is_closed(&self) -> bool {
        self.secure.is_closed()
    }

    /// Closes both directions at once. A thread that waits in `recv` wakes with `Closed`.
    pub fn close(&self) {
        self.secure.close();
    }

    /// Ends what comes: a thread that waits in `recv` wakes with `Closed`. Messages can still be
    /// sent.
    pub fn stop_receiving(&self) {
        // It may be closed already; then there is nothing to do.
        let _ = self.secure.stream().shutdown(Shutdown::Read);
    }

    /// Closes once the other side has read what was sent, after at most `timeout`. This is for a
    /// last message.
    pub fn finish(&self, timeout: Duration) {
        self.secure.linger(Limit::after(timeout));
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
    }
}

fn dial(url: &ManagerUrl, limit: Limit) -> Result<(TcpStream, SocketAddr), Error> {
    let unreachable = |cause| Error::Unreachable { address: url.address(), cause };
    let addresses: Vec<SocketAddr> = (url.host(), url.port()).to_socket_addrs().map_err(unreachable)?.collect();
    reach(&addresses, limit).map_err(unreachable)
}

/// Connects to the first of these addresses that answers. Each may take its share of what is left
/// of the time, because one from which nothing comes back would take all of it.
fn reach(addresses: &[SocketAddr], limit: Limit) -> io::Result<(TcpStream, SocketAddr)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (address, untried) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        match TcpStream::connect_timeout(address, limit.left() / untried) {
            Ok(stream) => return Ok((stream, *address)),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// How long the manager waits for a caller to prove its role and introduce itself.
pub const HANDSHAKE: Duration = Duration::from_secs(5);
const SEND: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn an_address_from_which_nothing_comes_back_leaves_time_for_the_next() {
        // Linux drops what calls a socket whose queue is full.
        let hole = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        hole.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        hole.listen(0).unwrap();
        let lost = hole.local_addr().unwrap().as_socket().unwrap();
        let mut queue = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&lost, Duration::from_millis(100)) {
            queue.push(stream);
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let limit = Limit::after(Duration::from_secs(4));
        assert_eq!(reach(&[lost, there], limit).unwrap().1, there);
        assert!(!limit.is_over(), "nothing is left for the handshake");
        assert!(reach(&[], limit).unwrap_err().to_string().contains("no address"));
    }
}
