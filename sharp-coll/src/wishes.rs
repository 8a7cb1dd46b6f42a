//! What a job asks of the fabric, as the settings say.

use std::time::Duration;

use trib_client::Params;

use crate::settings::{number, wish};

/// Fills in what the environment asks for and leaves the rest to the fabric. An impossible setting
/// becomes an objection.
pub fn ask(params: &mut Params, has_streams: bool) {
    let names = [
        ("osts", "SHARP_COLL_JOB_QUOTA_OSTS"),
        ("window", "SHARP_COLL_OSTS_PER_GROUP"),
        ("payload", "SHARP_COLL_JOB_QUOTA_PAYLOAD_PER_OST"),
        ("payload", "SHARP_COLL_MAX_PAYLOAD_SIZE"),
        ("groups", "SHARP_COLL_JOB_QUOTA_MAX_GROUPS"),
        ("lease_operations", "SHARP_COLL_SAT_LOCK_BATCH_SIZE"),
    ];
    let wishes = names.map(|(field, variable)| (field, variable, wish(variable)));
    // In other libraries a communicator uses a group of each tree; here a lane does this.
    let lanes = ["SHARP_COLL_JOB_NUM_TREES", "SHARP_COLL_GROUPS_PER_COMM"].map(|name| ("lanes", name, wish(name)));
    let lanes = lanes.into_iter().max_by_key(|(.., number)| *number);
    for (field, variable, number) in wishes.into_iter().chain(lanes) {
        let asked = number.map_or(Ok(()), |number| params.ask_for(&format!("{field}={number}"), variable));
        if let Err(objection) = asked {
            params.object(objection);
        }
    }
    // The setting is the shortest message that is streamed, the quota's field the longest that is
    // not.
    params.ask.stream_threshold = match has_streams {
        true => number("SHARP_COLL_SAT_THRESHOLD").map(|shortest| shortest.saturating_sub(1)),
        false => Some(NEVER),
    };
    params.timeout = wish("SHARP_COLL_JOB_CREATE_TIMEOUT").map(Duration::from_millis);
}

/// Describes in words what was asked for; empty if nothing was.
pub fn told(params: &Params) -> String {
    let ask = &params.ask;
    let numbers = [
        ("operations by datagram", ask.osts),
        ("of one group", ask.window),
        ("bytes of one", ask.payload),
        ("groups", ask.groups),
        ("streaming operations of a lease", ask.lease_operations),
        ("lanes", ask.lanes),
    ];
    let words: Vec<String> =
        numbers.iter().filter_map(|(name, asked)| asked.map(|asked| format!("{name} {asked}"))).collect();
    words.join(", ")
}

/// A length that no message exceeds.
const NEVER: u64 = 1 << 40;
