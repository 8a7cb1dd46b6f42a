//! How control messages become JSON and come back. This is compiled here, once for each message:
//! else every crate that sends or receives one would have a parser of its own.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::hello::Hello;
use crate::job::JobTicket;
use crate::node::{ManagerMessage, NodeMessage};
use crate::reply::Reply;
use crate::request::Request;

/// A control message.
pub trait Message: Sized {
    /// Appends its JSON.
    fn write(&self, json: &mut Vec<u8>);

    /// The message that this JSON is, or why it is none.
    fn read(json: &[u8]) -> Result<Self, String>;
}

macro_rules! messages {
    ($($message:ty),*) => {$(
        impl Message for $message {
            #[inline(never)]
            fn write(&self, json: &mut Vec<u8>) {
                serde_json::to_writer(json, self).expect("control messages have text keys and write to memory");
            }

            #[inline(never)]
            fn read(json: &[u8]) -> Result<Self, String> {
                serde_json::from_slice(json).map_err(|cause| cause.to_string())
            }
        }
    )*};
}

messages!(Hello, Request, Reply, NodeMessage, ManagerMessage, JobTicket);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::Role;

    #[test]
    fn a_message_comes_back_and_what_is_none_does_not() {
        let hello = Hello { version: 7, software: "of the tests".to_string(), role: Role::Node };
        let mut json = Vec::new();
        hello.write(&mut json);
        assert_eq!(Hello::read(&json), Ok(hello));
        for other in [&b"{"[..], b"\xff\xfe", b"1 1", &json[1..]] {
            assert!(Hello::read(other).is_err());
        }
    }
}
