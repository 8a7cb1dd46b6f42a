//! Frames arrive whole and unchanged wherever the stream is cut.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};

use proptest::prelude::*;
use trib_wire::auth::FrameKey;
use trib_wire::header::HEADER_LEN;
use trib_wire::{Body, Header, Kind, ParseError};

use super::header;
use crate::tcp::{Arrived, Destination, FlushEnd, FrameSink, ReadEnd, StreamError, StreamReader, StreamWriter};

const KEY: FrameKey = FrameKey([5; 16]);

/// A stream that takes and gives a few bytes at a time. The counts cycle through a list, in which 0
/// means "not now".
struct Wire {
    bytes: Vec<u8>,
    at: usize,
    cuts: Vec<usize>,
    turn: usize,
    closed: bool,
}

impl Wire {
    fn new(bytes: Vec<u8>, cuts: Vec<usize>) -> Wire {
        Wire { bytes, at: 0, cuts, turn: 0, closed: false }
    }

    fn next_cut(&mut self) -> io::Result<usize> {
        self.turn += 1;
        match self.cuts[self.turn % self.cuts.len()] {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            cut => Ok(cut),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut left = self.next_cut()?;
        let before = self.bytes.len();
        for slice in slices {
            let here = left.min(slice.len());
            self.bytes.extend_from_slice(&slice[..here]);
            left -= here;
        }
        Ok(self.bytes.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(bytes)])
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            return if self.closed { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let mut left = self.next_cut()?.min(self.bytes.len() - self.at);
        let before = self.at;
        for slice in slices {
            let here = left.min(slice.len());
            slice[..here].copy_from_slice(&self.bytes[self.at..self.at + here]);
            self.at += here;
            left -= here;
        }
        Ok(self.at - before)
    }
}

#[derive(Default)]
struct Collector {
    frames: Vec<(Kind, u64, Vec<u8>)>,
    discard_every: Option<u64>,
}

impl FrameSink for Collector {
    type Buffer = Vec<u8>;

    fn place(&mut self, header: &Header) -> Destination<Vec<u8>> {
        match self.discard_every {
            Some(n) if header.seq.is_multiple_of(n) => Destination::Discard,
            _ => Destination::Into(vec![0xaa; header.payload_len as usize]),
        }
    }

    fn frame(&mut self, header: &Header, payload: Arrived<'_, Vec<u8>>) -> Result<(), StreamError> {
        let bytes = match payload {
            Arrived::None => Vec::new(),
            Arrived::Body(bytes) => bytes.to_vec(),
            Arrived::Data(bytes) => bytes,
            Arrived::Discarded => b"gone".to_vec(),
        };
        self.frames.push((header.kind, header.seq, bytes));
        Ok(())
    }
}

fn read_all(wire: &mut Wire, sink: &mut Collector) -> Result<(), StreamError> {
    let mut reader = StreamReader::new(KEY);
    wire.closed = true;
    reader.expect_end();
    loop {
        if reader.read(wire, sink, 10_000)? == ReadEnd::Closed {
            return Ok(());
        }
    }
}

fn pattern(seq: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u64 * 31 + seq * 7) as u8).collect()
}

