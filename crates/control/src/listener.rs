//! The manager's end of the channels.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::{Connection, ServerConnection};
use socket2::SockRef;
use trib_messages::hello::{Hello, Role};

use crate::certificate::Certificate;
use crate::doors::{Doors, Handshake};
use crate::parties::Parties;
use crate::secure::{Limit, Secure};
use crate::unfinished::{Room, Unfinished};
use crate::{Channel, Error, handshake};

/// Takes connections.
pub struct Listener {
    socket: TcpListener,
    doors: Arc<Doors>,
    address: SocketAddr,
    unfinished: Arc<Unfinished>,
}

impl Listener {
    /// Listens at `address` (port 0: any free one) with the manager's credentials in `folder`,
    /// also when they are renewed.
    pub fn bind(address: SocketAddr, folder: &Path) -> Result<Self, Error> {
        let doors = Arc::new(Doors::open(folder)?);
        let socket = TcpListener::bind(address)
            .map_err(|cause| Error::Socket { what: format!("listen at {address}"), cause })?;
        let address =
            socket.local_addr().map_err(|cause| Error::Socket { what: "read the listening address".into(), cause })?;
        Ok(Listener { socket, doors, address, unfinished: Unfinished::of_listener() })
    }

    /// Reads what [`Listener::bind`] would read, and binds nothing. Returns the manager's
    /// certificate, and how many certificates are withdrawn.
    pub fn check(folder: &Path) -> Result<(Certificate, usize), Error> {
        let doors = Doors::open(folder)?;
        Ok((doors.handshake()?.own, doors.withdrawn().count()))
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection. It has proven nothing yet, so it needs a thread of its own and a time
    /// limit.
    pub fn accept(&self) -> Result<Pending, Error> {
        let (stream, address) =
            self.socket.accept().map_err(|cause| Error::Socket { what: "accept a connection".into(), cause })?;
        // A listener for both families shows an IPv4 address as a mapped one.
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        Ok(Pending { stream, address, doors: self.doors.clone(), unfinished: self.unfinished.clone() })
    }

    /// Reads the list of withdrawn certificates again. Who shows one of them is not let in any
    /// more. Returns how many there are.
    pub fn read_withdrawn(&self) -> Result<usize, Error> {
        self.doors.withdrawn().read_again()
    }

    /// How many certificates are withdrawn, by the list as it was read last.
    pub fn withdrawn(&self) -> usize {
        self.doors.withdrawn().count()
    }

    /// Whether this certificate was withdrawn, by the list as it was read last.
    pub fn is_withdrawn(&self, certificate: &Certificate) -> bool {
        self.doors.withdrawn().has(&certificate.serial)
    }

    /// Stops listening and wakes any thread that waits in `accept`, with an error.
    pub fn close(&self) {
        // This fails only if it is closed already.
        let _ = SockRef::from(&self.socket).shutdown(Shutdown::Both);
    }
}

/// A connection before its handshake.
pub struct Pending {
    stream: TcpStream,
    address: SocketAddr,
    doors: Arc<Doors>,
    unfinished: Arc<Unfinished>,
}

impl Pending {
    /// A second handle to its socket, with which it can be ended from outside.
    pub fn handle(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// The address from which it comes.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does the handshake as the manager, within `timeout`.
    pub fn establish(self, timeout: Duration) -> Result<Channel, Error> {
        self.establish_as(&handshake::ours(Role::Manager), timeout)
    }

    /// Does the same with any introduction, for tests of what others do with a manager that is not
    /// theirs.
    pub fn establish_as(self, hello: &Hello, timeout: Duration) -> Result<Channel, Error> {
        let limit = Limit::after(timeout);
        let Handshake { config, own, shown } = self.doors.handshake()?;
        let tls = ServerConnection::new(config).map_err(|cause| Error::BadCertificate(cause.to_string()))?;
        let (name, parties) = (self.address.to_string(), Parties::of_manager(own, shown));
        let room = Room::of(&self.unfinished);
        let secure = Secure::new(self.stream, Connection::Server(tls), name.clone(), parties, room)?;
        match handshake::welcome(&secure, &name, hello, limit) {
            Ok(theirs) => {
                if theirs.role != Role::User {
                    secure.trust();
                }
                Channel::established(secure, theirs, self.address)
            }
            Err(error) => {
                secure.linger(Limit::after(LAST_WORD));
                Err(error)
            }
        }
    }
}

/// How much time a rejected side has to read why it is rejected.
const LAST_WORD: Duration = Duration::from_secs(1);
