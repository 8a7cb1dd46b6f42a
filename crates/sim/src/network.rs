//! Links between processes. Their datagrams may be lost, doubled, late and out of order. Their
//! streams are reliable, have a bandwidth and a socket of bounded size, and stall while the link is
//! out.

use std::collections::VecDeque;
use std::rc::Rc;

use trib_proto::Nanos;
use trib_wire::header::HEADER_LEN;
use trib_wire::{Body, Header, Way};

use crate::random::Rng;
use crate::symbol::Value;

/// A frame on its way.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// The typed payload.
    pub body: Body,
    /// The vector data.
    pub data: Option<Rc<Value>>,
    /// Bytes on the wire.
    pub wire_len: u64,
    /// Core and number of the buffer that the data is in until it is written.
    pub source: Option<(usize, u32)>,
}

impl Frame {
    /// A frame as its receiver will parse it; `Err` says what a receiver would not take.
    pub fn new(header: Header, body: Body, data: Option<Rc<Value>>) -> Result<Frame, String> {
        let mut bytes = [0; HEADER_LEN];
        header.emit(0, &mut bytes);
        match Header::parse(&bytes) {
            Ok((parsed, _)) if parsed == header => {}
            Ok((parsed, _)) => return Err(format!("the header arrives as {parsed}")),
            Err(error) => return Err(error.to_string()),
        }
        let payload = match &body {
            Body::None => u64::from(header.payload_len),
            body => {
                let bytes = body.to_bytes();
                match Body::parse(header.kind, &bytes) {
                    Ok(parsed) if parsed == *body => {}
                    Ok(parsed) => return Err(format!("the body arrives as {parsed:?}")),
                    Err(error) => return Err(error.to_string()),
                }
                bytes.len() as u64
            }
        };
        let carried = data.as_ref().map_or(0, |value| value.len());
        if body == Body::None && !is_payload(&header, carried) {
            return Err(format!("{carried} elements in a payload of {} bytes", header.payload_len));
        }
        Ok(Frame { header, body, data, wire_len: HEADER_LEN as u64 + payload, source: None })
    }
}

/// Whether a payload of as many bytes as the header says can have so many elements.
fn is_payload(header: &Header, elements: u32) -> bool {
    let first = header.first + u64::from(header.skip);
    let carried = first..first + u64::from(elements);
    let bytes = |way: &Way| header.signature.layout().bytes(&carried, *way);
    match elements {
        0 => header.payload_len == 0,
        _ => Way::of(header.kind).iter().any(|way| bytes(way) == u64::from(header.payload_len)),
    }
}

/// How one direction of a link behaves.
#[derive(Clone, Debug)]
pub struct Quality {
    /// Datagrams lost, per thousand.
    pub loss: u64,
    /// Datagrams doubled, per thousand.
    pub duplication: u64,
    /// Datagrams that come much later, per thousand.
    pub stray: u64,
    /// How much later at most.
    pub stray_max: Nanos,
    /// Time on the way.
    pub delay: Nanos,
    /// Further time on the way, different for each frame, so that datagrams overtake each other.
    pub jitter: Nanos,
    /// Stream bytes per millisecond.
    pub bandwidth: u64,
    /// Stream bytes between the writer and the reader.
    pub socket: u64,
}

/// Which datagrams get through one direction of a link at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Gate {
    /// All of them.
    #[default]
    Open,
    /// Those with so many bytes of vector at most; the others vanish.
    UpTo(u64),
    /// The same, and the sender's kernel knows it and says so.
    Known(u64),
    /// None.
    Shut,
}

impl Gate {
    /// Whether a frame gets through.
    pub fn passes(self, frame: &Frame) -> bool {
        let vector = frame.data.as_ref().map_or(0, |_| u64::from(frame.header.payload_len));
        match self {
            Gate::Open => true,
            Gate::UpTo(most) | Gate::Known(most) => vector <= most,
            Gate::Shut => false,
        }
    }
}

/// One direction of the way above an actor, over which connections come and go.
#[derive(Clone, Debug)]
pub struct Cable {
    /// How it behaves.
    pub quality: Quality,
    /// Which datagrams it carries.
    pub gate: Gate,
    /// Spans in which nothing gets through.
    pub outages: Vec<(Nanos, Nanos)>,
}

impl Cable {
    /// A way on which nothing is wrong.
    pub fn new(quality: Quality) -> Cable {
        Cable { quality, gate: Gate::Open, outages: Vec::new() }
    }
}

/// Processes fall into two parts for a while.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Whether each process is in the first part.
    pub first: Vec<bool>,
    /// From when to when.
    pub span: (Nanos, Nanos),
    /// Whether the first part still reaches the second.
    pub one_way: bool,
}

