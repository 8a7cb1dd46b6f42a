//! Who waits to be connected to.

use std::ffi::c_int;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::stream::Stream;
use crate::failure::Failure;
use crate::handle::{Handle, MAGIC, secret};

/// A greeting: the magic, and the secret of the handle.
const GREETING: usize = 24;
/// Connections that have not greeted yet; the oldest gives way to a new one.
const STRANGERS_MAX: usize = 16;
/// How long one who is waited for may take to greet. It greets as soon as it is connected.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// A listener for one sender.
pub struct Listener {
    socket: TcpListener,
    greeting: [u8; GREETING],
    strangers: Mutex<Vec<Stranger>>,
}

/// A connection that has not shown the secret yet.
struct Stranger {
    came: Instant,
    socket: TcpStream,
    said: [u8; GREETING],
    len: usize,
}

impl Listener {
    /// Listens at an address, and says how to reach it.
    pub fn open(ip: IpAddr) -> Result<(Listener, Handle), Failure> {
        let failed = |error| Failure::system(&format!("listen at {ip}"), &error);
        let socket = TcpListener::bind(SocketAddr::new(ip, 0)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let handle = Handle { secret: secret()?, address: Some(socket.local_addr().map_err(failed)?) };
        let mut greeting = [0; GREETING];
        greeting[..8].copy_from_slice(&MAGIC);
        greeting[8..].copy_from_slice(&handle.secret);
        Ok((Listener { socket, greeting, strangers: Mutex::default() }, handle))
    }

    /// The connection of the one who knows the secret, if it is here. It never waits.
    pub fn accept(&self) -> Result<Option<Stream>, Failure> {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failure = None;
        // As many as may wait: a flood of connections does not keep the caller here.
        for _ in 0..STRANGERS_MAX {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    if strangers.len() == STRANGERS_MAX {
                        strangers.remove(0);
                    }
                    strangers.extend(Stranger::new(socket));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if is_the_strangers(&error) => {}
                Err(error) => {
                    // Without a free descriptor this comes even if nobody else is there.
                    failure = Some(Failure::system("accept", &error));
                    break;
                }
            }
        }
        strangers.retain_mut(|stranger| match stranger.listen() {
            Heard::Nothing => true,
            Heard::All => stranger.said == self.greeting,
            Heard::End => false,
        });
        let known = strangers.iter().position(|stranger| stranger.len == GREETING);
        match (known, failure) {
            (Some(at), _) => Ok(Some(Stream::accepted(strangers.remove(at).socket))),
            // The one who is waited for may be among those who have not greeted yet.
            (None, Some(_)) if strangers.iter().any(|stranger| stranger.came.elapsed() < GREETING_MAX) => Ok(None),
            (None, Some(failure)) => Err(failure),
            (None, None) => Ok(None),
        }
    }
}

enum Heard {
    Nothing,
    All,
    End,
}

impl Stranger {
    fn new(socket: TcpStream) -> Option<Stranger> {
        socket.set_nonblocking(true).ok()?;
        socket.set_nodelay(true).ok()?;
        Some(Stranger { came: Instant::now(), socket, said: [0; GREETING], len: 0 })
    }

    fn listen(&mut self) -> Heard {
        while self.len < GREETING {
            match self.socket.read(&mut self.said[self.len..]) {
                Ok(0) => return Heard::End,
                Ok(count) => self.len += count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Heard::Nothing;
                }
                Err(_) => return Heard::End,
            }
        }
        Heard::All
    }
}

