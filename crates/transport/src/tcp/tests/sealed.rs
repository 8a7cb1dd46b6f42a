//! Modes that seal payloads: frames arrive whole wherever the stream is cut, and what anybody
//! changes, repeats, leaves out or takes from elsewhere ends the connection before it is handed
//! over.

use std::io::{self, Write};

use proptest::prelude::*;
use trib_keys::{HelloKey, PayloadKey, Session};
use trib_seal::Sealer;
use trib_wire::auth::FrameKey;
use trib_wire::header::FLAG_SEALED;
use trib_wire::hello::{Challenge, Hello, Status};
use trib_wire::{ChildIndex, Epoch, Header, JobId, Kind, Mode, NodeId, Placement};

use super::{Cut, header};
use crate::sealing::{ReaderKeys, WriterKeys};
use crate::tcp::{Arrived, Destination, FrameSink, StreamError, StreamReader, StreamWriter};

const SEALING: [Mode; 2] = [Mode::Signed, Mode::Encrypted];
const PIECE: usize = 5000;

/// The keys of a connection, and those of its node's results.
fn session(mode: Mode, connection: u8) -> (Session, PayloadKey) {
    let hello = Hello {
        job: JobId(1),
        epoch: Epoch(1),
        node: NodeId(2),
        child: ChildIndex(3),
        channel: 0,
        mode,
        udp_port: 9,
        nonce: [connection; 16],
        placement: Placement::FIRST,
    };
    let challenge = Challenge { status: Status::Accepted, epoch: Epoch(1), udp_port: 9, nonce: [8; 16] };
    (HelloKey([1; 32]).session(&hello, &challenge).unwrap(), PayloadKey([2; 32]))
}

/// One direction of a connection, at its sending end.
struct Sending {
    writer: StreamWriter<Vec<u8>>,
    sealer: Sealer,
    kind: Kind,
}

impl Sending {
    fn new(mode: Mode, connection: u8, kind: Kind) -> Sending {
        let (session, results) = session(mode, connection);
        let mut writer = StreamWriter::new(FrameKey([0; 16]), 1 << 20);
        let (keys, data) = match kind {
            Kind::Contribution => (WriterKeys::up(&session), session.data_up),
            _ => (WriterKeys::down(&session), results),
        };
        writer.open(keys);
        Sending { writer, sealer: Sealer::new(mode, data), kind }
    }

    fn segment(&self, group: u32, seq: u64) -> Header {
        let head = header(self.kind, group, PIECE);
        Header { seq, first: seq * PIECE as u64, mark: seq / 3, ..head }
    }

    fn push(&mut self, group: u32, seq: u64) {
        let mut payload = payload(group, seq);
        let seal = self.sealer.seal(&mut payload);
        self.writer.push_sealed(&self.segment(group, seq), payload, &seal);
    }

    fn push_control(&mut self, seq: u64) {
        let head = Header { seq, ..header(Kind::Join, 1, 0) };
        self.writer.push_control(&head, &[seq as u8; 70]).unwrap();
    }

    fn written(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.writer.flush(&mut bytes).unwrap();
        bytes
    }
}

fn payload(group: u32, seq: u64) -> Vec<u8> {
    (0..PIECE).map(|at| (at as u64 + 3 * seq + u64::from(group)) as u8).collect()
}

/// Takes everything, and foresees it if it is to.
#[derive(Default)]
struct Taker {
    foresees: bool,
    frames: Vec<(Kind, u32, u64, Vec<u8>)>,
}

impl FrameSink for Taker {
    type Buffer = Vec<u8>;

    fn place(&mut self, header: &Header) -> Destination<Vec<u8>> {
        Destination::Into(vec![0xaa; header.payload_len as usize])
    }

    fn foresee(&mut self, header: &Header) -> Option<Vec<u8>> {
        self.foresees.then(|| vec![0xaa; header.payload_len as usize])
    }

    fn frame(&mut self, header: &Header, payload: Arrived<'_, Vec<u8>>) -> Result<(), StreamError> {
        let bytes = match payload {
            Arrived::None => Vec::new(),
            Arrived::Body(bytes) => bytes.to_vec(),
            Arrived::Data(bytes) => bytes,
            Arrived::Discarded => panic!("nothing is unwanted"),
        };
        self.frames.push((header.kind, header.group.0, header.seq, bytes));
        Ok(())
    }
}

fn reader(mode: Mode, connection: u8, kind: Kind) -> StreamReader<Vec<u8>> {
    let (session, results) = session(mode, connection);
    StreamReader::with(match kind {
        Kind::Contribution => ReaderKeys::up(&session),
        _ => ReaderKeys::down(&session, &results),
    })
}

fn read(
    mut reader: StreamReader<Vec<u8>>,
    bytes: &[u8],
    cuts: &[usize],
    foresees: bool,
) -> (Taker, Result<(), StreamError>) {
    let mut taker = Taker { foresees, ..Taker::default() };
    let mut cut = Cut { bytes, cuts: cuts.iter().cycle() };
    let mut outcome = Ok(());
    while !cut.bytes.is_empty() && outcome.is_ok() {
        outcome = reader.read(&mut cut, &mut taker, 1 << 40).map(drop);
    }
    (taker, outcome)
}

