//! One rank: a leaf core with a stream and a datagram socket.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use trib_keys::EdgeKeys;
use trib_proto::leaf::{GroupId, LeafOutput, NewGroup, Note, OpId, Payload, Post, Slice};
use trib_proto::{LeafConfig, LeafCore, Limits, Nanos, Path};
use trib_transport::tcp::{
    Arrived, Destination, FrameSink, Identity, ReadEnd, StreamError, StreamReader, StreamSocket, StreamWriter, connect,
};
use trib_transport::udp::{DatagramSocket, RecvBatch, UdpCounters};
use trib_wire::auth::FrameKey;
use trib_wire::body::Fault;
use trib_wire::{Body, Epoch, GroupName, Header, Mode, Placement, RankList, Signature};

use super::Tree;

/// A rank and what it has done.
pub struct Rank {
    core: LeafCore,
    io: Io,
    socket: StreamSocket,
    reader: StreamReader<Vec<u8>>,
    batch: RecvBatch,
    start: Instant,
    connected: bool,
}

/// The leaf core's driver.
struct Io {
    keys: EdgeKeys,
    /// The key of the node's datagrams.
    results: FrameKey,
    udp: DatagramSocket,
    node: SocketAddr,
    writer: StreamWriter<Vec<u8>>,
    incoming: Vec<u8>,
    /// The vectors by operation. Results overwrite them.
    vectors: HashMap<OpId, Vec<u8>>,
    done: HashMap<OpId, Result<(), Fault>>,
    ready: Vec<GroupId>,
    failed: Vec<(GroupId, Fault)>,
}

/// Where the elements of a slice lie in a vector.
fn bytes_of(slice: Slice) -> Range<usize> {
    let element = (slice.bytes / slice.elements) as usize;
    let from = slice.first as usize * element;
    from..from + slice.bytes as usize
}

impl LeafOutput for Io {
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>) {
        let data = match payload {
            Payload::None => Vec::new(),
            Payload::Body(body) => body.to_bytes().to_vec(),
            Payload::Data(slice) => self.vectors[&slice.op][bytes_of(slice)].to_vec(),
        };
        match path {
            Path::Datagram => {
                assert_eq!(self.udp.send(header, &self.keys.up, &data, &[self.node]), 0, "loopback carries it");
            }
            Path::Stream if header.kind.carries_data() => {
                self.writer.push_data(header, (!data.is_empty()).then_some(data));
            }
            Path::Stream => self.writer.push_control(header, &data).unwrap(),
        }
    }

    fn deliver(&mut self, slice: Slice) {
        let vector = self.vectors.get_mut(&slice.op).unwrap();
        vector[bytes_of(slice)].copy_from_slice(&self.incoming);
    }

    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>) {
        self.done.insert(op, result.map(|_| ()));
    }

    fn forget(&mut self, _: OpId) {}

    fn move_to(&mut self, _: &Placement) {}

    fn group_ready(&mut self, group: GroupId) {
        self.ready.push(group);
    }

    fn group_failed(&mut self, group: GroupId, fault: Fault) {
        self.failed.push((group, fault));
    }

    fn note(&mut self, _note: Note) {}
}

struct Sink<'a> {
    core: &'a mut LeafCore,
    io: &'a mut Io,
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
                self.io.incoming = bytes;
                Body::None
            }
            Arrived::None | Arrived::Discarded => Body::None,
        };
        self.core.on_frame(self.now, Path::Stream, header, body, self.io);
        Ok(())
    }
}

