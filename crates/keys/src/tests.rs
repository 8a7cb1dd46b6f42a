//! Every key is another one, and is what the protocol says.

use alloc::format;
use alloc::vec::Vec;
use std::collections::BTreeSet;

use trib_wire::auth::FrameKey;
use trib_wire::hello::{Challenge, Hello, Status};
use trib_wire::{ChildIndex, Epoch, JobId, Mode, NodeId, Placement};

use crate::{EdgeKey, HelloKey, JobKey, NodeKey, Results, RootKey};

#[test]
fn every_job_node_candidate_child_placement_and_purpose_has_its_own_key() {
    let (mut seen, mut count) = (BTreeSet::new(), 0);
    let mut see = |key: &[u8]| {
        count += 1;
        assert!(seen.insert(key[..16].to_vec()), "a key that there was already");
    };
    let (once, other) = (Placement::FIRST.without(NodeId(1)), Placement::FIRST.without(NodeId(2)));
    let placements = [Placement::FIRST, once.clone(), once.without(NodeId(1)), other];
    for (secret, job) in [([1; 32], 1), ([1; 32], 256), ([2; 32], 1)] {
        let (secret, job) = (JobKey(secret), JobId(job));
        see(&secret.mark(job).0);
        for node in [0, 1, 256].map(NodeId) {
            let root = secret.root(job, node);
            see(&root.0);
            placements.iter().for_each(|placement| see(&root.hello(placement).0));
            for candidate in [0, 1, 15] {
                let own = secret.node(job, node, candidate);
                see(&own.0);
                placements.iter().for_each(|placement| see(&own.results(placement).0));
                for (child, below) in [(0, 0), (0, 1), (1, 0), (63, 15)] {
                    let edge = own.edge(ChildIndex(child), below);
                    see(&edge.0);
                    for placement in &placements {
                        let keys = edge.keys(placement);
                        see(&keys.up.0);
                        see(&keys.down.0);
                        see(&keys.hello.0);
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), count);
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The expected keys were computed apart from this code, with the HMAC of Python's library.
#[test]
fn keys_are_what_the_protocol_says() {
    let (secret, job, node) = (JobKey([7; 32]), JobId(1), NodeId(3));
    let placement = Placement::FIRST.without(node).without(node);
    let own = secret.node(job, node, 2);
    assert_eq!(own.0[..], bytes("992ceab093a7307dd20a6903fb9836fec6b3026522153bc6d19826566af7b2dd"));
    assert_eq!(own.results(&placement).0[..], bytes("bb3fe7b2a9ad343c91e0cda489b88ae7"));
    let root = secret.root(job, node);
    assert_eq!(root.0[..], bytes("b8a3c3a24cef43e2ca9bab3c57c868a11d454ae5055245f2e669c6e0704261e1"));
    let hello = root.hello(&placement);
    assert_eq!(hello.0[..], bytes("ef4de81ded4b36b82e288a2f139b319300ef31cc35c69cd9638477ee13ea227e"));
    assert_eq!(secret.mark(job).0[..], bytes("b80e5fc9020f6860afca8f09b9ba56bc"));
    let edge = own.edge(ChildIndex(4), 1);
    assert_eq!(edge.0[..], bytes("1910346f996116707d8465b4c762607d268303c052797165cead8a017614ea36"));
    let keys = edge.keys(&placement);
    assert_eq!(keys.up.0[..], bytes("f7d49b4186679138f95aff930134ae37"));
    assert_eq!(keys.down.0[..], bytes("515d93a098c23017d95f7a987dc622d3"));
    assert_eq!(keys.hello.0[..], bytes("f4de6a4424cbe5d135037c52a0ff6e05ca04915fab793cffc008a2c67b36e896"));
    let (hello, challenge) = said();
    let sealed = keys.hello.seal(&hello, &challenge, &FrameKey([5; 16]));
    assert_eq!(sealed[..], bytes("2698e00eea6437d393a2c17b891cc855"));
}

fn said() -> (Hello, Challenge) {
    let hello = Hello {
        job: JobId(1),
        epoch: Epoch(1),
        node: NodeId(3),
        child: ChildIndex(4),
        channel: 0,
        mode: Mode::Checked,
        udp_port: 9,
        nonce: [9; 16],
        placement: Placement::FIRST,
    };
    (hello, Challenge { status: Status::Accepted, epoch: Epoch(1), udp_port: 9, nonce: [8; 16] })
}

#[test]
fn what_is_sealed_opens_in_the_same_handshake_only() {
    let (key, (hello, challenge), results) = (HelloKey([1; 32]), said(), FrameKey([5; 16]));
    let sealed = key.seal(&hello, &challenge, &results);
    assert!(key.open(&hello, &challenge, &sealed) == results);
    assert!(HelloKey([2; 32]).open(&hello, &challenge, &sealed) != results);
    assert!(key.open(&Hello { nonce: [1; 16], ..hello.clone() }, &challenge, &sealed) != results);
    assert!(key.open(&hello, &Challenge { nonce: [1; 16], ..challenge }, &sealed) != results);
}

#[test]
fn no_key_is_shown() {
    let edge = EdgeKey([1; 32]);
    let keys = edge.keys(&Placement::FIRST);
    let shown = format!("{:?} {:?} {edge:?} {keys:?} {:?}", JobKey([1; 32]), NodeKey([1; 32]), RootKey([1; 32]));
    assert_eq!(shown, "JobKey(..) NodeKey(..) EdgeKey(..) EdgeKeys(..) RootKey(..)");
    assert_eq!(format!("{:?} {:?}", keys.hello, JobKey([1; 32]).mark(JobId(1))), "HelloKey(..) JobMark(..)");
}

#[test]
fn each_connection_mode_and_hosting_has_keys_of_its_own() {
    let (key, (hello, challenge)) = (HelloKey([1; 32]), said());
    assert!(key.session(&hello, &challenge).is_none(), "checked needs none");
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for mode in [Mode::Signed, Mode::Encrypted] {
        for nonces in [([9; 16], [8; 16]), ([8; 16], [9; 16]), ([9; 16], [9; 16])] {
            let hello = Hello { mode, nonce: nonces.0, ..hello.clone() };
            let session = key.session(&hello, &Challenge { nonce: nonces.1, ..challenge }).unwrap();
            let payloads = [session.data_up, session.bodies_up, session.bodies_down];
            let phases = payloads.iter().flat_map(|key| [0, 1, 2].map(|phase| key.phase(phase)));
            for key in phases.chain([session.up.0, session.down.0]) {
                count += 1;
                seen.insert(key);
            }
        }
        for (placement, drawn) in [(Placement::FIRST, [1; 16]), (Placement::FIRST, [2; 16])] {
            let node = JobKey([7; 32]).node(JobId(1), NodeId(3), 0);
            let results = Results::of(&node.fresh_results(&placement, &drawn), mode);
            for key in [results.tags.0, results.data.unwrap().phase(0)] {
                count += 1;
                seen.insert(key);
            }
        }
    }
    assert_eq!(seen.len(), count);
    let key = FrameKey([5; 16]);
    let checked = Results::of(&key, Mode::Checked);
    assert!(checked.tags == key && checked.data.is_none());
}

/// The expected keys were computed apart from this code, with the HMAC of Python's library.
#[test]
fn the_keys_of_a_connection_are_what_the_protocol_says() {
    let (hello, challenge) = said();
    let hello = Hello { mode: Mode::Encrypted, ..hello };
    let session = HelloKey([1; 32]).session(&hello, &challenge).unwrap();
    assert_eq!(session.up.0[..], bytes("55b407451ca566f2db398b2ddcb1b422"));
    assert_eq!(session.data_up.phase(1)[..], bytes("12b0e47d5ff69cf621fb5f7abf686497"));
    let node = JobKey([7; 32]).node(JobId(1), NodeId(3), 2);
    let results = Results::of(&node.fresh_results(&Placement::FIRST, &[6; 16]), Mode::Signed);
    assert_eq!(results.tags.0[..], bytes("464e6ca5e3217ef9834e9f527ec97bfa"));
    assert_eq!(results.data.unwrap().phase(0)[..], bytes("be917d540ec703c5b6032c346de74ab8"));
}