fn taken(group: u32, seq: u64, kind: Kind) -> (Kind, u32, u64, Vec<u8>) {
    (kind, group, seq, payload(group, seq))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn frames_arrive_whole_wherever_the_stream_is_cut(
        signs in any::<bool>(), goes_up in any::<bool>(), foresees in any::<bool>(),
        steps in prop::collection::vec((0u32..3, any::<bool>()), 1..30),
        cuts in prop::collection::vec(1usize..9000, 1..12),
    ) {
        let mode = if signs { Mode::Signed } else { Mode::Encrypted };
        let kind = if goes_up { Kind::Contribution } else { Kind::Result };
        let mut sending = Sending::new(mode, 1, kind);
        let (mut expected, mut controls, mut seqs) = (Vec::new(), Vec::new(), [0; 3]);
        let mut bytes = Vec::new();
        for (group, flushes) in steps {
            let seq = &mut seqs[group as usize];
            sending.push(group, *seq);
            expected.push(taken(group, *seq, kind));
            sending.push_control(*seq);
            controls.push((Kind::Join, 1, *seq, vec![*seq as u8; 70]));
            *seq += 1;
            if flushes {
                sending.writer.flush(&mut bytes).unwrap();
            }
        }
        bytes.extend(sending.written());
        let (taker, outcome) = read(reader(mode, 1, kind), &bytes, &cuts, foresees);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
        let (came, data): (Vec<_>, Vec<_>) = taker.frames.into_iter().partition(|frame| frame.0 == Kind::Join);
        prop_assert_eq!(came, controls);
        for group in 0..3 {
            let of = |frames: &[(Kind, u32, u64, Vec<u8>)]| frames.iter().filter(|f| f.1 == group).cloned().collect::<Vec<_>>();
            prop_assert_eq!(of(&data), of(&expected));
        }
    }

    #[test]
    fn a_changed_bit_ends_the_connection_before_its_frame_is_handed_over(
        signs in any::<bool>(), goes_up in any::<bool>(), foresees in any::<bool>(),
        at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let mode = if signs { Mode::Signed } else { Mode::Encrypted };
        let kind = if goes_up { Kind::Contribution } else { Kind::Result };
        let (mut sending, mut ends) = (Sending::new(mode, 1, kind), Vec::new());
        let mut bytes = Vec::new();
        for seq in 0..6 {
            if seq == 3 {
                sending.push_control(seq);
                sending.writer.flush(&mut bytes).unwrap();
                ends.push(bytes.len());
            }
            sending.push(1, seq);
            sending.writer.flush(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        let at = at.index(bytes.len());
        let whole = ends.iter().filter(|end| **end <= at).count();
        bytes[at] ^= 1 << bit;
        let (taker, outcome) = read(reader(mode, 1, kind), &bytes, &[64 << 10], foresees);
        prop_assert!(outcome.is_err() || taker.frames.len() == whole, "a length grew, and the rest has not come");
        prop_assert_eq!(taker.frames.len(), whole);
        for frame in taker.frames.iter().filter(|frame| frame.0 == kind) {
            prop_assert_eq!(frame, &taken(1, frame.2, kind));
        }
    }
}

/// The frames of a recorded stream, each by itself: `count` segments.
fn recorded(mode: Mode, connection: u8, kind: Kind, count: u64) -> Vec<Vec<u8>> {
    let mut sending = Sending::new(mode, connection, kind);
    (0..count)
        .map(|seq| {
            let mut bytes = Vec::new();
            // Each has a whole header, because others have gone before it.
            sending.push(1 + seq as u32, seq);
            sending.writer.flush(&mut bytes).unwrap();
            bytes
        })
        .collect()
}

#[test]
fn a_recorded_frame_is_worth_nothing_anywhere_else() {
    for mode in SEALING {
        for kind in [Kind::Contribution, Kind::Result] {
            let [first, second, third] = &recorded(mode, 1, kind, 3)[..] else { unreachable!() };
            let cuts = [1 << 20];
            let count = |frames: &[&Vec<u8>], connection| {
                let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.iter().copied()).collect();
                let (taker, outcome) = read(reader(mode, connection, kind), &bytes, &cuts, false);
                (taker.frames.len(), outcome.is_ok())
            };
            assert_eq!(count(&[first, second, third], 1), (3, true));
            assert_eq!(count(&[first, first], 1), (1, false), "again");
            assert_eq!(count(&[first, third], 1), (1, false), "with one left out");
            assert_eq!(count(&[second, first], 1), (0, false), "in another order");
            assert_eq!(count(&[first], 2), (0, false), "over another connection");
            // The other direction, another mode, and one without seals.
            let other = if kind == Kind::Result { Kind::Contribution } else { Kind::Result };
            assert!(read(reader(mode, 1, other), first, &cuts, false).0.frames.is_empty());
            let other = if mode == Mode::Signed { Mode::Encrypted } else { Mode::Signed };
            assert!(read(reader(other, 1, kind), first, &cuts, false).0.frames.is_empty());
            let (session, _) = session(mode, 1);
            let key = if kind == Kind::Result { session.down } else { session.up };
            assert!(read(StreamReader::new(key), first, &cuts, false).0.frames.is_empty());
        }
    }
}

/// Both have the key of the node's results, so that one buffer serves both; each has tags of its
/// own.
#[test]
fn one_sealed_result_serves_every_child_and_belongs_to_its_header() {
    for mode in SEALING {
        let mut sealer = Sealer::new(mode, session(mode, 1).1);
        let mut sealed = payload(1, 0);
        let seal = sealer.seal(&mut sealed);
        for connection in [1, 2, 3] {
            let mut sending = Sending::new(mode, connection, Kind::Result);
            sending.writer.push_sealed(&sending.segment(1, 0), sealed.clone(), &seal);
            let (taker, outcome) = read(reader(mode, connection, Kind::Result), &sending.written(), &[777], false);
            outcome.unwrap();
            assert_eq!(taker.frames, [taken(1, 0, Kind::Result)]);
        }
        // The same sealed bytes under the header of another group: who has no key of the connection
        // cannot say so.
        let mut sending = Sending::new(mode, 1, Kind::Result);
        sending.writer.push_sealed(&sending.segment(1, 0), sealed.clone(), &seal);
        let mut bytes = sending.written();
        bytes[16] ^= 3;
        let (taker, outcome) = read(reader(mode, 1, Kind::Result), &bytes, &[1 << 20], false);
        assert!(taker.frames.is_empty() && outcome.is_err());
    }
}

#[test]
fn what_waits_for_the_connection_is_sealed_when_it_is_open() {
    for mode in SEALING {
        let (session, _) = session(mode, 1);
        let mut writer: StreamWriter<Vec<u8>> = StreamWriter::new(FrameKey([9; 16]), 1 << 20);
        for seq in [1, 2] {
            writer.push_control(&Header { seq, ..header(Kind::Join, 1, 0) }, &[seq as u8; 70]).unwrap();
        }
        writer.push_control(&header(Kind::Heartbeat, 0, 0), &[]).unwrap();
        let before = writer.queued_bytes();
        writer.open(WriterKeys::up(&session));
        assert_eq!(writer.queued_bytes(), before + 2 * trib_wire::mode::SEAL_LEN);
        let mut bytes = Vec::new();
        writer.flush(&mut bytes).unwrap();
        assert!(writer.is_idle());
        let (taker, outcome) = read(reader(mode, 1, Kind::Contribution), &bytes, &[50], false);
        outcome.unwrap();
        let bodies: Vec<_> = taker.frames.iter().map(|(kind, _, seq, body)| (*kind, *seq, body.clone())).collect();
        assert_eq!(
            bodies,
            [(Kind::Join, 1, vec![1; 70]), (Kind::Join, 2, vec![2; 70]), (Kind::Heartbeat, 0, Vec::new())]
        );
        assert_eq!(bytes.windows(70).any(|window| window == [1; 70]), mode == Mode::Signed);
    }
}

/// A socket that takes a few bytes once.
struct Narrow<'a> {
    bytes: &'a mut Vec<u8>,
    room: usize,
}

