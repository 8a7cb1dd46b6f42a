//! Whatever comes off the network is either a frame or an error, never a panic and never a guess.

use proptest::prelude::*;
use proptest::sample::select;
use trib_wire::auth::check_payload;
use trib_wire::body::LATE_MAX;
use trib_wire::header::{FLAG_CRC, HEADER_LEN, PAYLOAD_MAX};
use trib_wire::mode::SEAL_LEN;
use trib_wire::{Body, DataType, Header, Kind, ParseError, RankList, Seal, Signature, Way, WireFormat};

use crate::generate::{body, header};

/// Asks a parsed list for everything that a node asks before and after it has checked the list.
fn interrogate(list: &RankList) {
    let _ = (list.len(), list.nth(0), list.nth(u32::MAX), list.is_valid(1000), list.to_string());
    let _ = list.contains(trib_wire::Rank(7));
    if list.is_valid(1000) {
        assert_eq!(list.iter().count(), list.len() as usize);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_no_header_or_a_header(mut bytes in prop::collection::vec(any::<u8>(), 0..2 * HEADER_LEN)) {
        let _ = Header::parse(&bytes);
        // With the first fields right, the parser reaches the others too.
        if bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&[0x54, 0x72, trib_wire::VERSION, 1]);
            if let Ok((header, _)) = Header::parse(&bytes) {
                let layout = header.signature.layout();
                let start = header.first + u64::from(header.skip);
                let payload = layout.run(start, header.payload_len.into(), Way::FromRank);
                prop_assert!(payload.is_some_and(|payload| payload.end <= header.piece().end), "{:?}", header);
                prop_assert!(layout.most(&header.piece()) <= PAYLOAD_MAX as u64, "{:?}", header);
                let _ = check_payload(&header, &bytes[HEADER_LEN..]);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_seal_or_a_seal(bytes in prop::collection::vec(any::<u8>(), 0..2 * SEAL_LEN)) {
        match Seal::parse(&bytes) {
            Ok(seal) => prop_assert_eq!(&seal.to_bytes()[..], &bytes[..SEAL_LEN]),
            Err(error) => prop_assert!(bytes.len() < SEAL_LEN || error == ParseError::BadField("seal")),
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_body_or_a_body(
        kind in select(Kind::ALL),
        bytes in prop::collection::vec(prop_oneof![3 => 0u8..8, 1 => any::<u8>()], 0..160),
    ) {
        let Ok(body) = Body::parse(kind, &bytes) else { return Ok(()) };
        prop_assert_eq!(Body::parse(kind, &body.to_bytes()), Ok(body.clone()));
        match body {
            Body::Join { key, nodes, .. } => {
                interrogate(&key.members);
                interrogate(&nodes);
            }
            Body::Ready(key, _) | Body::Refused(key, _) | Body::Ask(key) => interrogate(&key.members),
            Body::Lost(ranks) => interrogate(&ranks),
            Body::Late(late) => interrogate(&late.ranks),
            Body::GroupError(fault) => drop(fault.to_string()),
            _ => {}
        }
    }

    #[test]
    fn no_prefix_of_a_body_and_nothing_longer_passes_for_it((kind, body) in body()) {
        let mut bytes = body.to_bytes();
        for len in 0..bytes.len() {
            prop_assert!(Body::parse(kind, &bytes[..len]).is_err(), "{} of {} bytes", len, bytes.len());
        }
        bytes.push(0);
        prop_assert_eq!(Body::parse(kind, &bytes), Err(ParseError::TrailingBytes));
    }

    #[test]
    fn a_piece_is_accepted_exactly_if_it_is_one(
        header in header(),
        kind in select(&[Kind::Contribution, Kind::Result, Kind::Credit]),
        dtype in select(DataType::ALL),
        first in prop_oneof![any::<u64>(), (0u64..1 << 22).prop_map(|below| u64::MAX - below)],
        numbers in prop::array::uniform3(prop_oneof![0u32..64, 0u32..1 << 21, any::<u32>()]),
    ) {
        let [elements, skip, payload_len] = numbers;
        let signature = Signature { dtype, ..header.signature };
        let header = Header { kind, signature, first, elements, skip, payload_len, ..header };
        let mut bytes = [0; HEADER_LEN];
        header.emit(0, &mut bytes);
        let size = signature.element_size() as u128;
        let [wide, before, payload] = numbers.map(u128::from);
        let is_one = u128::from(first) + wide <= u128::from(u64::MAX)
            && wide * size <= PAYLOAD_MAX as u128
            && payload % size == 0
            && before + payload / size <= wide;
        let accepted = payload <= PAYLOAD_MAX as u128 && (is_one || kind == Kind::Credit);
        prop_assert_eq!(Header::parse(&bytes).is_ok(), accepted, "{:?}", header);
    }

    #[test]
    fn no_prefix_of_a_header_passes_for_it(header in header()) {
        let mut bytes = [0; HEADER_LEN];
        header.emit(0, &mut bytes);
        for len in 0..HEADER_LEN {
            prop_assert_eq!(Header::parse(&bytes[..len]), Err(ParseError::Truncated));
        }
    }
}

#[test]
fn runs_that_are_no_runs_are_refused() {
    let wrong = Err(ParseError::BadField("rank runs"));
    let ask = |runs: &[[u32; 3]]| {
        let words = runs.iter().flatten().flat_map(|word| word.to_le_bytes());
        let count = (runs.len() as u32).to_le_bytes();
        let bytes: Vec<u8> = [0; 12].into_iter().chain(count).chain(words).collect();
        Body::parse(Kind::Ask, &bytes)
    };
    assert!(ask(&[[0, 1, 1]]).is_ok());
    assert_eq!(ask(&[[0, 0, 1], [0, 1, 1]]), wrong, "a run of nobody");
    assert_eq!(ask(&[[0, 2, 0]]), wrong, "a run that stands still");
    assert_eq!(ask(&[[0, u32::MAX, 1]]), wrong, "more ranks than any job has");
    assert_eq!(ask(&[[0, 1 << 20, 1], [0, 1, 1]]), wrong, "more ranks than any job has, in pieces");
}

#[test]
fn no_more_ranks_are_late_than_a_node_has_room_for() {
    let late = |count: u32| {
        let words = [1500, 1, 3, count, 1];
        Body::parse(Kind::Late, &words.map(u32::to_le_bytes).concat()).map(|_| ())
    };
    assert_eq!(late(LATE_MAX), Ok(()));
    assert_eq!(late(LATE_MAX + 1), Err(ParseError::BadField("late ranks")));
}

#[test]
fn the_number_of_runs_is_believed_only_as_far_as_the_bytes_go() {
    let mut bytes = [0; 28];
    bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Body::parse(Kind::Ask, &bytes), Err(ParseError::BadField("rank runs")));
    bytes[12..16].copy_from_slice(&2u32.to_le_bytes());
    assert_eq!(Body::parse(Kind::Ask, &bytes), Err(ParseError::BadField("rank runs")));
}

#[test]
fn payloads_are_measured_and_summed() {
    let payload = [1, 2, 3, 4];
    let mut header = Header::new(
        Kind::Contribution,
        trib_wire::JobId(1),
        trib_wire::Epoch(1),
        trib_wire::NodeId(0),
        trib_wire::ChildIndex(0),
    );
    header.payload_len = 4;
    assert_eq!(check_payload(&header, &payload), Ok(()), "without the flag there is no checksum");
    header.flags = FLAG_CRC;
    assert_eq!(check_payload(&header, &payload), Err(ParseError::BadChecksum));
    header.payload_crc = trib_wire::auth::payload_crc(&payload);
    assert_eq!(check_payload(&header, &payload), Ok(()));
    assert_eq!(check_payload(&header, &payload[..3]), Err(ParseError::Truncated));
    assert_eq!(check_payload(&header, &[1, 2, 3, 4, 5]), Err(ParseError::TrailingBytes));
}

#[test]
fn a_signature_in_a_body_names_a_known_format() {
    let mut bytes = [0; 48];
    bytes[0] = 6;
    bytes[12] = 1;
    let with = |format: u8| {
        let mut body = bytes;
        body[19] = format;
        Body::parse(Kind::GroupError, &body).map(|_| ())
    };
    let unknown = WireFormat::ALL.len() as u8;
    assert_eq!((with(0), with(unknown - 1)), (Ok(()), Ok(())));
    assert_eq!(with(unknown), Err(ParseError::BadField("wire format")));
}

#[test]
fn values_outside_their_range_are_named() {
    let header = Header::new(
        Kind::Contribution,
        trib_wire::JobId(1),
        trib_wire::Epoch(1),
        trib_wire::NodeId(0),
        trib_wire::ChildIndex(0),
    );
    let mut good = [0; HEADER_LEN];
    header.emit(0, &mut good);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good;
        bytes[at..at + value.len()].copy_from_slice(value);
        Header::parse(&bytes).map(|_| ())
    };
    assert_eq!(with(0, &[0]), Err(ParseError::BadMagic));
    assert_eq!(with(2, &[9]), Err(ParseError::BadVersion(9)));
    assert_eq!(with(3, &[0]), Err(ParseError::BadField("kind")));
    assert_eq!(with(14, &[64, 0]), Err(ParseError::BadField("child")));
    assert_eq!(with(28, &[6]), Err(ParseError::BadField("collective")));
    assert_eq!(with(29, &[12]), Err(ParseError::BadField("dtype")));
    assert_eq!(with(29, &[0x25]), Ok(()), "a value with its index");
    assert_eq!(with(29, &[0x55]), Err(ParseError::BadField("dtype")), "an index that is no integer");
    assert_eq!(with(29, &[0xd0]), Err(ParseError::BadField("dtype")), "an index of no type");
    assert_eq!(with(30, &[12]), Err(ParseError::BadField("op")));
    assert_eq!(with(31, &[WireFormat::ALL.len() as u8]), Err(ParseError::BadField("wire format")));
    assert_eq!(with(48, &[0xff; 8]), Err(ParseError::BadField("seq")), "an operation that no group gets to");
    assert_eq!(with(56, &[0xff; 8]), Err(ParseError::BadField("seq")), "a piece that no group gets to");
    assert_eq!(with(80, &[0, 0, 0x11, 0]), Err(ParseError::BadField("payload length")));
    assert_eq!(with(64, &[0xff; 9]), Err(ParseError::BadField("first")), "a piece that wraps");
    assert_eq!(with(72, &[0, 0, 0x11, 0]), Err(ParseError::BadField("elements")), "a piece too long");
    assert_eq!(with(76, &[1]), Err(ParseError::BadField("skip")), "a payload behind its piece");
    assert_eq!(with(80, &[1]), Err(ParseError::BadField("payload length")), "a payload outside its piece");
    // Pieces of two float32.
    good[29] = 4;
    good[72] = 2;
    let carrying = |skip: u8, bytes: u8| {
        let mut piece = good;
        (piece[76], piece[80]) = (skip, bytes);
        Header::parse(&piece).map(|_| ())
    };
    assert_eq!(carrying(1, 4), Ok(()));
    assert_eq!(carrying(0, 6), Err(ParseError::BadField("payload length")), "half an element");
    assert_eq!(carrying(1, 8), Err(ParseError::BadField("payload length")), "an element beyond the piece");
}
