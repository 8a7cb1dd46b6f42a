//! Tests of which frame goes next.

use std::io::{self, IoSlice, Write};

use trib_wire::auth::FrameKey;
use trib_wire::header::HEADER_LEN;
use trib_wire::mode::SEAL_LEN;
use trib_wire::{Header, Kind};

use super::header;
use crate::tcp::{FlushEnd, QueueFull, StreamWriter};

/// A socket with room for so many bytes.
struct Room {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut sent = 0;
        for slice in slices {
            let here = self.room.min(slice.len());
            self.bytes.extend_from_slice(&slice[..here]);
            self.room -= here;
            sent += here;
        }
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Room {
    fn new(room: usize) -> Room {
        Room { bytes: Vec::new(), room }
    }

    /// The headers of what was sent, in order.
    fn headers(&self) -> Vec<Header> {
        let mut rest = &self.bytes[..];
        let mut headers = Vec::new();
        while rest.len() >= HEADER_LEN {
            let (header, _) = Header::parse(rest).unwrap();
            rest = rest.get(HEADER_LEN + header.payload_len as usize..).unwrap_or(&[]);
            headers.push(header);
        }
        headers
    }
}

fn writer() -> StreamWriter<Vec<u8>> {
    StreamWriter::new(FrameKey([5; 16]), 4 << 10)
}

#[test]
fn control_goes_ahead_of_all_data_that_has_not_begun() {
    let mut writer = writer();
    for _ in 0..20 {
        writer.push_data(&header(Kind::Contribution, 1, 30_000), Some(vec![0; 30_000]));
    }
    let mut socket = Room::new(40_000);
    assert_eq!(writer.flush(&mut socket).unwrap(), FlushEnd::Blocked);
    writer.push_control(&header(Kind::Intent, 1, 0), &[]).unwrap();
    writer.push_control(&header(Kind::Heartbeat, 1, 0), &[]).unwrap();
    socket.room = usize::MAX;
    assert_eq!(writer.flush(&mut socket).unwrap(), FlushEnd::Idle);
    let kinds: Vec<Kind> = socket.headers().iter().map(|h| h.kind).collect();
    assert_eq!(kinds[..5], [Kind::Contribution, Kind::Contribution, Kind::Intent, Kind::Heartbeat, Kind::Contribution]);
    assert_eq!(kinds.len(), 22);
}

#[test]
fn groups_take_turns_by_bytes_whatever_the_length_of_their_queues() {
    let mut writer = writer();
    for _ in 0..64 {
        writer.push_data(&header(Kind::Result, 1, 60_000), Some(vec![0; 60_000]));
    }
    for _ in 0..1000 {
        writer.push_data(&header(Kind::Result, 2, 4_000), Some(vec![0; 4_000]));
    }
    let mut socket = Room::new(3 << 20);
    assert_eq!(writer.flush(&mut socket).unwrap(), FlushEnd::Blocked);
    let mut bytes = [0; 3];
    for header in socket.headers() {
        bytes[header.group.0 as usize] += HEADER_LEN + header.payload_len as usize;
    }
    let share = bytes[1] as f64 / (bytes[1] + bytes[2]) as f64;
    assert!((0.44..0.56).contains(&share), "group 1 had {share} of the bytes");
}

#[test]
fn a_flush_stops_soon_after_what_it_may_write() {
    let mut writer = writer();
    for group in 0..1_000 {
        writer.push_data(&header(Kind::Result, group, 4_000), Some(vec![0; 4_000]));
    }
    let mut socket = Room::new(usize::MAX);
    assert_eq!(writer.flush_some(&mut socket, 1 << 20).unwrap(), FlushEnd::Spent);
    assert!((1 << 20..2 << 20).contains(&socket.bytes.len()), "{} bytes", socket.bytes.len());
    assert_eq!(writer.flush_some(&mut socket, 1 << 30).unwrap(), FlushEnd::Idle);
    assert_eq!(socket.headers().len(), 1_000);
}

#[test]
fn frames_of_one_group_keep_their_order() {
    let mut writer = writer();
    for seq in 0..500 {
        let len = 1 + (seq as usize * 977) % 9_000;
        let mut header = header(Kind::Result, seq as u32 % 3, len);
        header.seq = seq;
        writer.push_data(&header, Some(vec![0; len]));
    }
    let mut socket = Room::new(usize::MAX);
    assert_eq!(writer.flush(&mut socket).unwrap(), FlushEnd::Idle);
    let mut last = [None; 3];
    for header in socket.headers() {
        let last = &mut last[header.group.0 as usize];
        assert!(*last < Some(header.seq));
        *last = Some(header.seq);
    }
}

#[test]
fn control_frames_that_wait_are_bounded_in_bytes() {
    let mut writer = writer();
    // One frame always has room, or nobody could say anything long.
    writer.push_control(&header(Kind::Join, 1, 0), &[0; 1 << 16]).unwrap();
    assert_eq!(writer.push_control(&header(Kind::Credit, 1, 0), &[]), Err(QueueFull(writer.control_bytes())));
    writer.flush(&mut Room::new(usize::MAX)).unwrap();
    assert_eq!(writer.control_bytes(), 0);
    let few = (0..).take_while(|_| writer.push_control(&header(Kind::Credit, 1, 0), &[]).is_ok()).count();
    assert!((4..64).contains(&few) && writer.control_bytes() <= 4 << 10, "{few}");
    // Each has its header twice, as it was given and as it will travel, beside what a queue keeps.
    let headers = size_of::<Header>() + HEADER_LEN + SEAL_LEN;
    assert!(writer.control_bytes() >= few * (headers + size_of::<Vec<u8>>()), "{} for {few}", writer.control_bytes());
    writer.clear();
    assert_eq!(writer.control_bytes(), 0);
}

#[test]
fn what_has_not_begun_can_be_cut_and_what_has_can_be_replaced() {
    let mut writer = writer();
    for group in [1, 1, 2] {
        writer.push_data(&header(Kind::Contribution, group, 100), Some(vec![7; 100]));
    }
    let mut socket = Room::new(HEADER_LEN + 50);
    writer.flush(&mut socket).unwrap();
    assert_eq!(writer.cut(|header| header.group.0 == 1), 1);
    let mut waiting = 0;
    for (_, payload) in writer.payloads_mut() {
        payload.fill(9);
        waiting += 1;
    }
    assert_eq!(waiting, 2);
    socket.room = usize::MAX;
    assert_eq!(writer.flush(&mut socket).unwrap(), FlushEnd::Idle);
    assert!(writer.is_idle());
    let groups: Vec<u32> = socket.headers().iter().map(|h| h.group.0).collect();
    assert_eq!(groups, [1, 2]);
    assert_eq!(socket.bytes[HEADER_LEN..][..100], [[7; 50], [9; 50]].concat());
}

#[test]
fn a_cleared_queue_holds_nothing() {
    let mut writer = writer();
    writer.push_control(&header(Kind::Credit, 1, 0), &[]).unwrap();
    for group in [1, 2] {
        writer.push_data(&header(Kind::Contribution, group, 100), Some(vec![7; 100]));
    }
    writer.flush(&mut Room::new(50)).unwrap();
    writer.clear();
    assert!(writer.is_idle());
    assert_eq!(writer.payloads_mut().count(), 0);
    let mut socket = Room::new(usize::MAX);
    assert_eq!(writer.flush(&mut socket).unwrap(), FlushEnd::Idle);
    assert!(socket.bytes.is_empty());
}
