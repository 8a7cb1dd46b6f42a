//! Data frames that continue one another travel with short headers, whatever is cut out between
//! them.

use std::io::{self, IoSlice, Write};

use proptest::prelude::*;
use trib_wire::auth::FrameKey;
use trib_wire::header::HEADER_LEN;
use trib_wire::short::SHORT_LEN;
use trib_wire::{Header, Kind, ParseError};

use super::header;
use crate::tcp::{Arrived, Destination, FrameSink, StreamError, StreamReader, StreamWriter};

const KEY: FrameKey = FrameKey([5; 16]);
const PIECE: usize = 40;

/// Segment `seq` of a group's operation.
fn segment(group: u32, seq: u64) -> Header {
    let head = header(Kind::Contribution, group, PIECE);
    Header { seq, first: seq * PIECE as u64, mark: seq / 3, ..head }
}

#[derive(Default)]
struct Headers(Vec<Header>);

impl FrameSink for Headers {
    type Buffer = Vec<u8>;

    fn place(&mut self, header: &Header) -> Destination<Vec<u8>> {
        Destination::Into(vec![0; header.payload_len as usize])
    }

    fn frame(&mut self, header: &Header, _: Arrived<'_, Vec<u8>>) -> Result<(), StreamError> {
        self.0.push(*header);
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Result<Vec<Header>, StreamError> {
    let mut sink = Headers::default();
    StreamReader::new(KEY).read(&mut &bytes[..], &mut sink, usize::MAX)?;
    Ok(sink.0)
}

fn written(headers: &[Header]) -> Vec<u8> {
    let mut writer = StreamWriter::new(KEY, 8 << 10);
    for header in headers {
        writer.push_data(header, Some(vec![1; PIECE]));
    }
    let mut bytes = Vec::new();
    writer.flush(&mut bytes).unwrap();
    assert_eq!((writer.queued_bytes(), writer.bytes()), (0, bytes.len() as u64));
    bytes
}

#[test]
fn a_run_of_segments_pays_for_one_header() {
    let run: Vec<Header> = (0..10).map(|seq| segment(1, seq)).collect();
    let bytes = written(&run);
    assert_eq!(bytes.len(), HEADER_LEN + 9 * SHORT_LEN + 10 * PIECE);
    assert_eq!(read(&bytes).unwrap(), run);
}

#[test]
fn a_control_frame_between_two_segments_does_not_part_them() {
    let mut writer = StreamWriter::new(KEY, 8 << 10);
    let mut bytes = Vec::new();
    for seq in 0..3 {
        writer.push_data(&segment(1, seq), Some(vec![1; PIECE]));
        writer.push_control(&header(Kind::Credit, 1, 0), &[]).unwrap();
        writer.flush(&mut bytes).unwrap();
    }
    assert_eq!(bytes.len(), 4 * HEADER_LEN + 2 * SHORT_LEN + 3 * PIECE);
    let kinds: Vec<Kind> = read(&bytes).unwrap().iter().map(|header| header.kind).collect();
    let (credit, data) = (Kind::Credit, Kind::Contribution);
    assert_eq!(kinds, [credit, data, credit, data, credit, data]);
}

#[test]
fn a_short_header_that_follows_nothing_or_was_changed_ends_the_connection() {
    let mut bytes = written(&[segment(1, 0), segment(1, 1)]);
    let alone = bytes[HEADER_LEN + PIECE..].to_vec();
    assert!(matches!(read(&alone), Err(StreamError::Frame(ParseError::BadField("short header")))));
    bytes[HEADER_LEN + PIECE + 4] ^= 1;
    assert!(matches!(read(&bytes), Err(StreamError::Frame(ParseError::BadTag))));
}

proptest! {
    #[test]
    fn what_is_cut_out_of_the_queue_leaves_whole_headers_behind(
        groups in prop::collection::vec(0u32..3, 1..40),
        unwanted in 0u32..3,
        room in 0usize..4000,
    ) {
        let mut next = [0; 3];
        let headers: Vec<Header> = groups.iter().map(|&group| {
            next[group as usize] += 1;
            segment(group, next[group as usize])
        }).collect();
        let mut writer = StreamWriter::new(KEY, 8 << 10);
        for header in &headers {
            writer.push_data(header, Some(vec![1; PIECE]));
        }
        // Some frames are in the socket, one of them perhaps in part; then the frames of one group
        // are cut.
        let mut socket = Narrow { bytes: Vec::new(), room };
        writer.flush(&mut socket).unwrap();
        writer.cut(|header| header.group.0 == unwanted);
        socket.room = usize::MAX;
        writer.flush(&mut socket).unwrap();
        prop_assert_eq!((writer.queued_bytes(), writer.bytes()), (0, socket.bytes.len() as u64));
        let got = read(&socket.bytes).unwrap();
        for group in 0..3 {
            let of = |headers: &[Header]| headers.iter().filter(|h| h.group.0 == group).copied().collect::<Vec<_>>();
            let (sent, came) = (of(&headers), of(&got));
            prop_assert!(sent.starts_with(&came));
            prop_assert!(group == unwanted || sent.len() == came.len());
        }
    }
}

/// A socket that takes so many bytes and no more.
struct Narrow {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let before = self.bytes.len();
        for slice in slices {
            let here = slice.len().min(self.room);
            self.bytes.extend_from_slice(&slice[..here]);
            self.room -= here;
        }
        match self.bytes.len() - before {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            sent => Ok(sent),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
