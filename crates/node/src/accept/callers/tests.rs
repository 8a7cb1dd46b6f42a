//! Strangers do not keep others out.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use mio::Poll;
use trib_wire::hello::parse_placement;
use trib_wire::{ChildIndex, Epoch, JobId, Mode, NodeId};

use super::super::registry::Registry;
use super::*;

const QUIET: [u8; 4] = [10, 0, 0, 1];
const LOUD: [u8; 4] = [10, 0, 0, 2];

/// Callers, and how they connect.
struct Hall {
    callers: Callers,
    poll: Poll,
    listener: TcpListener,
}

impl Hall {
    fn new(limits: Limits) -> Hall {
        let callers = Callers { limits, ..Callers::default() };
        Hall { callers, poll: Poll::new().unwrap(), listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    /// A connection that claims to come from `address`: its number, and its far end.
    fn enter(&mut self, address: [u8; 4]) -> (usize, TcpStream) {
        let far = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let socket = StreamSocket::new(self.listener.accept().unwrap().0).unwrap();
        let number = self.callers.insert(socket, SocketAddr::from((address, 7)), self.poll.registry(), 1);
        (number.expect("there is always room for one more"), far)
    }

    fn advance(&mut self, number: usize) {
        assert!(self.callers.advance(number, &mut Registry::default(), self.poll.registry()).is_none());
    }

    /// How many connections an address has.
    fn of(&self, address: [u8; 4]) -> usize {
        self.callers.all.iter().flatten().filter(|caller| caller.peer().ip() == IpAddr::from(address)).count()
    }
}

#[test]
fn where_there_are_too_many_the_oldest_of_the_address_with_most_gives_way() {
    let mut hall = Hall::new(Limits { callers: 4, ..LIMITS });
    let (_first, _a) = hall.enter(QUIET);
    let (oldest, _b) = hall.enter(LOUD);
    let (_second, _c) = hall.enter(LOUD);
    let (_third, _d) = hall.enter(LOUD);
    let (another, _e) = hall.enter(QUIET);
    assert_eq!((hall.of(QUIET), hall.of(LOUD), hall.callers.outcomes.crowded_out), (2, 2, 1));
    assert_eq!(another, oldest, "it has what the oldest one had");
}

/// The beginning of a Hello that says of very many nodes that they have moved.
fn long_hello() -> Vec<u8> {
    let entries = (0..20_000u16).flat_map(|node| [node.to_le_bytes(), 1u16.to_le_bytes()].concat());
    let bytes: Vec<u8> = 20_000u16.to_le_bytes().into_iter().chain(entries).collect();
    let hello = Hello {
        job: JobId(1),
        epoch: Epoch(1),
        node: NodeId(0),
        child: ChildIndex(0),
        channel: 0,
        mode: Mode::Checked,
        udp_port: 9,
        nonce: [7; 16],
        placement: parse_placement(&bytes).unwrap(),
    };
    hello.to_bytes()[..30_000].to_vec()
}

#[test]
fn those_who_say_too_much_give_way_and_no_others() {
    let mut hall = Hall::new(Limits { callers: 4, kept: 40_000 });
    let (quiet, mut far) = hall.enter(QUIET);
    far.write_all(&long_hello()[..100]).unwrap();
    let (_silent, _far) = hall.enter(LOUD);
    hall.advance(quiet);
    let (first, mut far) = hall.enter(LOUD);
    far.write_all(&long_hello()).unwrap();
    while hall.callers.all[first].as_ref().unwrap().kept() < 30_000 {
        hall.advance(first);
    }
    assert_eq!(hall.callers.outcomes.crowded_out, 0, "one may");
    let (second, mut far) = hall.enter(LOUD);
    far.write_all(&long_hello()).unwrap();
    while hall.callers.outcomes.crowded_out == 0 {
        hall.advance(second);
    }
    assert!(hall.callers.all[first].is_none() && hall.callers.all[second].is_some());
    assert_eq!((hall.of(QUIET), hall.of(LOUD)), (1, 2), "who has said nothing yet stays");
}
