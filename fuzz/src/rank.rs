//! A rank's core over an edge in memory, with vectors that have bytes: what a correct rank says to
//! a node's worker, and what it makes of the answers.

use std::collections::BTreeMap;
use std::ops::Range;

use trib_keys::{EdgeKeys, Results};
use trib_proto::leaf::{GroupId, NewGroup, Note, OpId, Payload, Post, Slice};
use trib_proto::{LeafConfig, LeafCore, LeafOutput, Nanos, Path};
use trib_transport::edge::{Inbox, Outbox};
use trib_transport::tcp::{
    Arrived, Destination, FrameSink, ReadEnd, StreamError, StreamReader, StreamSocket, StreamWriter,
};
use trib_transport::udp::{UdpCounters, seal};
use trib_wire::auth::FrameKey;
use trib_wire::{Body, Epoch, Fault, GroupName, Header, Kind, Placement, RankList, Signature};

/// A rank whose edge is open.
pub struct Rank {
    core: LeafCore,
    /// Its end of the edge.
    pub edge: Edge,
    program: Program,
    groups: Vec<GroupId>,
    socket: StreamSocket,
    reader: StreamReader<Vec<u8>>,
    come: Inbox,
    connected: bool,
}

/// What goes to the node.
pub struct Edge {
    keys: EdgeKeys,
    /// The key of the node's datagrams.
    results: FrameKey,
    out: Outbox,
    writer: StreamWriter<Vec<u8>>,
}

/// The vectors of the rank's program by operation, in which results take the place of
/// contributions, and which operations are over.
#[derive(Default)]
struct Program {
    vectors: BTreeMap<OpId, Vec<u8>>,
    over: BTreeMap<OpId, Result<(), Fault>>,
    incoming: Vec<u8>,
}

/// The core's driver.
struct Driver<'a> {
    edge: &'a mut Edge,
    program: &'a mut Program,
}

impl Edge {
    /// Queues a frame for the stream, whatever it is.
    pub fn stream(&mut self, header: &Header, payload: Vec<u8>) {
        if header.kind.carries_data() {
            self.writer.push_data(header, (!payload.is_empty()).then_some(payload));
        } else {
            // A rank that has written too much is silent; the node cannot tell why.
            let _ = self.writer.push_control(header, &payload);
        }
    }

    /// Sends a datagram, whatever it is. It is lost if the ring is full.
    pub fn datagram(&mut self, header: &Header, payload: &[u8]) {
        self.out.send(&seal(header, &self.keys.up, payload), payload);
    }
}

impl Driver<'_> {
    fn slice(&mut self, slice: &Slice) -> Option<&mut [u8]> {
        let element = slice.bytes / slice.elements.max(1);
        let from = (slice.first * u64::from(element)) as usize;
        self.program.vectors.get_mut(&slice.op)?.get_mut(from..from + slice.bytes as usize)
    }
}

impl LeafOutput for Driver<'_> {
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>) {
        let data = match payload {
            Payload::None => Vec::new(),
            Payload::Body(body) => body.to_bytes().to_vec(),
            Payload::Data(slice) => self.slice(&slice).map(|bytes| bytes.to_vec()).unwrap_or_default(),
        };
        match path {
            Path::Datagram => self.edge.datagram(header, &data),
            Path::Stream => self.edge.stream(header, data),
        }
    }

    fn deliver(&mut self, slice: Slice) {
        let come = std::mem::take(&mut self.program.incoming);
        if let Some(bytes) = self.slice(&slice).filter(|bytes| bytes.len() == come.len()) {
            bytes.copy_from_slice(&come);
        }
    }

    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>) {
        self.program.over.insert(op, result.map(|_| ()));
    }

    fn forget(&mut self, _: OpId) {}

    fn move_to(&mut self, _: &Placement) {}

    fn group_ready(&mut self, _: GroupId) {}

    fn group_failed(&mut self, _: GroupId, _: Fault) {}

    fn note(&mut self, _: Note) {}
}

struct Sink<'a> {
    core: &'a mut LeafCore,
    driver: Driver<'a>,
    now: Nanos,
}

impl FrameSink for Sink<'_> {
    type Buffer = Vec<u8>;

    fn place(&mut self, header: &Header) -> Destination<Vec<u8>> {
        Destination::Into(vec![0; header.payload_len as usize])
    }

    fn frame(&mut self, header: &Header, payload: Arrived<'_, Vec<u8>>) -> Result<(), StreamError> {
        let body = match payload {
            Arrived::Body(bytes) => Body::parse(header.kind, bytes)?,
            Arrived::Data(bytes) => {
                self.driver.program.incoming = bytes;
                Body::None
            }
            Arrived::None | Arrived::Discarded => Body::parse(header.kind, &[]).unwrap_or(Body::None),
        };
        self.core.on_frame(self.now, Path::Stream, header, body, &mut self.driver);
        Ok(())
    }
}

