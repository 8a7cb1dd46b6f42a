//! One committed sample per message, as bytes and as text: a change of the layout, or of what
//! people read, shows up in review. If the change is meant, `TRIB_BLESS=1 cargo test -p trib-wire`
//! writes the samples anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use trib_wire::auth::{FrameKey, payload_crc};
use trib_wire::body::{Held, Late};
use trib_wire::header::{FLAG_CRC, FLAG_IN_TURN, FLAG_REPLAYED, FLAG_STREAM, HEADER_LEN};
use trib_wire::hello::{Challenge, Hello, Proof, Status, Welcome};
use trib_wire::{
    Body, ChildIndex, Collective, DataType, Epoch, Fault, Generation, GroupIndex, GroupKey, GroupName, Header, JobId,
    Kind, Marks, Mode, NodeId, Placement, Rank, RankList, Reason, ReduceOp, Signature, Standing, WireFormat,
};

fn key() -> GroupKey {
    GroupKey { tag: 77, creation: 3, members: RankList::from_ranks([0, 1, 2, 3, 9, 7, 5]) }
}

fn signature() -> Signature {
    Signature {
        collective: Collective::Allreduce,
        dtype: DataType::F32,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count: 1000,
    }
}

fn fault() -> Fault {
    let other = Signature { count: 1001, ..signature() };
    Fault {
        reason: Reason::Mismatch,
        node: NodeId(2),
        rank_a: Rank(3),
        rank_b: Rank(5),
        signatures: Some((signature(), other)),
    }
}

/// A plain frame of each kind, with a body where the kind has one.
fn sample(kind: Kind) -> (Header, Body, &'static [u8]) {
    let base = Header {
        group: GroupIndex(4),
        generation: Generation(6),
        ..Header::new(kind, JobId(1), Epoch(1), NodeId(2), ChildIndex(3))
    };
    let down = Header { child: ChildIndex::ALL, ..base };
    let stream = |header: Header, seq: u64| Header { flags: FLAG_STREAM, seq, ..header };
    let data = Header {
        signature: signature(),
        witness: 3,
        op_seq: 8,
        seq: 10,
        first: 2048,
        elements: 1024,
        skip: 16,
        mark: 9,
        ..base
    };
    let (nodes, name) = (RankList::from_ranks([1, 2]), GroupName::new("MPI_COMM_WORLD"));
    let marks = Marks { fragments: 12, segments: 640 };
    let standing = Standing { resumed: true, exists: true, freed: true, marks, ..Standing::NEW };
    let fault_free = Body::Join { key: key(), fault: None, standing, nodes, name };
    let held = Held { node: NodeId(0), missing: 0b100, have: 0b1, have_base: 10 };
    match kind {
        Kind::Contribution => (Header { flags: FLAG_REPLAYED, ..data }, Body::None, &[1, 2, 3, 4, 5, 6, 7, 8]),
        Kind::Result => (Header { skip: 0, child: ChildIndex::ALL, ..data }, Body::None, &[]),
        Kind::Probe => (Header { seq: 10, mark: 10, ..base }, Body::None, &[]),
        Kind::Held => (Header { seq: 10, ..base }, Body::Held(held), &[]),
        Kind::Nack => (Header { seq: 10, ..base }, Body::Nack(Reason::Unknown), &[]),
        Kind::Join => (Header { group: GroupIndex(0), generation: Generation(0), witness: 3, ..base }, fault_free, &[]),
        Kind::Ready => (down, Body::Ready(key(), marks), &[]),
        Kind::Refused => (down, Body::Refused(key(), Fault { signatures: None, ..fault() }), &[]),
        Kind::Ask => (down, Body::Ask(key()), &[]),
        Kind::Leave | Kind::Heartbeat => (base, Body::None, &[]),
        Kind::Freed => (down, Body::None, &[]),
        Kind::Intent => (
            Header { flags: FLAG_STREAM, seq: 2, signature: signature(), op_seq: 8, witness: 3, ..base },
            Body::None,
            &[],
        ),
        Kind::Grant => (stream(down, 2), Body::None, &[]),
        Kind::Revoke => (stream(down, 2), Body::None, &[]),
        Kind::StopAt => {
            let flags = FLAG_STREAM | FLAG_IN_TURN;
            (Header { flags, seq: 640, ..base }, Body::None, &[])
        }
        Kind::LeaseEnd => (stream(down, 656), Body::None, &[]),
        Kind::Released => (stream(base, 2), Body::None, &[]),
        Kind::Mark => (Header { mark: 640, ..stream(base, 0) }, Body::None, &[]),
        Kind::Late => {
            let late = Late { waited_ms: 1500, ranks: RankList::from_ranks([3, 5, 6]) };
            (Header { op_seq: 8, signature: signature(), witness: 2, ..base }, Body::Late(late), &[])
        }
        Kind::Credit => (stream(base, 24), Body::None, &[]),
        Kind::GroupError => (down, Body::GroupError(fault()), &[]),
        Kind::Lost => {
            let plain = Header { group: GroupIndex(0), generation: Generation(0), ..base };
            (plain, Body::Lost(RankList::from_ranks([4, 5, 6, 7])), &[])
        }
        Kind::Move => {
            let plain = Header { group: GroupIndex(0), generation: Generation(0), ..base };
            let placement = Placement::FIRST.without(NodeId(5)).without(NodeId(2)).without(NodeId(5));
            (plain, Body::Move(placement), &[])
        }
    }
}

