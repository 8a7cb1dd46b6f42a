//! Control messages: the first byte says which one is expected, JSON follows.
//!
//! Asserted: what is accepted comes back the same from its own JSON; reading takes memory in
//! proportion to the JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::memory;
use trib_messages::Message;
use trib_messages::hello::Hello;
use trib_messages::job::JobTicket;
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::Reply;
use trib_messages::request::Request;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, json)) = bytes.split_first() else { return };
    match which % 6 {
        0 => check::<Request>(json),
        1 => check::<Reply>(json),
        2 => check::<NodeMessage>(json),
        3 => check::<ManagerMessage>(json),
        4 => check::<JobTicket>(json),
        _ => check::<Hello>(json),
    }
});

fn check<M: Message + PartialEq + std::fmt::Debug>(json: &[u8]) {
    let Ok(message) = memory::within(BASE + FACTOR * json.len(), || M::read(json)) else { return };
    let mut written = Vec::new();
    message.write(&mut written);
    assert_eq!(M::read(&written), Ok(message));
}

/// A list of structures begins with room for some of them, whatever it will have.
const BASE: usize = 64 << 10;
/// The shortest element, `{}` and a comma, may stand for a structure of some hundred bytes, and a
/// list may have grown to twice what it holds.
const FACTOR: usize = 512;
