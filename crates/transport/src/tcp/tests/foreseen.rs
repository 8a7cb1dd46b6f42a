//! What comes as foreseen is read straight to where it belongs, and nothing else is lost, wherever
//! the stream is cut.

use proptest::prelude::*;
use trib_wire::auth::FrameKey;
use trib_wire::{Header, Kind};

use super::{Cut, header};
use crate::tcp::{Arrived, Destination, FrameSink, ReadEnd, StreamError, StreamReader, StreamWriter};

const KEY: FrameKey = FrameKey([5; 16]);

/// Kind, group, number and payload of a frame.
type Came = (Kind, u32, u64, Vec<u8>);

/// A sink that foresees everything, and records what came where.
#[derive(Default)]
struct Seer {
    frames: Vec<Came>,
    confirmed: usize,
    /// Frames whose number is a multiple of this are unwanted once they have come.
    unwanted: Option<u64>,
}

impl FrameSink for Seer {
    type Buffer = Vec<u8>;

    fn place(&mut self, header: &Header) -> Destination<Vec<u8>> {
        match self.unwanted {
            Some(n) if header.seq.is_multiple_of(n) => Destination::Discard,
            _ => Destination::Into(vec![0xaa; header.payload_len as usize]),
        }
    }

    fn foresee(&mut self, header: &Header) -> Option<Vec<u8>> {
        Some(vec![0xbb; header.payload_len as usize])
    }

    fn confirm(&mut self, header: &Header, buffer: Vec<u8>) -> Destination<Vec<u8>> {
        self.confirmed += 1;
        match self.place(header) {
            Destination::Into(_) => Destination::Into(buffer),
            other => other,
        }
    }

    fn frame(&mut self, header: &Header, payload: Arrived<'_, Vec<u8>>) -> Result<(), StreamError> {
        let bytes = match payload {
            Arrived::None => Vec::new(),
            Arrived::Body(bytes) => bytes.to_vec(),
            Arrived::Data(bytes) => bytes,
            Arrived::Discarded => b"gone".to_vec(),
        };
        self.frames.push((header.kind, header.group.0, header.seq, bytes));
        Ok(())
    }
}

fn pattern(group: u32, seq: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(31) ^ (seq * 7) ^ u64::from(group)) as u8).collect()
}

/// A stream of segments of several groups, with a control frame now and then, and what must come
/// out.
fn stream(groups: &[u8], len: usize) -> (Vec<u8>, Vec<Came>) {
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    let mut writer = StreamWriter::new(KEY, 64 << 10);
    let mut next = [0u64; 3];
    for &choice in groups {
        match choice {
            3 => {
                writer.push_control(&header(Kind::Credit, 1, 0), &[]).unwrap();
                frames.push((Kind::Credit, 1, 0, Vec::new()));
            }
            group => {
                let seq = next[usize::from(group)];
                next[usize::from(group)] += 1;
                let head = header(Kind::Result, u32::from(group), len);
                // Every sixth segment begins an operation.
                let head = Header { seq, op_seq: seq / 6, first: seq % 6 * len as u64, ..head };
                let payload = pattern(u32::from(group), seq, len);
                writer.push_data(&head, Some(payload.clone()));
                frames.push((Kind::Result, u32::from(group), seq, payload));
            }
        }
        // Each frame is flushed by a call of its own, so that they go out in this order.
        writer.flush(&mut bytes).unwrap();
        while writer.next_written().is_some() {}
    }
    (bytes, frames)
}

fn read(bytes: &[u8], cuts: &[usize], seer: &mut Seer) {
    let mut reader = StreamReader::new(KEY);
    let mut socket = Cut { bytes, cuts: cuts.iter().cycle() };
    while !socket.bytes.is_empty() {
        assert_ne!(reader.read(&mut socket, seer, 64 * 1024).unwrap(), ReadEnd::Closed);
    }
    assert_eq!(reader.bytes(), bytes.len() as u64);
    assert_eq!(reader.frames(), seer.frames.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_frame_comes_whole_and_in_order(
        groups in prop::collection::vec(prop_oneof![6 => Just(0u8), 2 => 1u8..3, 1 => Just(3u8)], 1..60),
        len in prop_oneof![Just(4096usize), Just(8192), Just(16384), Just(512)],
        cuts in prop::collection::vec(1usize..100_000, 1..8),
    ) {
        let (bytes, frames) = stream(&groups, len);
        let mut seer = Seer::default();
        read(&bytes, &cuts, &mut seer);
        prop_assert_eq!(seer.frames, frames);
    }
}

#[test]
fn a_run_is_read_into_the_foreseen_destinations() {
    let (bytes, frames) = stream(&[0; 6], 8192);
    let mut seer = Seer::default();
    read(&bytes, &[usize::MAX], &mut seer);
    // The first read did not know what would come, so it filled its whole read-ahead buffer.
    let mut slow = Seer::default();
    read(&bytes, &[9000], &mut slow);
    assert!(slow.confirmed >= 4, "{}", slow.confirmed);
    assert_eq!(seer.frames, frames);
    assert_eq!(slow.frames, frames);
}

#[test]
fn a_foreseen_frame_may_be_unwanted_when_it_comes() {
    let (bytes, frames) = stream(&[0; 6], 8192);
    let mut seer = Seer { unwanted: Some(2), ..Seer::default() };
    read(&bytes, &[5000], &mut seer);
    for ((_, _, seq, got), (_, _, _, sent)) in seer.frames.iter().zip(&frames) {
        assert_eq!(got == b"gone", seq.is_multiple_of(2));
        assert!(seq.is_multiple_of(2) || got == sent);
    }
    assert_eq!(seer.frames.len(), 6);
}