impl Rank {
    /// A rank at its end of an edge that has just opened.
    pub fn new(config: LeafConfig, (keys, results): (EdgeKeys, &Results), mut socket: StreamSocket) -> Rank {
        let records = socket.take_records().expect("an edge in memory");
        let (writer, reader) = (StreamWriter::new(keys.up, 1 << 20), StreamReader::new(keys.down));
        let mut edge = Edge { keys, results: results.tags, out: records.out, writer };
        let (mut core, mut program) = (LeafCore::new(config), Program::default());
        core.on_link_up(Nanos(0), Epoch(1), &mut Driver { edge: &mut edge, program: &mut program });
        Rank { core, edge, program, groups: Vec::new(), socket, reader, come: records.come, connected: true }
    }

    /// The program makes a group.
    pub fn create(&mut self, members: RankList, tag: u64) {
        let id = self.core.next_group();
        let group = NewGroup { members, tag, name: GroupName::default(), companion: false };
        let mut driver = Driver { edge: &mut self.edge, program: &mut self.program };
        if self.core.create_group(id, group, &mut driver).is_ok() {
            self.groups.push(id);
        }
    }

    /// The program posts an operation on a vector in one of its groups, if it has any.
    pub fn post(&mut self, now: Nanos, which: usize, signature: Signature, vector: Vec<u8>) -> Option<OpId> {
        let group = *self.groups.get(which.checked_rem(self.groups.len())?)?;
        let id = self.core.next_op();
        self.program.vectors.insert(id, vector);
        let post = Post { id, number: None, signature, stretch_of: 0 };
        let mut driver = Driver { edge: &mut self.edge, program: &mut self.program };
        self.core.post(now, group, &post, &mut driver).is_ok().then_some(id)
    }

    /// The program frees one of its groups.
    pub fn free(&mut self, now: Nanos, which: usize) {
        if let Some(which) = which.checked_rem(self.groups.len()) {
            let group = self.groups.remove(which);
            let mut driver = Driver { edge: &mut self.edge, program: &mut self.program };
            self.core.free_group(now, group, &mut driver);
        }
    }

    /// How an operation has ended, if it has.
    pub fn over(&self, op: OpId) -> Option<Result<&[u8], Fault>> {
        let over = *self.program.over.get(&op)?;
        Some(over.map(|()| &self.program.vectors[&op][..]))
    }

    /// Writes bytes that are no frame, behind what is written already.
    pub fn write_raw(&mut self, bytes: &[u8]) {
        use std::io::Write;
        // A full ring takes less.
        let _ = self.edge.writer.flush(&mut self.socket);
        let _ = self.socket.write(bytes);
    }

    /// Writes what is queued, as far as there is room.
    pub fn write(&mut self) {
        if self.connected && self.edge.writer.flush(&mut self.socket).is_err() {
            self.cut();
        }
        while self.edge.writer.next_written().is_some() {}
    }

    /// Whether its edge is open, as far as it knows.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Does all that can be done now.
    pub fn poll(&mut self, now: Nanos) {
        self.write();
        let mut rejected = UdpCounters::default();
        while let Some(datagram) = self.come.next(&mut rejected) {
            assert!(datagram.verify(&self.edge.results).is_ok(), "the node signs with another key");
            let header = datagram.header;
            let body = match header.kind.carries_data() {
                true => {
                    self.program.incoming = datagram.payload.to_vec();
                    Body::None
                }
                false => Body::parse(header.kind, datagram.payload).expect("the node sends a body that is one"),
            };
            let mut driver = Driver { edge: &mut self.edge, program: &mut self.program };
            self.core.on_frame(now, Path::Datagram, &header, body, &mut driver);
        }
        if self.connected {
            let driver = Driver { edge: &mut self.edge, program: &mut self.program };
            let mut sink = Sink { core: &mut self.core, driver, now };
            match self.reader.read(&mut self.socket, &mut sink, 1 << 20) {
                Ok(ReadEnd::Closed) => self.cut(),
                Ok(_) => {}
                Err(error) => panic!("the node writes what no rank takes: {error}"),
            }
        }
        if now >= self.core.next_deadline() {
            let mut driver = Driver { edge: &mut self.edge, program: &mut self.program };
            self.core.on_timer(now, &mut driver);
        }
        self.write();
    }

    fn cut(&mut self) {
        self.connected = false;
        self.core.on_link_down(&mut Driver { edge: &mut self.edge, program: &mut self.program });
    }
}

/// A header that frames of this rank begin as.
pub fn header(config: &LeafConfig) -> Header {
    Header::new(Kind::Heartbeat, config.job, config.epoch, config.node, config.child)
}
