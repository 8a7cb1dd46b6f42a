//! Every field has the offset that the picture in `header` (docs/protocol.md#2.2) shows, and there
//! is nothing at any other offset.

use trib_wire::header::{HEADER_LEN, TAG_OFFSET};
use trib_wire::{
    ChildIndex, Collective, DataType, Epoch, Generation, GroupIndex, Header, JobId, Kind, NodeId, ReduceOp, Signature,
    VERSION, WireFormat,
};

const FIELDS: &[(&str, usize, &[u8])] = &[
    ("magic", 0, &[0x54, 0x72]),
    ("version", 2, &[VERSION]),
    ("kind", 3, &[2]),
    ("job", 4, &[1, 2, 3, 4]),
    ("epoch", 8, &[5, 6, 7, 8]),
    ("node", 12, &[9, 10]),
    ("child", 14, &[11, 0]),
    ("group", 16, &[13, 14, 15, 16]),
    ("generation", 20, &[17, 18, 19, 20]),
    ("flags", 24, &[21, 22]),
    ("lane", 26, &[23, 24]),
    ("collective", 28, &[4]),
    ("dtype", 29, &[9]),
    ("op", 30, &[7]),
    ("wire format", 31, &[0]),
    ("root", 32, &[25, 26, 27, 28]),
    ("witness", 36, &[29, 30, 31, 32]),
    ("count", 40, &[33, 34, 35, 36, 37, 38, 39, 40]),
    ("op_seq", 48, &[41, 42, 43, 44, 45, 46, 47, 48]),
    ("seq", 56, &[49, 50, 51, 52, 53, 54, 55, 56]),
    ("first", 64, &[57, 58, 59, 60, 61, 62, 63, 64]),
    ("elements", 72, &[65, 66, 1, 0]),
    ("skip", 76, &[67, 68, 0, 0]),
    ("payload length", 80, &[70, 70, 0, 0]),
    ("payload crc", 84, &[71, 72, 73, 74]),
    ("mark", 88, &[75, 76, 77, 78, 79, 80, 81, 82]),
    ("tag", 96, &[83, 84, 85, 86, 87, 88, 89, 90]),
];

fn header() -> Header {
    Header {
        group: GroupIndex(0x100f_0e0d),
        generation: Generation(0x1413_1211),
        flags: 0x1615,
        lane: 0x1817,
        signature: Signature {
            collective: Collective::ReduceScatter,
            dtype: DataType::BF16,
            op: ReduceOp::BitOr,
            format: WireFormat::Plain,
            root: 0x1c1b_1a19,
            count: 0x2827_2625_2423_2221,
        },
        witness: 0x201f_1e1d,
        op_seq: 0x302f_2e2d_2c2b_2a29,
        seq: 0x3837_3635_3433_3231,
        first: 0x403f_3e3d_3c3b_3a39,
        elements: 0x0001_4241,
        skip: 0x4443,
        payload_len: 0x4646,
        payload_crc: 0x4a49_4847,
        mark: 0x5251_504f_4e4d_4c4b,
        ..Header::new(Kind::Result, JobId(0x0403_0201), Epoch(0x0807_0605), NodeId(0x0a09), ChildIndex(11))
    }
}

#[test]
fn fields_stand_where_the_picture_says() {
    let mut bytes = [0xee; HEADER_LEN];
    header().emit(0x5a59_5857_5655_5453, &mut bytes);
    let mut at = 0;
    for (name, offset, expected) in FIELDS {
        assert_eq!(at, *offset, "{name} follows the field before it without a gap");
        assert_eq!(&bytes[at..at + expected.len()], *expected, "{name}");
        assert!(offset.is_multiple_of(expected.len()), "{name} can be read with one load");
        at += expected.len();
    }
    assert_eq!(at, HEADER_LEN);
    assert_eq!(FIELDS.last().map(|f| f.1), Some(TAG_OFFSET));
    assert_eq!(Header::parse(&bytes), Ok((header(), 0x5a59_5857_5655_5453)));
}