/// Whether an accept failed because a connection was given up before.
fn is_the_strangers(error: &std::io::Error) -> bool {
    const THEIRS: [c_int; 4] = [libc::ECONNABORTED, libc::EINTR, libc::EPROTO, libc::ENETDOWN];
    error.raw_os_error().is_some_and(|code| THEIRS.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::failure::Code;

    fn open() -> (Listener, Handle) {
        Listener::open("127.0.0.1".parse().unwrap()).unwrap()
    }

    fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "nothing came");
            std::thread::yield_now();
        }
    }

    fn pair() -> (Stream, Stream) {
        let (listener, handle) = open();
        let sender = Stream::connect(&handle).unwrap();
        until(|| sender.has_greeted().unwrap().then_some(()));
        let receiver = until(|| listener.accept().unwrap());
        (sender, receiver)
    }

    #[test]
    fn nobody_is_accepted_before_someone_connects() {
        let (listener, _) = open();
        assert!(listener.accept().unwrap().is_none());
    }

    #[test]
    fn who_does_not_know_the_secret_is_sent_away() {
        let (listener, handle) = open();
        let address = handle.address.unwrap();
        let mut liar = TcpStream::connect(address).unwrap();
        liar.write_all(&[MAGIC.as_slice(), &[0; 16]].concat()).unwrap();
        let mut silent: Vec<TcpStream> = (0..STRANGERS_MAX + 4).map(|_| TcpStream::connect(address).unwrap()).collect();
        silent[0].write_all(b"GET / HTTP/1.0\r\n").unwrap();
        for _ in 0..20 {
            assert!(listener.accept().unwrap().is_none());
        }
        assert!(listener.strangers.lock().unwrap().len() <= STRANGERS_MAX);
        // The one who knows it comes through nevertheless.
        let sender = Stream::connect(&handle).unwrap();
        until(|| {
            sender.has_greeted().unwrap();
            listener.accept().unwrap()
        });
        liar.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(matches!(liar.read(&mut [0; 1]), Ok(0) | Err(_)));
    }

    #[test]
    fn an_end_knows_its_direction_and_that_the_other_has_gone() {
        let (sender, receiver) = pair();
        let mut byte = [0u8; 1];
        // SAFETY: the byte outlives the requests.
        unsafe {
            assert_eq!(sender.begin(byte.as_mut_ptr(), 1, false).unwrap_err().code, Code::Internal);
            assert_eq!(receiver.begin(std::ptr::null_mut(), 1, false).unwrap_err().code, Code::Argument);
        }
        drop(sender);
        let failure = until(|| {
            // SAFETY: as above.
            unsafe { receiver.begin(byte.as_mut_ptr(), 1, false) }.err()
        });
        assert_eq!(failure.code, Code::Remote);
    }

    /// Runs this test alone in a process of its own, whose limit of descriptors it changes. Returns
    /// whether this is that process.
    fn is_apart(name: &str) -> bool {
        const CHILD: &str = "TRIB_TEST_NCCL_DESCRIPTORS";
        if std::env::var_os(CHILD).is_some() {
            return true;
        }
        let own = format!("socket::listener::tests::{name}");
        let program = std::env::current_exe().unwrap();
        let done = std::process::Command::new(program).args(["--exact", &own]).env(CHILD, "1").output().unwrap();
        assert!(done.status.success(), "{done:?}");
        false
    }

    /// The lowest number that is free becomes the last one that may be used.
    fn leave_one_descriptor() {
        let free = File::open("/dev/null").unwrap().as_raw_fd();
        let limit = libc::rlimit { rlim_cur: free as libc::rlim_t + 1, rlim_max: free as libc::rlim_t + 1 };
        // SAFETY: the limit is read only.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    }

    #[test]
    fn one_free_descriptor_is_enough_to_accept() {
        if is_apart("one_free_descriptor_is_enough_to_accept") {
            let (listener, handle) = open();
            let sender = Stream::connect(&handle).unwrap();
            until(|| sender.has_greeted().unwrap().then_some(()));
            leave_one_descriptor();
            until(|| listener.accept().unwrap());
        }
    }

    #[test]
    fn one_who_says_nothing_does_not_hide_for_ever_that_nobody_else_can_be_accepted() {
        if is_apart("one_who_says_nothing_does_not_hide_for_ever_that_nobody_else_can_be_accepted") {
            let (listener, handle) = open();
            let _silent = TcpStream::connect(handle.address.unwrap()).unwrap();
            let _sender = Stream::connect(&handle).unwrap();
            leave_one_descriptor();
            until(|| {
                (listener.accept().unwrap().is_none() && !listener.strangers.lock().unwrap().is_empty()).then_some(())
            });
            assert!(listener.accept().unwrap().is_none(), "the first may still greet");
            listener.strangers.lock().unwrap()[0].came -= GREETING_MAX;
            assert_eq!(listener.accept().err().unwrap().code, Code::System);
        }
    }

    #[test]
    fn connecting_to_nobody_fails() {
        let (listener, handle) = open();
        drop(listener);
        match Stream::connect(&handle) {
            Err(failure) => assert_eq!(failure.code, Code::System),
            Ok(sender) => assert_eq!(until(|| sender.has_greeted().err()).code, Code::Remote),
        }
    }
}
