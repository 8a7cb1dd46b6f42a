//! The request that a scraper of metrics sends.
//!
//! Asserted: a prefix either waits for more or has the answer of the whole; a path that is accepted
//! is printable and has no question mark; a head that is complete or too long is answered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::memory;

// The module is private to `trib_service`, with which the daemons would come.
#[path = "../../crates/service/src/metrics/request.rs"]
mod request;

fuzz_target!(|bytes: &[u8]| {
    let whole = memory::within(64 + bytes.len(), || request::parse(bytes));
    if let Ok(Some(request)) = &whole {
        assert!(request.path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?'));
    }
    if let Err(fault) = whole {
        assert!(fault.status().starts_with(['4', '5']));
    }
    assert!(whole != Ok(None) || bytes.len() < request::HEAD_MAX);
    for end in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let part = request::parse(&bytes[..end]);
        assert!(part == Ok(None) || part == whole, "{part:?} of {end} bytes, {whole:?} of all");
    }
});
