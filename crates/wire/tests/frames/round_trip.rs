//! What is written is read back unchanged.

use proptest::prelude::*;
use trib_wire::header::HEADER_LEN;
use trib_wire::{Body, Header};

use crate::generate::{body, header};

proptest! {
    #[test]
    fn headers(header in header(), tag in any::<u64>()) {
        let mut bytes = [0; HEADER_LEN];
        header.emit(tag, &mut bytes);
        prop_assert_eq!(Header::parse(&bytes), Ok((header, tag)));
    }

    #[test]
    fn bodies((kind, body) in body()) {
        prop_assert_eq!(Body::parse(kind, &body.to_bytes()), Ok(body));
    }
}
