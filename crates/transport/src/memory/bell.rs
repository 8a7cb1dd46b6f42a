//! What wakes a member of a board that sleeps, and brings it the board: a datagram socket with an
//! abstract name, which is bound to the network namespace and leaves no file.
//!
//! A bell's name is drawn at random, and members of a group tell it each other over the tree. Who
//! does not know it cannot ring, and a board is taken only with the token of which its members hear
//! in the same way. A bell that is rung too often wakes its owner in vain, and nothing else.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, recvmsg, sendmsg_addr,
};
use rustix::rand::{GetRandomFlags, getrandom};

/// A bell of this process.
#[derive(Debug)]
pub struct Bell {
    socket: UnixDatagram,
    name: BellName,
}

/// What others have to know of a bell to ring it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BellName(pub [u8; 16]);

/// Where a bell of that name is rung.
#[derive(Clone, Debug)]
pub struct BellAddress(SocketAddr);

impl BellAddress {
    /// The address of a name, whether there is such a bell or not.
    pub fn of(name: BellName) -> io::Result<BellAddress> {
        SocketAddr::from_abstract_name(path(name)).map(BellAddress)
    }
}

/// By what the members of a group know the board that one of them sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// One that nobody can guess.
    pub fn draw() -> io::Result<Token> {
        Ok(Token(random()?))
    }
}

impl Bell {
    /// A bell with a name that nobody can guess.
    pub fn new() -> io::Result<Bell> {
        let name = BellName(random()?);
        let socket = UnixDatagram::bind_addr(&BellAddress::of(name)?.0)?;
        socket.set_nonblocking(true)?;
        Ok(Bell { socket, name })
    }

    /// Its name.
    pub fn name(&self) -> BellName {
        self.name
    }

    /// Rings another bell. That one may be gone, or have been rung so often already that it takes
    /// no more; there is nothing to do then.
    pub fn ring(&self, other: &BellAddress) {
        let _ = self.socket.send_to_addr(&[], &other.0);
    }

    /// Sends a board to the owner of another bell. `WouldBlock`: it has too much to look at just
    /// now.
    pub fn send(&self, other: &BellAddress, token: Token, memory: &OwnedFd) -> io::Result<()> {
        let descriptors = [memory.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let address = SocketAddrUnix::new_abstract_name(other.0.as_abstract_name().unwrap_or_default())?;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg_addr(&self.socket, &address, &[IoSlice::new(&token.0)], &mut ancillary, flags)?;
        Ok(())
    }

    /// Forgets that the bell was rung, and hands over what came with it.
    pub fn clear(&self, mut board: impl FnMut(Token, OwnedFd)) {
        // One that rings without end is not heard for ever.
        for _ in 0..RINGS {
            match self.receive() {
                Ok(Some((token, memory))) => board(token, memory),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    fn receive(&self) -> io::Result<Option<(Token, OwnedFd)>> {
        let mut token = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let got = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut token)], &mut ancillary, flags) {
            Ok(got) => got.bytes,
            Err(Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut memory = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
                memory = descriptors.next();
            }
        }
        Ok(memory.filter(|_| got == token.len()).map(|memory| (Token(token), memory)))
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn path(name: BellName) -> Vec<u8> {
    let mut path = b"tributary-bell/".to_vec();
    path.extend(name.0.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    path
}

fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // So few bytes come whole.
    match getrandom(&mut bytes[..], GetRandomFlags::empty())? {
        16 => Ok(bytes),
        _ => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// How many rings are forgotten at once.
const RINGS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::file;

    #[test]
    fn a_ring_wakes_and_a_board_comes_with_its_token() {
        let (one, other) = (Bell::new().unwrap(), Bell::new().unwrap());
        let memory = file::create("test", 4096).unwrap();
        let token = Token::draw().unwrap();
        one.ring(&BellAddress::of(other.name()).unwrap());
        one.send(&BellAddress::of(other.name()).unwrap(), token, &memory).unwrap();
        let mut come = Vec::new();
        other.clear(|token, memory| come.push((token, memory)));
        assert_eq!(come.len(), 1);
        assert_eq!(come[0].0, token);
        file::check(&come[0].1, 4096).unwrap();
        other.clear(|_, _| panic!("everything was taken"));
    }

    #[test]
    fn a_bell_that_is_gone_or_deaf_holds_nobody_up() {
        let (one, other) = (Bell::new().unwrap(), Bell::new().unwrap());
        let memory = file::create("test", 4096).unwrap();
        let address = BellAddress::of(other.name()).unwrap();
        for _ in 0..2000 {
            one.ring(&address);
        }
        let full = one.send(&address, Token([0; 16]), &memory).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        drop(other);
        one.ring(&address);
        assert!(one.send(&address, Token([0; 16]), &memory).is_err());
    }
}