impl Rank {
    /// Connects rank `rank` of the tree to the node at `stream`.
    pub fn connect(tree: &Tree, rank: u32, stream: SocketAddr) -> Rank {
        let (node, child) = tree.attachment(rank);
        let keys = tree.rank_keys(rank);
        let udp = DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
        let identity = Identity {
            job: tree.job,
            epoch: Epoch(1),
            node,
            child,
            channel: 0,
            mode: Mode::Checked,
            udp_port: udp.local_addr().port(),
            shares: true,
            ucx: None,
            placement: Placement::FIRST,
        };
        let open = connect(stream, &identity, &keys.hello, Duration::from_secs(5)).unwrap();
        let mut core = LeafCore::new(LeafConfig {
            job: tree.job,
            epoch: Epoch(1),
            rank: trib_wire::Rank(rank),
            world_size: tree.world_size(),
            node,
            child,
            limits: Limits::from(&tree.limits),
            recovers: false,
            memory: u64::MAX,
            strict: false,
        });
        let writer = StreamWriter::new(keys.up, 1 << 20);
        let reader = StreamReader::new(keys.down);
        let mut io = Io {
            keys,
            results: open.results.tags,
            udp,
            node: open.datagrams,
            writer,
            incoming: Vec::new(),
            vectors: HashMap::new(),
            done: HashMap::new(),
            ready: Vec::new(),
            failed: Vec::new(),
        };
        let start = Instant::now();
        core.on_link_up(Nanos(0), Epoch(1), &mut io);
        Rank { core, io, socket: open.socket, reader, batch: RecvBatch::new(32, 65_000), start, connected: true }
    }

    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    pub fn create_group(&mut self, members: RankList) -> GroupId {
        let id = self.core.next_group();
        let group = NewGroup { members, tag: 0, name: GroupName::default(), companion: false };
        self.core.create_group(id, group, &mut self.io).unwrap();
        id
    }

    pub fn free_group(&mut self, group: GroupId) {
        self.core.free_group(self.now(), group, &mut self.io);
    }

    /// Posts an operation on a vector.
    pub fn post(&mut self, group: GroupId, signature: Signature, vector: Vec<u8>) -> OpId {
        let id = self.core.next_op();
        self.io.vectors.insert(id, vector);
        let post = Post { id, number: None, signature, stretch_of: 0 };
        self.core.post(self.now(), group, &post, &mut self.io).unwrap();
        id
    }

    pub fn is_ready(&self, group: GroupId) -> bool {
        self.io.ready.contains(&group)
    }

    pub fn failure(&self, group: GroupId) -> Option<Fault> {
        self.io.failed.iter().find(|(id, _)| *id == group).map(|(_, fault)| *fault)
    }

    pub fn is_done(&self, op: OpId) -> bool {
        self.io.done.contains_key(&op)
    }

    /// The result of a finished operation.
    pub fn result(&self, op: OpId) -> Result<&[u8], Fault> {
        self.io.done[&op]?;
        Ok(&self.io.vectors[&op])
    }

    /// Whether the node has closed the connection.
    pub fn is_cut(&self) -> bool {
        !self.connected
    }

    /// The address to which this rank sends datagrams, their key, and that of the answers.
    pub fn datagram_edge(&self) -> (SocketAddr, FrameKey, FrameKey) {
        (self.io.node, self.io.keys.up, self.io.results)
    }

    /// The datagram socket, with which a test sends what no core would.
    pub fn udp(&mut self) -> &mut DatagramSocket {
        &mut self.io.udp
    }

    /// Queues a stream frame that no core would send.
    pub fn push_data(&mut self, header: &Header, payload: Vec<u8>) {
        self.io.writer.push_data(header, Some(payload));
    }

    /// Whether all that was queued has been written to the socket.
    pub fn is_flushed(&self) -> bool {
        self.io.writer.is_idle()
    }

    /// Does all that can be done now.
    pub fn poll(&mut self) {
        let now = self.now();
        if self.connected && self.io.writer.flush(&mut self.socket).is_err() {
            self.cut();
        }
        while self.io.writer.next_written().is_some() {}
        self.io.udp.recv(&mut self.batch).unwrap();
        for datagram in self.batch.frames(&mut UdpCounters::default()) {
            datagram.verify(&self.io.results).unwrap();
            let body = if datagram.header.kind.carries_data() {
                self.io.incoming = datagram.payload.to_vec();
                Body::None
            } else {
                Body::parse(datagram.header.kind, datagram.payload).unwrap()
            };
            self.core.on_frame(now, Path::Datagram, &datagram.header, body, &mut self.io);
        }
        if self.connected {
            let mut sink = Sink { core: &mut self.core, io: &mut self.io, now };
            match self.reader.read(&mut self.socket, &mut sink, 1 << 20) {
                Ok(ReadEnd::Closed) | Err(_) => self.cut(),
                Ok(_) => {}
            }
        }
        if now >= self.core.next_deadline() {
            self.core.on_timer(now, &mut self.io);
        }
    }

    fn cut(&mut self) {
        self.connected = false;
        self.core.on_link_down(&mut self.io);
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rank: connected {}, ready {:?}, failed {:?}, done {:?}",
            self.connected, self.io.ready, self.io.failed, self.io.done
        )
    }
}