fn frame(kind: Kind) -> (String, Vec<u8>) {
    let (mut header, body, data) = sample(kind);
    let payload = if data.is_empty() { body.to_bytes().to_vec() } else { data.to_vec() };
    header.payload_len = payload.len() as u32;
    if !payload.is_empty() {
        header.flags |= FLAG_CRC;
        header.payload_crc = payload_crc(&payload);
    }
    let mut sealed = [0; HEADER_LEN];
    FrameKey(core::array::from_fn(|i| i as u8)).seal(&header, &mut sealed);
    let text = match &body {
        Body::None => format!("{header}\n"),
        Body::GroupError(fault) | Body::Refused(_, fault) => format!("{header}\n{body:?}\n{fault}\n"),
        body => format!("{header}\n{body:?}\n"),
    };
    (text, [&sealed[..], &payload].concat())
}

#[test]
fn every_kind_of_frame_is_what_its_sample_says() {
    for kind in Kind::ALL {
        let (text, bytes) = frame(*kind);
        let (header, _) = Header::parse(&bytes).unwrap();
        if !kind.carries_data() {
            assert_eq!(Body::parse(*kind, &bytes[HEADER_LEN..]), Ok(sample(*kind).1), "{header}");
        }
        compare(&format!("{kind:?}").to_lowercase(), &text, &bytes);
    }
}

#[test]
fn every_message_of_the_handshake_is_what_its_sample_says() {
    let hello = Hello {
        job: JobId(7),
        epoch: Epoch(2),
        node: NodeId(3),
        child: ChildIndex(5),
        channel: 1,
        mode: Mode::Checked,
        udp_port: 4711,
        nonce: [9; 16],
        placement: Placement::FIRST.without(NodeId(3)),
    };
    let challenge = Challenge { status: Status::Accepted, epoch: Epoch(2), udp_port: 4712, nonce: [8; 16] };
    let proof = Proof { offers: false, mac: [7; 32] };
    let welcome = Welcome { status: Status::Accepted, mac: [6; 32], sealed: [5; 16] };
    compare("hello", &format!("{hello:?}\n"), &hello.to_bytes());
    compare("challenge", &format!("{challenge:?}\n"), &challenge.to_bytes());
    compare("proof", &format!("{proof:?}\n"), &proof.to_bytes());
    compare("welcome", &format!("{welcome:?}\n{}\n", welcome.status), &welcome.to_bytes());
}

fn compare(name: &str, text: &str, bytes: &[u8]) {
    let mut sample = format!("{text}\n");
    for (row, chunk) in bytes.chunks(16).enumerate() {
        let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(sample, "{:03}  {}", 16 * row, hex.join(" ")).unwrap();
    }
    let path = folder().join(name).with_extension("txt");
    if std::env::var_os("TRIB_BLESS").is_some() {
        fs::write(&path, &sample).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(sample, committed, "{} differs; if that is meant, run again with TRIB_BLESS=1", path.display());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}
