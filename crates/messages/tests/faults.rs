//! A fault means the same in a control message as in a frame: what is written is read back
//! unchanged, and nothing else is taken for one.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use trib_messages::node::NodeMessage;
use trib_wire::{Collective, DataType, Fault, JobId, NodeId, Rank, Reason, ReduceOp, Signature, WireFormat};

/// A fault as it stands in a control message.
fn written_fault() -> serde_json::Value {
    let dtype = "int64:int32";
    let signature =
        json!({"collective": "reduce", "dtype": dtype, "op": "maxloc", "format": "plain", "root": 3, "count": 9});
    json!({"reason": "mismatch", "node": 2, "rank_a": 3, "rank_b": 4, "signatures": [signature, signature]})
}

#[test]
fn a_fault_in_a_control_message_has_every_field_in_its_range_or_is_none() {
    let told = serde_json::from_value::<Fault>(written_fault()).unwrap().to_string();
    let words = "rank 3 called reduce of 9 int64:int32 (maxloc) to rank 3 of the group";
    assert!(told.contains(words), "{told}");
    let unsigned = json!({"reason": "node_dead", "node": 65535, "rank_a": 0, "rank_b": 4_294_967_295_u32});
    assert!(serde_json::from_value::<Fault>(unsigned).is_ok());
    let wrong = [
        ("/reason", json!("boredom")),
        ("/reason", json!(4)),
        ("/node", json!(65536)),
        ("/node", json!(-1)),
        ("/node", json!(1.5)),
        ("/rank_a", json!(4_294_967_296_u64)),
        ("/rank_b", json!("3")),
        ("/signatures", json!([])),
        ("/signatures/0", json!("reduce")),
        ("/signatures/1/collective", json!("alltoall")),
        ("/signatures/1/dtype", json!("int64:float32")),
        ("/signatures/1/dtype", json!("int63")),
        ("/signatures/1/op", json!("average")),
        ("/signatures/0/format", json!("quantised")),
        ("/signatures/0/root", json!(null)),
        ("/signatures/0/count", json!(1e30)),
    ];
    for (at, value) in wrong {
        let mut fault = written_fault();
        *fault.pointer_mut(at).unwrap() = value.clone();
        assert!(serde_json::from_value::<Fault>(fault).is_err(), "{at} as {value}");
    }
    let mut older = written_fault();
    older.pointer_mut("/signatures/0").and_then(|own| own.as_object_mut()).unwrap().remove("format");
    let read = |fault: serde_json::Value| serde_json::from_value::<Fault>(fault).unwrap();
    assert_eq!(read(older), read(written_fault()), "a message that names no format");
    for missing in ["reason", "node", "rank_a", "rank_b"] {
        let mut fault = written_fault();
        fault.as_object_mut().unwrap().remove(missing);
        assert!(serde_json::from_value::<Fault>(fault).is_err(), "without {missing}");
    }
}

fn signature() -> impl Strategy<Value = Signature> {
    (select(Collective::ALL), select(DataType::ALL), select(ReduceOp::ALL), any::<u32>(), any::<u64>()).prop_map(
        |(collective, dtype, op, root, count)| Signature {
            collective,
            dtype,
            op,
            format: WireFormat::Plain,
            root,
            count,
        },
    )
}

prop_compose! {
    fn fault()(
        reason in select(Reason::ALL),
        (node, rank_a, rank_b) in any::<(u16, u32, u32)>(),
        signatures in prop::option::of((signature(), signature())),
    ) -> Fault {
        Fault { reason, node: NodeId(node), rank_a: Rank(rank_a), rank_b: Rank(rank_b), signatures }
    }
}

proptest! {
    #[test]
    fn a_fault_is_read_as_it_was_written(fault in prop::option::of(fault()), why in any::<String>()) {
        let message = NodeMessage::Faulty { job: JobId(7), fault, why };
        let text = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(serde_json::from_str::<NodeMessage>(&text).unwrap(), message);
    }
}
