//! What a rank says of its NUMA domain is a number or nothing, and a release that does not say it
//! is understood.

use proptest::prelude::*;
use serde_json::{Value, json};
use trib_messages::Message;
use trib_messages::request::{AttachRequest, JobRequest, Request};

fn job() -> Value {
    json!({"hosts": ["a", "a", "b"], "domains": [0, null, 65535], "ask": {}, "name": "p", "user": "u"})
}

fn rank() -> Value {
    json!({"rendezvous": "r", "rank": 0, "size": 1, "host": "a", "domain": 3, "ask": {}, "name": "p", "user": "u"})
}

/// The object without that field.
fn without(mut object: Value, field: &str) -> Value {
    object.as_object_mut().unwrap().remove(field).unwrap();
    object
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

#[test]
fn a_domain_is_a_number_of_16_bits_or_none() {
    assert_eq!(read::<JobRequest>(job()).unwrap().domains, [Some(0), None, Some(65_535)]);
    assert_eq!(read::<AttachRequest>(rank()).unwrap().domain, Some(3));
    for wrong in [json!(65536), json!(-1), json!(1.5), json!("1"), json!([1]), json!({}), json!(true)] {
        let job = json!({"domains": [0, wrong], "hosts": [], "ask": {}, "name": "", "user": ""});
        assert_eq!(read::<JobRequest>(job), None, "{wrong}");
        let mut rank = rank();
        rank["domain"] = wrong.clone();
        assert_eq!(read::<AttachRequest>(rank), None, "{wrong}");
    }
    for wrong in [Value::Null, json!(0), json!("0"), json!({"0": 1})] {
        let mut job = job();
        job["domains"] = wrong.clone();
        assert_eq!(read::<JobRequest>(job), None, "{wrong}");
    }
}

#[test]
fn who_says_nothing_of_domains_has_none() {
    assert!(read::<JobRequest>(without(job(), "domains")).unwrap().domains.is_empty());
    assert_eq!(read::<AttachRequest>(without(rank(), "domain")).unwrap().domain, None);
}

proptest! {
    #[test]
    fn domains_are_read_as_they_were_written(
        domains in prop::collection::vec(any::<Option<u16>>(), 0..20),
        domain in any::<Option<u16>>(),
    ) {
        let job = JobRequest { domains, ..read(job()).unwrap() };
        let rank = AttachRequest { domain, ..read(rank()).unwrap() };
        for request in [Request::RequestJob(job), Request::Attach(rank)] {
            let mut json = Vec::new();
            request.write(&mut json);
            prop_assert_eq!(Request::read(&json), Ok(request));
        }
    }
}
