//! What is written is read back unchanged.

use proptest::prelude::*;
use trib_wire::control::node::NodeMessage;
use trib_wire::header::HEADER_LEN;
use trib_wire::{Body, Header, JobId};

use crate::generate::{body, fault, header};

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

    #[test]
    fn faults_in_control_messages(fault in prop::option::of(fault()), why in any::<String>()) {
        let message = NodeMessage::Faulty { job: JobId(7), fault, why };
        let text = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(serde_json::from_str::<NodeMessage>(&text).unwrap(), message);
    }
}
