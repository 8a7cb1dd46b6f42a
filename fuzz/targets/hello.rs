//! The messages that open a stream: the first byte says which one is expected.
//!
//! Asserted: what is accepted is written back to the same message; the length that a Hello
//! announces is the length that its parser wants; nothing takes more memory than its bytes justify.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::memory;
use trib_wire::hello::{self, Challenge, Hello, Proof, Welcome};
use trib_wire::offer::Offer;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let _ = hello::version_of(bytes);
    memory::within(1024 + 16 * bytes.len(), || match which % 6 {
        0 => hello(bytes),
        1 => fixed(bytes, Challenge::parse, |challenge| challenge.to_bytes()),
        2 => fixed(bytes, Proof::parse, |proof| proof.to_bytes()),
        3 => fixed(bytes, Welcome::parse, |welcome| welcome.to_bytes()),
        4 => placement(bytes),
        _ => offer(bytes),
    });
});

fn hello(bytes: &[u8]) {
    let Ok(hello) = Hello::parse(bytes) else { return };
    let head = bytes.first_chunk().expect("a Hello is longer");
    assert_eq!(Hello::len_of(head), Ok(bytes.len()));
    assert_eq!(Hello::parse(&hello.to_bytes()), Ok(hello));
}

/// A message of fixed length.
fn fixed<const LEN: usize, T: PartialEq + std::fmt::Debug, E: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    parse: impl Fn(&[u8; LEN]) -> Result<T, E>,
    write: impl Fn(&T) -> [u8; LEN],
) {
    let Some(bytes) = bytes.first_chunk() else { return };
    if let Ok(message) = parse(bytes) {
        assert_eq!(parse(&write(&message)), Ok(message));
    }
}

fn placement(bytes: &[u8]) {
    let Ok(placement) = hello::parse_placement(bytes) else { return };
    assert_eq!(hello::placement_entries_len([bytes[0], bytes[1]]), bytes.len() - 2);
    assert_eq!(hello::parse_placement(&hello::placement_to_bytes(&placement)), Ok(placement));
}

fn offer(bytes: &[u8]) {
    let Ok(offer) = Offer::parse(bytes) else { return };
    let head = bytes.first_chunk().expect("an offer is longer");
    assert_eq!(Offer::len_of(head), Ok(bytes.len()));
    assert_eq!(offer.to_bytes(), bytes);
}
