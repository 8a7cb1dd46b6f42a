//! The fixed header and its short form.
//!
//! Asserted: what is accepted is written back to the same bytes, seals too; a piece and its payload
//! lie inside a vector and below the limits; a short header stands for one header, and its short
//! form is found again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::memory;
use trib_wire::auth::check_payload;
use trib_wire::header::{HEADER_LEN, NUMBER_MAX, PAYLOAD_MAX};
use trib_wire::mode::{SEAL_LEN, SEALS_MAX};
use trib_wire::short::{SHORT_LEN, ShortHeader};
use trib_wire::{Header, Seal, Way};

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, tag)) = memory::within(0, || Header::parse(bytes)) else { return };
    let mut written = [0; HEADER_LEN];
    header.emit(tag, &mut written);
    assert_eq!(written, bytes[..HEADER_LEN]);
    check(&header);
    let _ = check_payload(&header, &bytes[HEADER_LEN..]);
    let _ = header.to_string();
    if let Ok(seal) = memory::within(0, || Seal::parse(&bytes[HEADER_LEN..])) {
        assert_eq!(seal.to_bytes()[..], bytes[HEADER_LEN..HEADER_LEN + SEAL_LEN]);
        assert!(seal.number <= SEALS_MAX);
    }
    if let Ok((short, _)) = ShortHeader::parse(&bytes[HEADER_LEN..]) {
        assert!(ShortHeader::begins(&bytes[HEADER_LEN..HEADER_LEN + SHORT_LEN]));
        if let Ok(next) = short.expand(&header) {
            assert!(header.kind.carries_data());
            assert_eq!(next.seq, header.seq + 1);
            assert!(next.first.checked_add(u64::from(next.elements)).is_some());
            let found = ShortHeader::between(&header, &next).expect("it was just expanded");
            assert_eq!(found.expand(&header), Ok(next));
        }
    }
});

/// What everybody who gets a parsed header relies on.
fn check(header: &Header) {
    assert!(header.payload_len as usize <= PAYLOAD_MAX);
    assert!(header.seq.max(header.op_seq) <= NUMBER_MAX);
    if !header.kind.carries_data() {
        return;
    }
    let layout = header.signature.layout();
    let start = header.first + u64::from(header.skip);
    let ways = Way::of(header.kind);
    let runs = ways.iter().filter_map(|way| layout.run(start, header.payload_len.into(), *way));
    assert!(runs.into_iter().any(|run| run.end <= header.piece().end));
    assert!(layout.most(&header.piece()) <= PAYLOAD_MAX as u64);
}