/// The frames of one stream: each has a kind of content and a payload length.
fn frames() -> impl Strategy<Value = Vec<(u8, usize)>> {
    let len = prop_oneof![0..4usize, 90..300usize, 10_000..90_000usize];
    proptest::collection::vec((0..3u8, len), 1..12)
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    let cut = prop_oneof![Just(0usize), 1..8usize, 100..5_000usize, Just(1 << 20)];
    (proptest::collection::vec(cut, 1..6), 1..200_000usize).prop_map(|(mut cuts, some)| {
        cuts.push(some);
        cuts
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn frames_arrive_whole_wherever_the_stream_is_cut(frames in frames(), out in cuts(), into in cuts()) {
        let mut writer = StreamWriter::new(KEY, 1 << 20);
        let mut wire = Wire::new(Vec::new(), out);
        let mut sent = Vec::new();
        for (seq, (content, len)) in frames.iter().enumerate() {
            let bytes = pattern(seq as u64, *len);
            let kind = if *content == 0 { Kind::Join } else { Kind::Contribution };
            let mut header = header(kind, u32::from(*content), *len);
            header.seq = seq as u64;
            match kind {
                Kind::Join => writer.push_control(&header, &bytes).unwrap(),
                _ => writer.push_data(&header, (*len > 0).then(|| bytes.clone())),
            }
            sent.push((kind, seq as u64, bytes));
            writer.flush(&mut wire).unwrap();
        }
        while writer.flush(&mut wire).unwrap() != FlushEnd::Idle {}
        prop_assert!(writer.is_idle());
        prop_assert_eq!(writer.bytes() as usize, wire.bytes.len());
        prop_assert_eq!(writer.frames() as usize, frames.len());
        let mut written = 0;
        while let Some(frame) = writer.next_written() {
            prop_assert_eq!(frame.payload.map_or(0, |p| p.len()), frame.header.payload_len as usize);
            written += 1;
        }
        prop_assert_eq!(written, sent.iter().filter(|f| f.0 == Kind::Contribution).count());

        let mut sink = Collector::default();
        wire.cuts = into;
        read_all(&mut wire, &mut sink).unwrap();
        sink.frames.sort_by_key(|f| f.1);
        prop_assert_eq!(&sink.frames, &sent);
    }
}

#[test]
fn unwanted_payloads_go_nowhere_and_do_not_disturb_their_neighbours() {
    let mut writer = StreamWriter::new(KEY, 1 << 20);
    let mut wire = Wire::new(Vec::new(), vec![1 << 20]);
    for seq in 0..8 {
        let mut header = header(Kind::Result, 1, 70_000);
        header.seq = seq;
        writer.push_data(&header, Some(pattern(seq, 70_000)));
    }
    assert_eq!(writer.flush(&mut wire).unwrap(), FlushEnd::Idle);
    let mut sink = Collector { discard_every: Some(3), ..Collector::default() };
    read_all(&mut wire, &mut sink).unwrap();
    for (at, (_, seq, bytes)) in sink.frames.iter().enumerate() {
        assert_eq!(*seq, at as u64);
        let wanted = if at % 3 == 0 { b"gone".to_vec() } else { pattern(*seq, 70_000) };
        assert_eq!(*bytes, wanted);
    }
    assert_eq!(sink.frames.len(), 8);
}

#[test]
fn a_frame_being_read_can_lose_its_memory() {
    let mut writer = StreamWriter::new(KEY, 1 << 20);
    let mut wire = Wire::new(Vec::new(), vec![1 << 20]);
    writer.push_data(&header(Kind::Result, 1, 50_000), Some(vec![1; 50_000]));
    writer.push_data(&header(Kind::Result, 1, 10), Some(vec![2; 10]));
    writer.flush(&mut wire).unwrap();
    let mut reader = StreamReader::new(KEY);
    let mut sink = Collector::default();
    wire.cuts = vec![1_000, 0];
    while reader.pending().is_none() {
        reader.read(&mut wire, &mut sink, 500).unwrap();
    }
    assert_eq!(reader.discard_pending().unwrap().len(), 50_000);
    assert!(reader.pending().is_none());
    wire.cuts = vec![1 << 20];
    while reader.read(&mut wire, &mut sink, 1 << 20).unwrap() != ReadEnd::Drained {}
    assert_eq!(sink.frames[0].2, b"gone");
    assert_eq!(sink.frames[1].2, [2; 10]);
}

#[test]
fn another_key_a_changed_bit_and_a_cut_end_are_seen() {
    let mut writer: StreamWriter<Vec<u8>> = StreamWriter::new(KEY, 1 << 20);
    let mut wire = Wire::new(Vec::new(), vec![1 << 20]);
    let body = Body::Nack(trib_wire::body::Reason::Protocol).to_bytes();
    writer.push_control(&header(Kind::Nack, 1, 0), &body).unwrap();
    writer.flush(&mut wire).unwrap();
    let bytes = wire.bytes;
    let outcome = |bytes: Vec<u8>| {
        let mut sink = Collector::default();
        let result = read_all(&mut Wire::new(bytes, vec![1 << 20]), &mut sink);
        assert!(result.is_ok() || sink.frames.is_empty());
        result
    };
    assert!(outcome(bytes.clone()).is_ok());
    for (at, wanted) in [(20, ParseError::BadTag), (HEADER_LEN, ParseError::BadChecksum)] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        match outcome(changed) {
            Err(StreamError::Frame(error)) => assert_eq!(error, wanted),
            other => panic!("{other:?}"),
        }
    }
    match outcome(bytes[..bytes.len() - 1].to_vec()) {
        Err(StreamError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof),
        other => panic!("{other:?}"),
    }
    let mut other: StreamReader<Vec<u8>> = StreamReader::new(FrameKey([6; 16]));
    let read = other.read(&mut Wire::new(bytes, vec![1 << 20]), &mut Collector::default(), 1000);
    assert!(matches!(read, Err(StreamError::Frame(ParseError::BadTag))));
}