impl Write for Narrow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let here = bytes.len().min(self.room);
        self.bytes.extend_from_slice(&bytes[..here]);
        self.room -= here;
        Ok(here)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn frames_that_are_cut_leave_no_gap_in_the_numbers_of_those_that_follow() {
    for mode in SEALING {
        let mut sending = Sending::new(mode, 1, Kind::Contribution);
        (0..12).for_each(|seq| sending.push(1, seq));
        let mut bytes = Vec::new();
        sending.writer.flush(&mut Narrow { bytes: &mut bytes, room: PIECE + 500 }).unwrap();
        sending.push_control(7);
        assert_eq!(sending.writer.cut(|header| (4..8).contains(&header.seq)), 4);
        (12..14).for_each(|seq| sending.push(1, seq));
        bytes.extend(sending.written());
        let (taker, outcome) = read(reader(mode, 1, Kind::Contribution), &bytes, &[4321], true);
        outcome.unwrap();
        let seqs: Vec<u64> = taker.frames.iter().filter(|f| f.0 == Kind::Contribution).map(|f| f.2).collect();
        assert_eq!(seqs, [0, 1, 2, 3, 8, 9, 10, 11, 12, 13]);
        assert!(taker.frames.iter().all(|f| f.0 == Kind::Join || *f == taken(1, f.2, f.0)));
    }
}

#[test]
fn a_frame_that_says_it_has_a_seal_is_refused_where_there_are_none() {
    let mut bytes = [0; trib_wire::header::HEADER_LEN];
    let head = Header { flags: FLAG_SEALED, ..header(Kind::Heartbeat, 0, 0) };
    FrameKey([5; 16]).seal(&head, &mut bytes);
    let (taker, outcome) = read(StreamReader::new(FrameKey([5; 16])), &bytes, &[1 << 10], false);
    assert!(taker.frames.is_empty() && outcome.is_err());
}
