//! The stream connections of a logical node: one to each child and one to the parent, each opened
//! once per epoch.

use std::io;
use std::net::SocketAddr;

use trib_keys::{EdgeKeys, Results, Session};
use trib_messages::explanation::CarriedPart;
use trib_proto::node::Link;
use trib_seal::Opener;
use trib_transport::edge::{Inbox, Outbox, Records};
use trib_transport::sealing::{ReaderKeys, WriterKeys};
use trib_transport::tcp::{FlushEnd, Parting, StreamReader, StreamSocket, StreamWriter, Written};
use trib_wire::ChildIndex;
use trib_wire::auth::FrameKey;
use trib_wire::ids::CHILDREN_MAX;

use super::JobBuffer;

/// A link as a number: a child's index, or `PARENT`.
pub(crate) type LinkNumber = usize;
/// The number of the link to the parent.
pub(crate) const PARENT: LinkNumber = CHILDREN_MAX;

/// The core's name of a link.
pub(crate) fn core_link(link: LinkNumber) -> Link {
    if link == PARENT { Link::Parent } else { Link::Child(ChildIndex(link as u16)) }
}

/// All links of a logical node.
pub(crate) struct Links {
    all: Vec<Option<LinkIo>>,
    /// The links with something to write, one bit each.
    dirty: u128,
    /// The link after the one that was written last, which is the next one's turn.
    turn: u32,
    /// The links to be closed, one bit each.
    doomed: u128,
    /// The links from which nothing more is read until their far ends have read, one bit each.
    held: u128,
    /// The bytes of control frames for a far end above which nothing more is read from it, and
    /// above which it is asked whether those for all are too many.
    hold: usize,
    /// The bytes of control frames that may wait for all far ends together.
    waiting_max: usize,
}

/// One link before, while and after it is open.
struct LinkIo {
    state: State,
    /// The frames to be written, which may wait here before the connection is open.
    writer: StreamWriter<JobBuffer>,
    /// The key of frames that come from the far end by stream, and that of those to it, where
    /// payloads have no seal.
    stream_keys: [FrameKey; 2],
    /// The key of its datagrams. That of a parent's comes with the connection.
    datagram_key: Option<FrameKey>,
    /// What opens the payloads of its datagrams, if they are sealed.
    opener: Option<Opener>,
    /// The address at which the far end takes datagrams.
    datagrams: Option<SocketAddr>,
    /// The way of datagrams instead, if memory is shared with the far end.
    near: Option<Near>,
    /// The bytes of the datagrams from and to the far end.
    datagram_bytes: CarriedPart,
    /// The far end is on this host and shares no memory.
    apart: bool,
    /// The core has given the far end up.
    given_up: bool,
    /// The far end has closed: what it has written is there, and no more will come.
    has_closed: bool,
}

/// The datagrams of a link over memory.
struct Near {
    out: Outbox,
    /// It is taken out while the core gets what has come.
    come: Option<Inbox>,
}

enum State {
    Expected,
    Open(Option<Box<Connection>>),
    Gone,
}

/// An open connection. It is taken out while it is read, so that the core can queue frames
/// meanwhile.
pub(crate) struct Connection {
    pub socket: StreamSocket,
    pub reader: StreamReader<JobBuffer>,
    /// Whether the socket is full. An event will come when it can be written again.
    pub blocked: bool,
}

/// A connection that has just been opened.
pub(crate) struct Opened {
    pub socket: StreamSocket,
    /// The address at which the far end takes datagrams.
    pub datagrams: SocketAddr,
    /// What a parent sends to all its children alike.
    pub results: Option<Results>,
    /// The keys of the connection, if payloads are sealed there.
    pub session: Option<Session>,
    /// The far end is on this host and shares no memory, though this process would.
    pub apart: bool,
}

/// The bytes that have gone over an open link.
pub(crate) struct Traffic {
    pub read: u64,
    pub written: u64,
    pub queued: u64,
}

