//! What links have carried, counted by the kernel.

use serde::{Deserialize, Serialize};

use crate::lab::LabError;
use crate::topology::BitRate;

/// What one direction of one link has carried since the laboratory came up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkCounters {
    /// The link: `h3` is the host's, `h3.1` its second one, `leaf1` the trunk above that leaf.
    pub link: String,
    /// The direction that was counted.
    pub direction: Direction,
    /// Its rate, bits per second.
    pub rate: BitRate,
    /// Bytes sent, with the Ethernet, IP and transport headers of every packet that a real link
    /// would have carried: what crosses in one piece and stands for many packets counts as those.
    pub wire_bytes: u64,
    /// Packets sent, counted in the same way.
    pub packets: u64,
    /// Packets that the link's queue had no room for.
    pub drops: u64,
}

/// One way along a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the spine.
    Up,
    /// Towards the hosts.
    Down,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::Up, Self::Down];

    /// `up` or `down`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// What the token bucket of one device says.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Bucket {
    kind: String,
    #[serde(default)]
    pub(crate) dev: String,
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) drops: u64,
}

/// Reads the token buckets in the answer of `tc -s -j qdisc show`.
pub(crate) fn buckets(answer: &str) -> Result<Vec<Bucket>, LabError> {
    let all: Vec<Bucket> = serde_json::from_str(answer)
        .map_err(|error| LabError::Answer { command: "tc -s -j qdisc show".to_owned(), reason: error.to_string() })?;
    Ok(all.into_iter().filter(|bucket| bucket.kind == "tbf").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_buckets_of_what_tc_prints() {
        let answer = r#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"options":{},"bytes":0,"packets":0,"drops":0},
            {"kind":"tbf","handle":"802a:","dev":"eth0","root":true,"options":{"rate":62500000},"bytes":2162,"packets":33,"drops":1,"qlen":0}]"#;
        let buckets = buckets(answer).unwrap();
        assert_eq!(buckets.len(), 1);
        assert_eq!(
            (buckets[0].dev.as_str(), buckets[0].bytes, buckets[0].packets, buckets[0].drops),
            ("eth0", 2162, 33, 1)
        );
    }

    #[test]
    fn another_answer_is_an_error_that_names_the_command() {
        for answer in ["", "{}", "[{\"kind\":\"tbf\"}]"] {
            assert!(buckets(answer).unwrap_err().to_string().contains("tc -s -j"), "{answer}");
        }
    }
}
