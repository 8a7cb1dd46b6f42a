//! What a job asks the fabric for, from the settings.

use std::time::Duration;

use trib_client::Params;

use crate::settings::{number, wish};

/// Fills in what the environment asks for; the rest is the fabric's to choose.
pub fn ask(params: &mut Params, has_streams: bool) {
    let ask = &mut params.ask;
    ask.osts = wish("SHARP_COLL_JOB_QUOTA_OSTS");
    ask.window = wish("SHARP_COLL_OSTS_PER_GROUP");
    ask.payload = wish("SHARP_COLL_JOB_QUOTA_PAYLOAD_PER_OST").or_else(|| wish("SHARP_COLL_MAX_PAYLOAD_SIZE"));
    ask.groups = wish("SHARP_COLL_JOB_QUOTA_MAX_GROUPS");
    ask.lease_operations = wish("SHARP_COLL_SAT_LOCK_BATCH_SIZE");
    // The setting names the shortest message of a stream, the quota the longest without.
    ask.stream_threshold = match has_streams {
        true => number("SHARP_COLL_SAT_THRESHOLD").map(|shortest| shortest.saturating_sub(1)),
        false => Some(NEVER),
    };
    // Elsewhere a group of each tree works for a communicator; here a lane does.
    ask.lanes = wish("SHARP_COLL_JOB_NUM_TREES").max(wish("SHARP_COLL_GROUPS_PER_COMM"));
    params.timeout = wish("SHARP_COLL_JOB_CREATE_TIMEOUT").map(|ms| Duration::from_millis(ms.into()));
}

/// What was asked for, in words; empty if nothing was.
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

/// No message is longer.
const NEVER: u64 = 1 << 40;