impl Links {
    /// Links to children, and perhaps to a parent, with the keys of these edges. Control frames may
    /// wait that take `link_max` bytes for each far end, and `waiting_max` for all.
    pub(crate) fn new(
        children: impl Iterator<Item = EdgeKeys>,
        parent: Option<EdgeKeys>,
        (link_max, waiting_max): (usize, usize),
    ) -> Links {
        let link = |from, to, datagram_key| LinkIo {
            state: State::Expected,
            writer: StreamWriter::new(to, link_max),
            stream_keys: [from, to],
            datagram_key,
            opener: None,
            datagrams: None,
            near: None,
            datagram_bytes: CarriedPart::default(),
            apart: false,
            given_up: false,
            has_closed: false,
        };
        let mut all: Vec<_> = children.map(|keys| Some(link(keys.up, keys.down, Some(keys.up)))).collect();
        all.resize_with(PARENT + 1, || None);
        all[PARENT] = parent.map(|keys| link(keys.down, keys.up, None));
        Links { all, dirty: 0, turn: 0, doomed: 0, held: 0, hold: link_max / 16, waiting_max }
    }

    fn get(&mut self, link: LinkNumber) -> Option<&mut LinkIo> {
        self.all.get_mut(link)?.as_mut()
    }

    /// The connection of a link is open.
    pub(crate) fn open(&mut self, link: LinkNumber, opened: Opened) {
        let Opened { mut socket, datagrams, results, session, apart } = opened;
        if let Some(io) = self.get(link) {
            let [from, to] = io.stream_keys;
            let (reader, writer);
            (reader, writer, io.datagram_key, io.opener) = match (session, results) {
                (None, results) => {
                    let datagrams = results.map_or(from, |results| results.tags);
                    (ReaderKeys::Checked(from), WriterKeys::Checked(to), Some(datagrams), None)
                }
                (Some(session), None) => {
                    let opener = Opener::new(session.mode, session.data_up.clone());
                    (ReaderKeys::up(&session), WriterKeys::down(&session), Some(session.up), Some(opener))
                }
                (Some(session), Some(Results { tags, data })) => {
                    let data = data.expect("where a connection has keys its results have one");
                    let opener = Opener::new(session.mode, data.clone());
                    (ReaderKeys::down(&session, &data), WriterKeys::up(&session), Some(tags), Some(opener))
                }
            };
            let reader = StreamReader::with(reader);
            io.writer.open(writer);
            io.apart = apart;
            io.near = socket.take_records().map(|Records { out, come }| Near { out, come: Some(come) });
            io.state = State::Open(Some(Box::new(Connection { socket, reader, blocked: false })));
            io.datagrams = Some(datagrams);
            self.dirty |= 1 << link;
        }
    }

    /// Tells the time, by which keys change.
    pub(crate) fn tick(&mut self, now: u64) {
        self.all.iter_mut().flatten().for_each(|io| io.writer.tick(now));
    }

    /// Whether the link has never been open, or is to be opened again.
    pub(crate) fn is_expected(&self, link: LinkNumber) -> bool {
        matches!(self.all.get(link), Some(Some(LinkIo { state: State::Expected, .. })))
    }

    /// Whether a child has never come, or is to come again.
    pub(crate) fn expects_child(&self) -> bool {
        (0..PARENT).any(|link| self.is_expected(link))
    }

    /// Whether the link is open, and nothing has come over it: the far end may not know that it is.
    pub(crate) fn is_unheard(&self, link: LinkNumber) -> bool {
        let is_given_up = self.all.get(link).is_some_and(|io| io.as_ref().is_some_and(|io| io.given_up));
        !is_given_up && self.traffic(link).is_some_and(|traffic| traffic.read == 0)
    }

    /// The connection is not there any more; another one may come in its place.
    pub(crate) fn expect_again(&mut self, link: LinkNumber) {
        self.dirty &= !(1 << link);
        self.doomed &= !(1 << link);
        self.held &= !(1 << link);
        if let Some(io) = self.get(link) {
            io.state = State::Expected;
            io.has_closed = false;
            io.datagrams = None;
            io.near = None;
            io.writer.clear();
        }
    }

    /// The connection of a link is closed, and will not open again. Returns whether it was open.
    pub(crate) fn close(&mut self, link: LinkNumber) -> bool {
        self.dirty &= !(1 << link);
        self.doomed &= !(1 << link);
        self.held &= !(1 << link);
        match self.get(link) {
            Some(io) if !matches!(io.state, State::Gone) => {
                io.state = State::Gone;
                io.datagrams = None;
                io.near = None;
                io.writer.clear();
                true
            }
            _ => false,
        }
    }

