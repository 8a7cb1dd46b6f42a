//! Last frames over a connection whose far end does not read for a while.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use trib_wire::auth::FrameKey;
use trib_wire::header::HEADER_LEN;
use trib_wire::{Header, Kind};

use super::header;
use crate::tcp::{FlushEnd, Parting, StreamSocket, StreamWriter, say};

#[test]
fn what_is_said_last_arrives_over_a_connection_that_was_full() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = StreamSocket::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    let mut writer: StreamWriter<Vec<u8>> = StreamWriter::new(FrameKey([5; 16]), 4 << 10);
    while writer.flush(&mut socket).unwrap() == FlushEnd::Idle {
        writer.push_data(&header(Kind::Contribution, 1, 300_000), Some(vec![0; 300_000]));
    }
    // If the connection were closed with this unread, its reset would discard what is in it.
    far.write_all(&[7; 100_000]).unwrap();
    writer.cut(|_| true);
    writer.push_control(&header(Kind::Leave, 1, 0), &[]).unwrap();
    let thread = say(vec![Parting { socket, writer }], Duration::from_secs(60)).expect("it takes longer");
    let mut all = Vec::new();
    far.read_to_end(&mut all).unwrap();
    let (last, _) = Header::parse(&all[all.len() - HEADER_LEN..]).unwrap();
    assert_eq!(last.kind, Kind::Leave);
    drop(far);
    thread.join().unwrap();
}
