//! The manager's end of the channels.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{Connection, ServerConfig, ServerConnection};
use socket2::SockRef;
use trib_messages::hello::{Hello, Role};

use crate::secure::{Limit, Secure};
use crate::unfinished::{Room, Unfinished};
use crate::{Channel, Credentials, Error, handshake};

/// Takes connections.
pub struct Listener {
    socket: TcpListener,
    config: Arc<ServerConfig>,
    address: SocketAddr,
    unfinished: Arc<Unfinished>,
}

impl Listener {
    /// Listens at `address` (port 0: any free one) with the manager's credentials.
    pub fn bind(address: SocketAddr, credentials: &Credentials) -> Result<Self, Error> {
        let config = credentials.server_config()?;
        let socket = TcpListener::bind(address)
            .map_err(|cause| Error::Socket { what: format!("listen at {address}"), cause })?;
        let address =
            socket.local_addr().map_err(|cause| Error::Socket { what: "read the listening address".into(), cause })?;
        Ok(Listener { socket, config, address, unfinished: Unfinished::of_listener() })
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
        Ok(Pending { stream, address, config: self.config.clone(), unfinished: self.unfinished.clone() })
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
    config: Arc<ServerConfig>,
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
        let tls = ServerConnection::new(self.config).map_err(|cause| Error::BadCertificate(cause.to_string()))?;
        let name = self.address.to_string();
        let secure = Secure::new(self.stream, Connection::Server(tls), name.clone(), Room::of(&self.unfinished))?;
        match handshake::welcome(&secure, &name, hello, limit) {
            Ok(theirs) => {
                if theirs.role != Role::User {
                    secure.trust();
                }
                Ok(Channel::established(secure, theirs, self.address))
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