    /// Whether the link is open.
    pub(crate) fn is_open(&self, link: LinkNumber) -> bool {
        matches!(self.all.get(link), Some(Some(LinkIo { state: State::Open(_), .. })))
    }

    /// The links that are open, by number.
    pub(crate) fn open_links(&self) -> impl Iterator<Item = LinkNumber> + '_ {
        (0..self.all.len()).filter(|link| self.is_open(*link))
    }

    /// The bytes that have gone over an open link so far, and those that wait for it.
    pub(crate) fn traffic(&self, link: LinkNumber) -> Option<Traffic> {
        match self.all.get(link)? {
            Some(LinkIo { state: State::Open(Some(connection)), writer, .. }) => Some(Traffic {
                read: connection.reader.bytes(),
                written: writer.bytes(),
                queued: writer.queued_bytes() as u64,
            }),
            _ => None,
        }
    }

    /// The bytes of all frames over an open link, on both paths.
    pub(crate) fn carried(&self, link: LinkNumber) -> Option<CarriedPart> {
        let Traffic { read, written, .. } = self.traffic(link)?;
        let CarriedPart { bytes_in, bytes_out } = self.all.get(link)?.as_ref()?.datagram_bytes;
        Some(CarriedPart { bytes_in: bytes_in + read, bytes_out: bytes_out + written })
    }

    /// A datagram of `bytes` bytes has come from the far end.
    pub(crate) fn count_datagram_in(&mut self, link: LinkNumber, bytes: usize) {
        if let Some(io) = self.get(link) {
            io.datagram_bytes.bytes_in += bytes as u64;
        }
    }

    /// A datagram of `bytes` bytes goes to the far end.
    pub(crate) fn count_datagram_out(&mut self, link: LinkNumber, bytes: usize) {
        if let Some(io) = self.get(link) {
            io.datagram_bytes.bytes_out += bytes as u64;
        }
    }

    /// The queue of a link, unless the link is gone.
    pub(crate) fn queue(&mut self, link: LinkNumber) -> Option<&mut StreamWriter<JobBuffer>> {
        self.dirty |= 1 << link;
        self.get(link).filter(|io| !matches!(io.state, State::Gone)).map(|io| &mut io.writer)
    }

    /// Takes an open connection out, to read from it.
    pub(crate) fn take(&mut self, link: LinkNumber) -> Option<Box<Connection>> {
        match self.get(link) {
            Some(LinkIo { state: State::Open(connection), .. }) => connection.take(),
            _ => None,
        }
    }

    /// Puts it back, unless the link was closed meanwhile.
    pub(crate) fn put(&mut self, link: LinkNumber, connection: Box<Connection>) {
        if let Some(LinkIo { state: State::Open(slot), .. }) = self.get(link) {
            *slot = Some(connection);
        }
    }

    /// If more control frames wait than may for all far ends, the link for which most do. This is
    /// asked when one was queued for `link`.
    pub(crate) fn most_behind(&self, link: LinkNumber) -> Option<LinkNumber> {
        let waiting = |io: &Option<LinkIo>| io.as_ref().map_or(0, |io| io.writer.control_bytes());
        if self.all.get(link).is_none_or(|io| waiting(io) <= self.hold) {
            return None;
        }
        let all: usize = self.all.iter().map(waiting).sum();
        let most = || (0..self.all.len()).max_by_key(|link| waiting(&self.all[*link]));
        (all > self.waiting_max).then(most).flatten()
    }

    /// Whether nothing more is to be read from a child now, because it does not read what answers
    /// it. What a parent says is always read: else a node and its child could wait for each other.
    /// So is the rest from a child that has closed, because behind it is the end.
    pub(crate) fn is_held(&self, link: LinkNumber) -> bool {
        let waits = |io: &LinkIo| io.writer.control_bytes() > self.hold && !io.has_closed;
        link != PARENT && self.all.get(link).is_some_and(|io| io.as_ref().is_some_and(waits))
    }

    /// Nothing more is read from the link for now.
    pub(crate) fn hold(&mut self, link: LinkNumber) {
        self.held |= 1 << link;
        self.set_held(link, true);
    }

    /// The far end of a link has closed.
    pub(crate) fn expect_end(&mut self, link: LinkNumber) {
        self.held &= !(1 << link);
        self.set_held(link, false);
        if let Some(io) = self.get(link) {
            io.has_closed = true;
        }
    }

    fn set_held(&mut self, link: LinkNumber, held: bool) {
        if let Some(LinkIo { state: State::Open(Some(connection)), .. }) = self.get(link) {
            connection.socket.set_held(held);
        }
    }

    /// A link that was held, if there is one whose far end has read meanwhile.
    pub(crate) fn next_unheld(&mut self) -> Option<LinkNumber> {
        let bits = self.held;
        let link = (0..PARENT).find(|link| bits >> link & 1 != 0 && !self.is_held(*link))?;
        self.held &= !(1 << link);
        self.set_held(link, false);
        Some(link)
    }

    /// The socket has room again.
    pub(crate) fn unblock(&mut self, link: LinkNumber) {
        if let Some(LinkIo { state: State::Open(Some(connection)), .. }) = self.get(link)
            && connection.blocked
        {
            connection.blocked = false;
            self.dirty |= 1 << link;
        }
    }

    /// The next link that has something to write and whose socket may take it.
    pub(crate) fn next_dirty(&mut self) -> Option<LinkNumber> {
        while self.dirty != 0 {
            let ahead = self.dirty.rotate_right(self.turn).trailing_zeros();
            let link = ((self.turn + ahead) % u128::BITS) as LinkNumber;
            self.dirty &= !(1 << link);
            if let Some(LinkIo { state: State::Open(Some(connection)), .. }) = self.get(link)
                && !connection.blocked
            {
                self.turn = (link as u32 + 1) % u128::BITS;
                return Some(link);
            }
        }
        None
    }

    /// Whether an open link may have something to write.
    pub(crate) fn has_dirty(&self) -> bool {
        self.dirty != 0
    }

    /// Writes what is queued, and not much more than `most` bytes. Returns the number of bytes
    /// written.
    pub(crate) fn flush(&mut self, link: LinkNumber, most: u64) -> io::Result<u64> {
        let Some(LinkIo { state: State::Open(Some(connection)), writer, .. }) = self.get(link) else { return Ok(0) };
        let before = writer.bytes();
        let end = writer.flush_some(&mut connection.socket, most)?;
        connection.blocked = end == FlushEnd::Blocked;
        let bytes = writer.bytes() - before;
        if end == FlushEnd::Spent {
            self.dirty |= 1 << link;
        }
        Ok(bytes)
    }

    /// A frame that was written and not yet reported, if there is one.
    pub(crate) fn next_written(&mut self, link: LinkNumber) -> Option<Written<JobBuffer>> {
        self.get(link)?.writer.next_written()
    }

    /// Takes every open connection away, with the control frames that its far end has still to get
    /// but without vector data.
    pub(crate) fn part(&mut self) -> Vec<Parting<JobBuffer>> {
        let parting = |io: LinkIo| match io.state {
            State::Open(Some(connection)) => {
                let mut writer = io.writer;
                writer.cut(|_| true);
                Some(Parting { socket: connection.socket, writer })
            }
            State::Open(None) | State::Expected | State::Gone => None,
        };
        self.all.drain(..).flatten().filter_map(parting).collect()
    }

    /// Marks a link to be closed for good: the core has given its far end up.
    pub(crate) fn give_up(&mut self, link: LinkNumber) {
        if let Some(io) = self.get(link) {
            io.given_up = true;
        }
        self.doom(link);
    }

    /// Marks a link to be closed.
    pub(crate) fn doom(&mut self, link: LinkNumber) {
        self.doomed |= 1 << link;
    }

    /// The next link that is marked to be closed.
    pub(crate) fn next_doomed(&mut self) -> Option<LinkNumber> {
        if self.doomed == 0 {
            return None;
        }
        let link = self.doomed.trailing_zeros() as LinkNumber;
        self.doomed &= !(1 << link);
        Some(link)
    }

    /// The address at which an open link's far end takes datagrams.
    pub(crate) fn datagrams(&self, link: LinkNumber) -> Option<SocketAddr> {
        self.all.get(link)?.as_ref()?.datagrams
    }

    /// Whether the far end of a link is on this host and shares no memory.
    pub(crate) fn is_apart(&self, link: LinkNumber) -> bool {
        matches!(self.all.get(link), Some(Some(LinkIo { apart: true, .. })))
    }

    /// Whether memory is shared with the far end of a link.
    pub(crate) fn is_near(&self, link: LinkNumber) -> bool {
        matches!(self.all.get(link), Some(Some(LinkIo { near: Some(_), .. })))
    }

    /// Whether frames over the link stay in memory of this host, so that they have no seals.
    pub(crate) fn is_in_memory(&self, link: LinkNumber) -> bool {
        let near = self.all.get(link).and_then(|io| io.as_ref()?.near.as_ref());
        near.is_some_and(|near| near.out.is_memory())
    }

    /// What opens the payloads of datagrams from the far end of a link, if they are sealed.
    pub(crate) fn opener(&mut self, link: LinkNumber) -> Option<&mut Opener> {
        self.get(link)?.opener.as_mut()
    }

    /// Where datagrams of a link go whose far end shares memory.
    pub(crate) fn outbox(&mut self, link: LinkNumber) -> Option<&mut Outbox> {
        self.get(link)?.near.as_mut().map(|near| &mut near.out)
    }

    /// Takes out what datagrams come through, so that the core can send others while it gets them.
    pub(crate) fn take_inbox(&mut self, link: LinkNumber) -> Option<Inbox> {
        self.get(link)?.near.as_mut()?.come.take()
    }

    /// Puts it back, unless the link was closed meanwhile.
    pub(crate) fn put_inbox(&mut self, link: LinkNumber, inbox: Inbox) {
        if let Some(LinkIo { near: Some(near), .. }) = self.get(link) {
            near.come = Some(inbox);
        }
    }

    /// The key of datagrams from the far end of a link, once it is known.
    pub(crate) fn datagram_key(&self, link: LinkNumber) -> Option<&FrameKey> {
        self.all.get(link)?.as_ref()?.datagram_key.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use trib_keys::HelloKey;
    use trib_wire::{Epoch, Header, JobId, Kind, NodeId};

    use super::*;

    fn links(children: usize, link_max: usize, waiting_max: usize) -> Links {
        let key = FrameKey([5; 16]);
        let keys = || EdgeKeys { up: key, down: key, hello: HelloKey([6; 32]) };
        Links::new((0..children).map(|_| keys()), Some(keys()), (link_max, waiting_max))
    }

    /// Queues a control frame with so many bytes of body. Whether there was room for it.
    fn say(links: &mut Links, link: LinkNumber, bytes: usize) -> bool {
        let header = Header::new(Kind::Refused, JobId(1), Epoch(1), NodeId(0), ChildIndex(link as u16));
        links.queue(link).unwrap().push_control(&header, &vec![0; bytes]).is_ok()
    }

    #[test]
    fn a_child_that_does_not_read_is_not_read_from_and_a_parent_always_is() {
        let mut links = links(2, 16 << 10, 1 << 20);
        for link in [0, PARENT] {
            assert!(say(&mut links, link, 4 << 10));
            links.hold(link);
        }
        assert!(links.is_held(0) && !links.is_held(1) && !links.is_held(PARENT));
        assert_eq!(links.next_unheld(), None);
        links.queue(0).unwrap().clear();
        assert_eq!((links.next_unheld(), links.next_unheld()), (Some(0), None));
        assert!(say(&mut links, 0, 4 << 10));
        links.hold(0);
        links.expect_end(0);
        assert!(!links.is_held(0) && links.next_unheld().is_none(), "the rest is read up to the end");
    }

    #[test]
    fn when_too_much_waits_for_all_it_is_the_one_for_which_most_waits_that_is_named() {
        let mut links = links(4, 16 << 10, 40 << 10);
        for (link, bytes) in [(0, 9 << 10), (1, 14 << 10), (2, 9 << 10)] {
            assert!(say(&mut links, link, bytes));
            assert_eq!(links.most_behind(link), None);
        }
        assert!(say(&mut links, 3, 100));
        assert_eq!(links.most_behind(3), None, "nothing much waits for this one");
        assert!(say(&mut links, 3, 9 << 10));
        assert_eq!(links.most_behind(3), Some(1));
    }
}