impl Partition {
    /// Whether nothing gets from one process to another while it lasts.
    pub fn parts(&self, from: usize, to: usize) -> bool {
        self.first[from] != self.first[to] && !(self.one_way && self.first[from])
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Channel {
    /// How it behaves.
    pub quality: Quality,
    /// Which datagrams it carries.
    pub gate: Gate,
    outages: Vec<(Nanos, Nanos)>,
    /// When the stream stands still.
    unacknowledged: Vec<(Nanos, Nanos)>,
    control: VecDeque<Rc<Frame>>,
    data: VecDeque<Rc<Frame>>,
    in_socket: VecDeque<(Nanos, Rc<Frame>)>,
    used: u64,
    free_at: Nanos,
    last_arrival: Nanos,
    open: bool,
    cut: bool,
}

/// A frame that has just been written into a socket, and when its last byte will be at the other
/// end.
pub struct Written {
    /// The frame.
    pub frame: Rc<Frame>,
    /// When the reader can have it.
    pub arrival: Nanos,
}

impl Channel {
    /// A channel whose stream is not open yet.
    pub fn new(quality: Quality) -> Channel {
        Channel {
            quality,
            gate: Gate::Open,
            outages: Vec::new(),
            unacknowledged: Vec::new(),
            control: VecDeque::new(),
            data: VecDeque::new(),
            in_socket: VecDeque::new(),
            used: 0,
            free_at: Nanos(0),
            last_arrival: Nanos(0),
            open: false,
            cut: false,
        }
    }

    /// The same over a cable, whose other direction takes the acknowledgements back.
    pub fn over(cable: &Cable, back: &Cable) -> Channel {
        let mut channel = Channel { gate: cable.gate, ..Channel::new(cable.quality.clone()) };
        cable.outages.iter().for_each(|span| channel.cut_off(*span));
        back.outages.iter().for_each(|span| channel.leave_unacknowledged(*span));
        channel
    }

    /// Lets nothing through in this span.
    pub fn cut_off(&mut self, span: (Nanos, Nanos)) {
        self.outages.push(span);
    }

    /// Nothing comes back in this span: a stream stands still when it has been without
    /// acknowledgements for a while.
    pub fn leave_unacknowledged(&mut self, (start, end): (Nanos, Nanos)) {
        self.unacknowledged.push((start + UNACKNOWLEDGED_MAX, end));
    }

    /// When each copy of a datagram arrives; none if it is lost.
    pub fn datagram_arrivals(&self, now: Nanos, rng: &mut Rng) -> Vec<Nanos> {
        let quality = &self.quality;
        if self.cut || self.is_out(now) || rng.chance(quality.loss) {
            return Vec::new();
        }
        let copies = 1 + u64::from(rng.chance(quality.duplication));
        (0..copies)
            .map(|_| {
                let stray = if rng.chance(quality.stray) { rng.below(quality.stray_max.0 + 1) } else { 0 };
                now + quality.delay + Nanos(rng.below(quality.jitter.0 + 1)) + Nanos(stray)
            })
            .collect()
    }

    /// Whether the way is out, so that no datagram gets through that leaves now.
    pub fn is_out(&self, now: Nanos) -> bool {
        self.outage_end(now).is_some()
    }

    /// Queues a frame of the stream: control frames go ahead of vector data that is not in the
    /// socket yet, and groups share the socket in any order.
    pub fn queue(&mut self, frame: Rc<Frame>) {
        if self.cut {
            return;
        }
        if frame.header.keeps_turn() {
            self.data.push_back(frame);
        } else {
            self.control.push_back(frame);
        }
    }

    /// The stream is open from now on.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Whether the stream is gone.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Writes all control frames at once, whether there is room or not, for a process takes its
    /// time to end a connection that it closes. Returns when each of them arrives.
    pub fn flush_control(&mut self, now: Nanos) -> Vec<Nanos> {
        if !self.open || self.cut {
            return Vec::new();
        }
        self.data.clear();
        let mut arrivals = Vec::new();
        while let Some(frame) = self.control.pop_front() {
            self.used += frame.wire_len;
            self.last_arrival = self.last_arrival.max(self.stream_arrival(now + self.quality.delay));
            self.in_socket.push_back((self.last_arrival, frame));
            arrivals.push(self.last_arrival);
        }
        arrivals
    }

    /// When a word that is said now is at the other end, in the order of what was said before.
    pub fn word_arrival(&mut self, now: Nanos) -> Nanos {
        self.last_arrival = self.last_arrival.max(self.stream_arrival(now + self.quality.delay));
        self.last_arrival
    }

    /// The stream is gone; what the socket does not hold yet is lost, and the rest too unless the
    /// end was orderly.
    pub fn cut(&mut self, orderly: bool) {
        self.cut = true;
        self.control.clear();
        self.data.clear();
        if !orderly {
            self.in_socket.clear();
        }
    }

    /// When the last byte in the socket will be at the other end.
    pub fn last_arrival(&self) -> Nanos {
        self.last_arrival
    }

    /// Writes the next frame into the socket, if there is room.
    pub fn write(&mut self, now: Nanos, rng: &mut Rng) -> Option<Written> {
        if !self.open || self.cut || self.used >= self.quality.socket {
            return None;
        }
        let frame = match self.control.pop_front() {
            Some(frame) => frame,
            None => self.next_data(rng)?,
        };
        let len = frame.wire_len;
        self.used += len;
        let quality = &self.quality;
        self.free_at = self.free_at.max(now) + Nanos(len * 1_000_000 / quality.bandwidth.max(1));
        let arrival = self.free_at + quality.delay + Nanos(rng.below(quality.jitter.0 + 1));
        self.last_arrival = self.last_arrival.max(self.stream_arrival(arrival));
        self.in_socket.push_back((self.last_arrival, Rc::clone(&frame)));
        Some(Written { frame, arrival: self.last_arrival })
    }

    /// The reader takes the next frame, if it has arrived.
    pub fn read(&mut self, now: Nanos) -> Option<Rc<Frame>> {
        if self.in_socket.front()?.0 > now {
            return None;
        }
        let (_, frame) = self.in_socket.pop_front()?;
        self.used -= frame.wire_len;
        Some(frame)
    }

    /// Frames that are queued and not in the socket.
    pub fn queued(&self) -> impl Iterator<Item = &Rc<Frame>> {
        self.control.iter().chain(&self.data)
    }

    /// The first frame of some group.
    fn next_data(&mut self, rng: &mut Rng) -> Option<Rc<Frame>> {
        let name = |frame: &Rc<Frame>| (frame.header.group, frame.header.generation);
        let any = rng.below(self.data.len().max(1) as u64) as usize;
        let group = name(self.data.get(any)?);
        let first = self.data.iter().position(|frame| name(frame) == group)?;
        self.data.remove(first)
    }

    fn outage_end(&self, now: Nanos) -> Option<Nanos> {
        let inside = self.outages.iter().filter(|(start, end)| *start <= now && now < *end);
        inside.map(|(_, end)| *end).max()
    }

    /// When what would arrive at this time over the stream does arrive.
    fn stream_arrival(&self, at: Nanos) -> Nanos {
        let stops = self.outages.iter().chain(&self.unacknowledged);
        let inside = stops.filter(|(start, end)| *start <= at && at < *end);
        inside.map(|(_, end)| *end).max().unwrap_or(at)
    }
}

/// How long a stream goes on without acknowledgements: its window, and small frames in it.
const UNACKNOWLEDGED_MAX: Nanos = Nanos::from_millis(1_000);

#[cfg(test)]
mod tests {
    use super::*;
    use trib_wire::{ChildIndex, Epoch, JobId, Kind, NodeId};

    fn frame(kind: Kind, seq: u64) -> Rc<Frame> {
        let header = Header { seq, ..Header::new(kind, JobId(1), Epoch(1), NodeId(0), ChildIndex(0)) };
        Rc::new(Frame::new(header, Body::None, None).unwrap())
    }

    fn quality() -> Quality {
        Quality {
            loss: 0,
            duplication: 0,
            stray: 0,
            stray_max: Nanos(0),
            delay: Nanos(10),
            jitter: Nanos(100),
            bandwidth: 1_000_000,
            socket: 150,
        }
    }

    #[test]
    fn control_goes_ahead_of_queued_data_but_not_of_the_socket() {
        let mut rng = Rng::new(1);
        let mut channel = Channel::new(quality());
        channel.open();
        for seq in 0..3 {
            channel.queue(frame(Kind::Contribution, seq));
        }
        assert!(channel.write(Nanos(0), &mut rng).is_some());
        assert!(channel.write(Nanos(0), &mut rng).is_some());
        assert!(channel.write(Nanos(0), &mut rng).is_none(), "the socket is full");
        channel.queue(frame(Kind::Leave, 9));
        let mut seen = Vec::new();
        for now in (0..5000).map(Nanos) {
            while let Some(frame) = channel.read(now) {
                seen.push(frame.header.seq);
            }
            while channel.write(now, &mut rng).is_some() {}
        }
        assert_eq!(seen, [0, 1, 9, 2]);
    }

    #[test]
    fn an_outage_stalls_streams_and_swallows_datagrams() {
        let mut rng = Rng::new(1);
        let mut channel = Channel::new(quality());
        channel.outages.push((Nanos(0), Nanos(1000)));
        channel.open();
        channel.queue(frame(Kind::Heartbeat, 0));
        let written = channel.write(Nanos(0), &mut rng).unwrap();
        assert_eq!(written.arrival, Nanos(1000));
        assert!(channel.is_out(Nanos(999)) && !channel.is_out(Nanos(1000)));
        assert!(channel.datagram_arrivals(Nanos(999), &mut rng).is_empty());
        assert_eq!(channel.datagram_arrivals(Nanos(1000), &mut rng).len(), 1);
    }
}
