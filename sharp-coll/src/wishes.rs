//! What a job asks of the fabric, as the settings say.

use std::time::Duration;

use trib_client::Params;

use crate::settings::{number, value, wish};

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
    bound_window(params, value("TRIB_QUOTA").as_deref());
    // The setting is the shortest message that is streamed, the quota's field the longest that is
    // not.
    params.ask.stream_threshold = match has_streams {
        true => number("SHARP_COLL_SAT_THRESHOLD").map(|shortest| shortest.saturating_sub(1)),
        false => Some(NEVER),
    };
    params.timeout = wish("SHARP_COLL_JOB_CREATE_TIMEOUT").map(Duration::from_millis);
}

/// Lets a group have no more operations under way than the job asks for, if nothing says how many
/// it has: a fabric refuses a job whose groups have more.
fn bound_window(params: &mut Params, quota: Option<&str>) {
    let Some(osts) = params.ask.osts.filter(|osts| *osts < WINDOW) else { return };
    // It may say so itself. What is wrong with it all ranks hear when they join.
    let _ = quota.map_or(Ok(()), |quota| params.ask_for(quota, "TRIB_QUOTA"));
    params.ask.window.get_or_insert(osts);
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

/// Operations by datagram of one group, unless its fabric or the job says otherwise.
const WINDOW: u32 = 16;
/// A length that no message exceeds.
const NEVER: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(wishes: &str, quota: Option<&str>) -> Option<u32> {
        let mut params = Params::new(0, 1);
        params.ask_for(wishes, "here").unwrap();
        bound_window(&mut params, quota);
        params.ask.window
    }

    #[test]
    fn a_group_has_no_more_operations_than_the_job() {
        assert_eq!(window("osts=8", None), Some(8));
        assert_eq!(window("osts=8", Some("groups=3")), Some(8));
        assert_eq!(window("osts=16", None), None, "the fabric decides");
        assert_eq!(window("", None), None);
        // What somebody has asked for is asked for.
        assert_eq!(window("osts=8,window=12", None), Some(12));
        assert_eq!(window("osts=8", Some("groups=3,window=4")), Some(4));
        assert_eq!(window("osts=8", Some("window=many")), Some(8));
    }
}
